package groupmember

import (
	"fmt"
	"time"
)

// Lint says what is allowed and still probably not meant. Start logs each line as a warning.
func (c *Config) Lint() []string {
	var out []string
	if c.HeartbeatInterval > c.SessionTimeout/3 {
		out = append(out, fmt.Sprintf("heartbeat.interval.ms (%s) is more than a third of session.timeout.ms (%s): one or two lost heartbeats cost the membership",
			c.HeartbeatInterval, c.SessionTimeout))
	}
	if c.SessionTimeout < 6*time.Second || c.SessionTimeout > 30*time.Minute {
		out = append(out, fmt.Sprintf("session.timeout.ms is %s: brokers refuse less than 6s and more than 30m unless group.min.session.timeout.ms and group.max.session.timeout.ms say otherwise",
			c.SessionTimeout))
	}
	eager, cooperative := "", ""
	for _, a := range c.Assignors {
		if a.Cooperative() {
			cooperative = a.Name()
		} else {
			eager = a.Name()
		}
	}
	if c.Protocol == Classic && eager != "" && cooperative != "" {
		out = append(out, fmt.Sprintf("partition.assignment.strategy has %s beside %s: as long as it does, everything is given up in each rebalance; "+
			"leave it out once all members know %s", eager, cooperative, cooperative))
	}
	return out
}
