package groupmember

import (
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
)

// FromProperties reads Java properties: those of connections into a client.Config, those of group membership into a
// Config, which still needs Topics or Pattern. Unknown keys and bad values are all in the error, errors.Join of
// *client.FieldError. Keys that only consumers have are unknown here; package consumer takes them all.
func FromProperties(properties map[string]string) (client.Config, Config, error) {
	of, c := client.DefaultConfig(), DefaultConfig()
	err := client.LoadProperties(properties, client.ClientProperties().Bind(&of), Properties().Bind(&c))
	return of, c, err
}

// Properties is the table of the keys that members have beside those of client.ClientProperties.
func Properties() client.PropertyTable[Config] {
	text := func(key, def, doc string, field func(*Config) *string) client.Property[Config] {
		return client.Property[Config]{Key: key, Default: def, Doc: doc, Apply: client.SetString(field)}
	}
	millis := func(key, def, doc string, field func(*Config) *time.Duration) client.Property[Config] {
		return client.Property[Config]{Key: key, Default: def, Doc: doc, Apply: client.SetMillis(field)}
	}
	return client.PropertyTable[Config]{
		text("group.id", "(null)", "name of the group", func(c *Config) *string { return &c.GroupID }),
		text("group.instance.id", "(null)", "name of a static member", func(c *Config) *string { return &c.InstanceID }),
		{Key: "group.protocol", Default: "classic", Doc: "how members and coordinator talk: classic, consumer (KIP-848) or auto", Apply: applyProtocol,
			Differs: "auto: consumer where the cluster has it and partition.assignment.strategy is not set, else classic"},
		text("group.remote.assignor", "(null)", "the coordinator's assignor", func(c *Config) *string { return &c.RemoteAssignor }),
		{Key: "partition.assignment.strategy", Default: "class org.apache.kafka.clients.consumer.RangeAssignor,class org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
			Doc: "the members' assignors (classic), by short name or Kafka's class", Apply: applyAssignors, Differs: "the same two, but setting it makes group.protocol=auto choose classic"},
		millis("session.timeout.ms", "45000", "a silent member is dropped after it", func(c *Config) *time.Duration { return &c.SessionTimeout }),
		millis("heartbeat.interval.ms", "3000", "between heartbeats", func(c *Config) *time.Duration { return &c.HeartbeatInterval }),
		millis("max.poll.interval.ms", "300000", "how long giving up partitions may take", func(c *Config) *time.Duration { return &c.RebalanceTimeout }),
		text("client.rack", "", "where the member runs", func(c *Config) *string { return &c.Rack }),
		{Key: "exclude.internal.topics", Default: "true", Doc: "Pattern does not match internal topics", Apply: client.SetBool(func(c *Config) *bool { return &c.ExcludeInternal })},
	}
}

func applyProtocol(c *Config, value string) error {
	for _, p := range []Protocol{Auto, Classic, Consumer} {
		if strings.EqualFold(value, p.String()) {
			c.Protocol = p
			return nil
		}
	}
	return fmt.Errorf("is classic, consumer or auto")
}

func applyAssignors(c *Config, value string) error {
	var list []Assignor
	for name := range strings.SplitSeq(value, ",") {
		a, ok := AssignorNamed(strings.TrimSpace(name))
		if !ok {
			return fmt.Errorf("%q is not range, roundrobin, sticky, cooperative-sticky or Kafka's class of one of them; give your own with groupmember.Assignors", strings.TrimSpace(name))
		}
		list = append(list, a)
	}
	c.Assignors, c.assignorsSet = list, true
	return nil
}

// AssignorNamed finds an assignor by its name ("cooperative-sticky") or by the name of Kafka's class.
func AssignorNamed(name string) (Assignor, bool) {
	class := strings.TrimPrefix(strings.TrimPrefix(name, "class "), "org.apache.kafka.clients.consumer.")
	for className, a := range map[string]Assignor{"RangeAssignor": Range(), "RoundRobinAssignor": RoundRobin(), "StickyAssignor": Sticky(),
		"CooperativeStickyAssignor": CooperativeSticky()} {
		if name == a.Name() || class == className {
			return a, true
		}
	}
	return nil, false
}
