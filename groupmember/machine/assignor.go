package machine

// Assignor distributes the partitions of topics over the members of a group that uses the classic protocol. The
// member that the coordinator made leader runs it; the others get the result. It is pure: the same input gives the
// same output, and it may be called from any goroutine. The member does nothing else meanwhile, no heartbeat either, so
// it has to be quick, and must not call the member.
type Assignor interface {
	// Name is what members agree on, as in partition.assignment.strategy ("range", "cooperative-sticky"). All
	// members of a group must understand the same thing by it.
	Name() string
	// Cooperative tells that a partition is taken from one member in one rebalance and given to another in the
	// next (KIP-429), so that members keep what they keep. Members use the cooperative way when all assignors of
	// theirs do.
	Cooperative() bool
	// UserData is what this member sends along when it joins, given what it got last and in which generation
	// (-1 before the first). nil for nothing.
	UserData(last []TopicPartition, generation int32) []byte
	// Assign distributes. topics has every topic that exists and some member subscribes to, by name; members
	// come by id. A member that the result leaves out gets nothing. An error is retried after a back-off.
	Assign(topics []TopicRacks, members []Subscription) (map[string][]TopicPartition, error)
}

// TopicRacks is a topic with where its replicas are: Racks[p] lists the racks of partition p's replicas, empty
// strings where a broker has none.
type TopicRacks struct {
	Name  string
	Racks [][]string
}

// Subscription is what a member told the group when it joined.
type Subscription struct {
	MemberID   string
	InstanceID string // group.instance.id, empty for a dynamic member
	Topics     []string
	Owned      []TopicPartition // what it held when it joined (cooperative members tell)
	Generation int32            // the generation in which it got that, -1 unknown
	Rack       string           // client.rack, empty for none
	UserData   []byte           // what its assignor's UserData gave
}
