package group

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
)

// An Environment is what a machine goes by that does not come from its log: the cluster's metadata and the broker's
// configs. A new one comes as a request.
type Environment struct {
	Image  *image.Image
	Config *config.Layers
	// Changed lists the topics that differ from the environment before; nil after a change of configs alone.
	Changed []image.TopicChange
}

// settings are the broker's configs in the form that the machine uses; times are durations.
type settings struct {
	classic, consumer bool // group.coordinator.rebalance.protocols

	minSessionMs, maxSessionMs int32
	initialDelay               time.Duration
	maxSize                    int

	maxMetadata    int
	retention      time.Duration
	retentionCheck time.Duration

	consumerMaxSize  int
	assignors        []string // in order of preference
	migrationUp      bool     // classic groups become consumer groups
	migrationDown    bool     // and the other way round
	regexRefresh     time.Duration
	consumerDefaults consumerSettings
	config           *config.Layers
}

// consumerSettings are the configs that a group may override.
type consumerSettings struct {
	session            time.Duration
	heartbeatMs        int32
	assignmentInterval time.Duration
}

func readSettings(c *config.Layers) settings {
	ms := func(name string) time.Duration { return time.Duration(c.Int(name)) * time.Millisecond }
	protocols := c.List("group.coordinator.rebalance.protocols")
	policy := strings.ToLower(c.String("group.consumer.migration.policy"))
	s := settings{
		classic:         slices.Contains(protocols, "classic"),
		consumer:        slices.Contains(protocols, "consumer"),
		minSessionMs:    int32(c.Int("group.min.session.timeout.ms")),
		maxSessionMs:    int32(c.Int("group.max.session.timeout.ms")),
		initialDelay:    ms("group.initial.rebalance.delay.ms"),
		maxSize:         int(c.Int("group.max.size")),
		maxMetadata:     int(c.Int("offset.metadata.max.bytes")),
		retention:       time.Duration(c.Int("offsets.retention.minutes")) * time.Minute,
		retentionCheck:  ms("offsets.retention.check.interval.ms"),
		consumerMaxSize: int(c.Int("group.consumer.max.size")),
		migrationUp:     policy == "bidirectional" || policy == "upgrade",
		migrationDown:   policy == "bidirectional" || policy == "downgrade",
		regexRefresh:    ms("group.consumer.regex.refresh.interval.ms"),
		config:          c,
		consumerDefaults: consumerSettings{
			session:            ms("group.consumer.session.timeout.ms"),
			heartbeatMs:        int32(c.Int("group.consumer.heartbeat.interval.ms")),
			assignmentInterval: ms("group.consumer.assignment.interval.ms"),
		},
	}
	for _, name := range c.List("group.consumer.assignors") {
		s.assignors = append(s.assignors, assignorName(name))
	}
	return s
}

// assignorName maps the Java class names that the config may hold to the names of the assignors.
func assignorName(name string) string {
	switch name {
	case "org.apache.kafka.coordinator.group.assignor.UniformAssignor":
		return "uniform"
	case "org.apache.kafka.coordinator.group.assignor.RangeAssignor":
		return "range"
	}
	return name
}

// consumerSettings returns what holds for one group: its dynamic configs, kept within the broker's limits, over the
// broker's own.
func (m *Machine) consumerSettings(id string) consumerSettings {
	s := m.set.consumerDefaults
	overrides := m.env.Image.Configs(config.Resource{Type: config.GroupResource, Name: id})
	if len(overrides) == 0 {
		return s
	}
	number := func(name string, into func(ms int64)) {
		v, err := strconv.ParseInt(overrides["consumer."+name+".ms"], 10, 64)
		if err == nil {
			low := m.set.config.Int("group.consumer.min." + name + ".ms")
			high := m.set.config.Int("group.consumer.max." + name + ".ms")
			into(min(max(v, low), high))
		}
	}
	number("session.timeout", func(v int64) { s.session = time.Duration(v) * time.Millisecond })
	number("heartbeat.interval", func(v int64) { s.heartbeatMs = int32(v) })
	number("assignment.interval", func(v int64) { s.assignmentInterval = time.Duration(v) * time.Millisecond })
	return s
}

// hasPartition reports whether a partition exists.
func (m *Machine) hasPartition(t *image.Topic, index int32) bool {
	return t != nil && t.Partition(index) != nil
}
