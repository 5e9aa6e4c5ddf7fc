package assignor

import "github.com/ottla-kafka/ottla/groupmember/machine"

// Range is Kafka's RangeAssignor.
type Range struct{}

// RoundRobin is Kafka's RoundRobinAssignor.
type RoundRobin struct{}

// Sticky is Kafka's StickyAssignor.
type Sticky struct{}

// CooperativeSticky is Kafka's CooperativeStickyAssignor.
type CooperativeSticky struct{}

var (
	_ machine.Assignor = Range{}
	_ machine.Assignor = RoundRobin{}
	_ machine.Assignor = Sticky{}
	_ machine.Assignor = CooperativeSticky{}
)

// Name is "range".
func (Range) Name() string { return "range" }

// Name is "roundrobin".
func (RoundRobin) Name() string { return "roundrobin" }

// Name is "sticky".
func (Sticky) Name() string { return "sticky" }

// Name is "cooperative-sticky".
func (CooperativeSticky) Name() string { return "cooperative-sticky" }

// Cooperative is false.
func (Range) Cooperative() bool { return false }

// Cooperative is false.
func (RoundRobin) Cooperative() bool { return false }

// Cooperative is false.
func (Sticky) Cooperative() bool { return false }

// Cooperative is true.
func (CooperativeSticky) Cooperative() bool { return true }

// UserData is nothing.
func (Range) UserData([]machine.TopicPartition, int32) []byte { return nil }

// UserData is nothing.
func (RoundRobin) UserData([]machine.TopicPartition, int32) []byte { return nil }
