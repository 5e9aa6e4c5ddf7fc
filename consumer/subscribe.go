package consumer

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/groupmember"
)

// Subscribe changes what a member of a group subscribes to, by name; a rebalance follows. It does not block. A consumer that
// did not subscribe when it was made cannot do so later: ErrNoGroup.
func (c *Consumer) Subscribe(topics ...string) error {
	m, err := c.subscriber()
	if err != nil {
		return err
	}
	return m.Subscribe(topics...)
}

// subscriber is the member, if there is one.
func (c *Consumer) subscriber() (*groupmember.Member, error) {
	_, m, err := c.joined()
	if err != nil {
		return nil, err
	}
	member, ok := m.(*groupmember.Member)
	if !ok {
		return nil, fmt.Errorf("%w: the partitions of this one are assigned", ErrNoGroup)
	}
	return member, nil
}

// SubscribePattern changes what a member subscribes to, to all topics whose whole name an RE2 expression matches. It does not
// block.
func (c *Consumer) SubscribePattern(re2 string) error {
	m, err := c.subscriber()
	if err != nil {
		return err
	}
	return m.SubscribePattern(re2)
}

// Membership is where a consumer stands in its group.
type Membership struct {
	Group      string
	State      groupmember.State
	Generation groupmember.Generation
	Claims     []ClaimInfo // by topic and partition
}

// ClaimInfo is one partition that the group has given to this consumer, or whose offsets it keeps in one.
type ClaimInfo struct {
	TopicPartition
	State     string    // starting, reading, draining, releasing, committing
	Done      int64     // offset up to which everything is processed, -1 unknown
	Committed int64     // offset that the group has, as far as this consumer knows; -1 none
	Waiting   int       // records that wait for a handler of Run or Serve, or are being processed
	Paused    bool      // by the application
	Throttled bool      // its handlers do not keep up, so it is not fetched for the moment
	InHand    time.Time // since when Serve's handler has its present record; zero: none
}

// String is one line: the partition, its state, and how far it is done and committed.
func (c ClaimInfo) String() string {
	return fmt.Sprintf("%s %s done %d committed %d waiting %d", c.TopicPartition, c.State, c.Done, c.Committed, c.Waiting)
}

// Membership tells where the consumer stands in its group, without asking anybody: for health checks. Before the first call
// that reads, and without a subscription, it is not a member of anything; Claims has assigned partitions with a Group too.
func (c *Consumer) Membership() Membership {
	g := c.group
	if g == nil {
		return Membership{}
	}
	out := Membership{Group: g.cfg.ID, Generation: groupmember.Generation{ID: -1}}
	g.mu.Lock()
	m := g.member
	for _, cl := range g.sorted() {
		info := ClaimInfo{TopicPartition: cl.TopicPartition, State: cl.state.State().String(), Done: cl.done().Offset, Committed: cl.committed.Offset,
			Paused: cl.paused, Throttled: cl.throttled}
		if cl.work != nil {
			info.Waiting = cl.work.Len()
		}
		if cl.inHand != nil {
			info.InHand = cl.inHandAt
		}
		out.Claims = append(out.Claims, info)
	}
	g.mu.Unlock()
	if m != nil {
		out.State, out.Generation = m.State(), m.Generation()
	}
	return out
}
