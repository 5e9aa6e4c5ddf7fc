package groupmember

import (
	"time"

	"github.com/ottla-kafka/ottla/groupmember/internal/assignor"
)

// Config is everything a member can be told. DefaultConfig fills it with Apache Kafka 4.x's defaults; an Option
// changes it. The key in each comment is the Java property of the same meaning.
type Config struct {
	// GroupID names the group (group.id). Required.
	GroupID string
	// InstanceID makes the member static: a restart within SessionTimeout gets the same partitions back without a
	// rebalance (group.instance.id, KIP-345, brokers from 2.3 on).
	InstanceID string
	// Topics are subscribed to by name. Either Topics or Pattern is required.
	Topics []string
	// Pattern subscribes to all topics whose name it matches as a whole: an RE2 expression, matched by the
	// coordinator with Consumer and by this client, every DiscoverEvery, with Classic.
	Pattern string
	// DiscoverEvery is how often the client looks for new topics that match Pattern. Kafka does it with each
	// metadata refresh, every metadata.max.age.ms (5 minutes); here it is 10 s.
	DiscoverEvery time.Duration
	// ExcludeInternal keeps Pattern from matching internal topics (exclude.internal.topics, true).
	ExcludeInternal bool

	// Protocol is how members and coordinator talk (group.protocol). Kafka's default is classic; here it is Auto.
	Protocol Protocol
	// Assignors are what the classic protocol distributes with, the preferred one first; all members of a group
	// need one in common (partition.assignment.strategy: Range, CooperativeSticky). Setting them makes Auto choose
	// Classic.
	Assignors []Assignor
	// RemoteAssignor is the coordinator's assignor with Consumer: "uniform", "range", or empty for the
	// coordinator's choice (group.remote.assignor).
	RemoteAssignor string

	// SessionTimeout is after how long without a heartbeat a member counts as dead, here and at the coordinator
	// (session.timeout.ms, 45 s). With Consumer the coordinator has a value of its own
	// (group.consumer.session.timeout.ms, 45 s) that should not be less.
	SessionTimeout time.Duration
	// HeartbeatInterval is how often the member tells that it lives (heartbeat.interval.ms, 3 s). With Consumer
	// the coordinator says how often.
	HeartbeatInterval time.Duration
	// RebalanceTimeout is how long a member may take to give up partitions (max.poll.interval.ms, 5 minutes).
	RebalanceTimeout time.Duration
	// Rack is where this member runs, for assignors that look at racks (client.rack). Empty takes the client's.
	Rack string

	// Listener is told of partitions; nil when only Generations is used.
	Listener Listener
	// OnTransition is told of every change of the state, in order, from the member's goroutine; it must not block.
	OnTransition func(Transition)
	// OnEnd is told once why the member ended: nil after Close or Leave, else the final error. It is called last,
	// from the goroutine that calls Listener.
	OnEnd func(error)

	assignorsSet bool
}

// DefaultConfig is Apache Kafka 4.x's configuration of a group member.
func DefaultConfig() Config {
	return Config{
		Assignors:         []Assignor{Range(), CooperativeSticky()},
		DiscoverEvery:     10 * time.Second,
		ExcludeInternal:   true,
		SessionTimeout:    45 * time.Second,
		HeartbeatInterval: 3 * time.Second,
		RebalanceTimeout:  5 * time.Minute,
	}
}

// Range gives each member a run of neighbouring partitions of each topic, so that equal numbers of topics with equal
// partitions go to the same member. Rack-aware (KIP-881).
func Range() Assignor { return assignor.Range{} }

// RoundRobin deals the partitions of all topics out one by one.
func RoundRobin() Assignor { return assignor.RoundRobin{} }

// Sticky balances and keeps as much as it can where it was (KIP-54); eager: all stop during a rebalance.
func Sticky() Assignor { return assignor.Sticky{} }

// CooperativeSticky is Sticky in two steps, so that what is kept is never stopped (KIP-429).
func CooperativeSticky() Assignor { return assignor.CooperativeSticky{} }
