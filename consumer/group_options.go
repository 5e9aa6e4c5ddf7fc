package consumer

import (
	"context"
	"time"

	"github.com/ottla-kafka/ottla/groupmember"
)

// Group names the group (group.id). With Subscribe the consumer is a member of it, and gets its share of the topics; with
// Assign it reads what it is assigned and keeps its offsets there.
func Group(id string) Option { return func(c *Config) { c.Group.ID = id } }

// Subscribe subscribes to topics by name: the group's members share their partitions.
func Subscribe(topics ...string) Option {
	return func(c *Config) { c.Group.Topics = append(c.Group.Topics, topics...) }
}

// SubscribePattern subscribes to all topics, present and future, whose whole name an RE2 expression matches.
func SubscribePattern(re2 string) Option { return func(c *Config) { c.Group.Pattern = re2 } }

// InstanceID makes the member static (group.instance.id): the same process coming back within session.timeout.ms gets
// its partitions back without a rebalance.
func InstanceID(id string) Option { return func(c *Config) { c.Group.InstanceID = id } }

// GroupProtocol sets group.protocol: classic, consumer or auto.
func GroupProtocol(name string) Option { return func(c *Config) { c.Group.Protocol = name } }

// Assignors sets partition.assignment.strategy: range, roundrobin, sticky, cooperative-sticky, the preferred one first.
func Assignors(names ...string) Option { return func(c *Config) { c.Group.Assignors = names } }

// SessionTimeout sets session.timeout.ms and heartbeat.interval.ms.
func SessionTimeout(session, heartbeat time.Duration) Option {
	return func(c *Config) { c.Group.SessionTimeout, c.Group.HeartbeatInterval = session, heartbeat }
}

// MaxPollInterval sets max.poll.interval.ms and what happens when it has passed.
func MaxPollInterval(d time.Duration, policy StallPolicy) Option {
	return func(c *Config) { c.Group.MaxPollInterval, c.Group.StallPolicy = d, policy }
}

// OnStall sets who is told when max.poll.interval.ms has passed.
func OnStall(f func(Stall)) Option { return func(c *Config) { c.Group.OnStall = f } }

// DrainTimeout sets how long what is in hand may take to end when partitions are given up.
func DrainTimeout(d time.Duration) Option { return func(c *Config) { c.Group.DrainTimeout = d } }

// AutoCommit sets auto.commit.interval.ms and switches enable.auto.commit on.
func AutoCommit(every time.Duration) Option {
	return func(c *Config) { c.Group.AutoCommit, c.Group.AutoCommitInterval = true, every }
}

// ManualCommit sets enable.auto.commit=false: nothing is committed but by Commit and its like.
func ManualCommit(c *Config) { c.Group.AutoCommit = false }

// OnAssigned sets who is told of new partitions, before they are read. It is for members, as are OnRevoked and OnLost.
func OnAssigned(f func(ctx context.Context, parts []TopicPartition)) Option {
	return func(c *Config) { c.Group.OnAssigned = f }
}

// OnRevoked sets who is told of partitions that are being given up.
func OnRevoked(f func(ctx context.Context, parts []TopicPartition)) Option {
	return func(c *Config) { c.Group.OnRevoked = f }
}

// OnLost sets who is told of partitions that are gone.
func OnLost(f func(ctx context.Context, parts []TopicPartition, cause error)) Option {
	return func(c *Config) { c.Group.OnLost = f }
}

// assignorNamed is one of Kafka's assignors, nil if there is none of that name.
func assignorNamed(name string) groupmember.Assignor {
	switch name {
	case "range":
		return groupmember.Range()
	case "roundrobin":
		return groupmember.RoundRobin()
	case "sticky":
		return groupmember.Sticky()
	case "cooperative-sticky":
		return groupmember.CooperativeSticky()
	}
	return nil
}

// member is the configuration of the membership.
func (g *GroupConfig) member(rack string) groupmember.Config {
	m := groupmember.DefaultConfig()
	m.GroupID, m.Topics, m.Pattern, m.InstanceID, m.RemoteAssignor = g.ID, g.Topics, g.Pattern, g.InstanceID, g.RemoteAssignor
	m.SessionTimeout, m.HeartbeatInterval, m.RebalanceTimeout = g.SessionTimeout, g.HeartbeatInterval, g.MaxPollInterval
	m.DiscoverEvery, m.ExcludeInternal, m.Rack = g.DiscoverEvery, g.ExcludeInternal, rack
	switch g.Protocol {
	case "classic":
		m.Protocol = groupmember.Classic
	case "consumer":
		m.Protocol = groupmember.Consumer
	}
	if list := g.assignors(); len(list) > 0 {
		groupmember.Assignors(list...)(&m)
	}
	return m
}

func (g *GroupConfig) assignors() []groupmember.Assignor {
	list := append([]groupmember.Assignor(nil), g.CustomAssignors...)
	for _, name := range g.Assignors {
		list = append(list, assignorNamed(name))
	}
	return list
}
