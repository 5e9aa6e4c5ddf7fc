package consumer

import "fmt"

// Lint says what is allowed and still probably not meant. New logs each line as a warning.
func (c *Config) Lint() []string {
	var out []string
	if c.MaxPartitionBytes > c.MaxBytes {
		out = append(out, fmt.Sprintf("max.partition.fetch.bytes (%d) is more than fetch.max.bytes (%d), which then bounds both", c.MaxPartitionBytes, c.MaxBytes))
	}
	if c.MinBytes > c.MaxBytes {
		out = append(out, fmt.Sprintf("fetch.min.bytes (%d) is more than fetch.max.bytes (%d): every answer waits for fetch.max.wait.ms", c.MinBytes, c.MaxBytes))
	}
	if c.MinBytes > 1 && c.MaxWait == 0 {
		out = append(out, fmt.Sprintf("fetch.min.bytes is %d, but fetch.max.wait.ms is 0: brokers answer at once with what there is", c.MinBytes))
	}
	if c.MaxWait == 0 {
		out = append(out, "fetch.max.wait.ms is 0: at the end of the log brokers are asked without pause")
	}
	if c.Start.IsZero() && c.Reset == Latest && len(c.Assigned) > 0 && c.Group.ID == "" {
		out = append(out, "no start is given and auto.offset.reset is latest: records written before the consumer starts are not read")
	}
	if g := &c.Group; g.subscribes() && g.HeartbeatInterval > g.SessionTimeout/3 {
		out = append(out, fmt.Sprintf("heartbeat.interval.ms (%s) is more than a third of session.timeout.ms (%s): one lost heartbeat may cost the membership", g.HeartbeatInterval, g.SessionTimeout))
	}
	if g := &c.Group; !g.subscribes() && (g.InstanceID != "" || g.OnAssigned != nil || g.OnRevoked != nil || g.OnLost != nil) {
		out = append(out, "group.instance.id, OnAssigned, OnRevoked and OnLost are for members of a group; this consumer does not subscribe, so they mean nothing")
	}
	if !c.CheckCRC {
		out = append(out, "check.crcs is false: damaged records are handed out as they are")
	}
	return out
}
