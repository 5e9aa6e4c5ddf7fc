package group

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Member epochs that are no epochs.
const (
	joinEpoch        int32 = 0  // in a request: I want to join
	leaveEpoch       int32 = -1 // in a request: I leave
	staticLeaveEpoch int32 = -2 // in a request and in the group: the static member is away and may come back
)

// memberState is how far a member is with its assignment (CurrentMemberAssignment.state).
//
//	stable        it has what its epoch's target gives it
//	unrevoked     it was told to give up partitions and has not confirmed; its epoch waits for that
//	unreleased    it has its epoch, but partitions of its target are still with others
//
//	stable     ─ newer target, something to give up ─► unrevoked
//	stable     ─ newer target, nothing to give up ───► stable, or unreleased if others still have some of it
//	unrevoked  ─ confirmed ──────────────────────────► stable, unreleased, or unrevoked again for a newer target
//	unreleased ─ next heartbeat ─────────────────────► as from stable
type memberState int8

const (
	memberStable     memberState = 0
	memberUnrevoked  memberState = 1
	memberUnreleased memberState = 2
)

// parts are partitions by topic, each with the member epoch at which it was assigned. Immutable once in a member.
type parts map[wire.UUID]map[int32]int32

// A consumerGroup is a group of the consumer protocol (KIP-848): members say what they are subscribed to, the coordinator
// makes the target assignment, and every member is brought to it at its own pace. Everything in it but stale is durable.
type consumerGroup struct {
	epoch       int32 // grows with every change of subscriptions or topics
	hash        int64 // of the topics that it reads, see metadata_hash.go
	members     map[string]*consumerMember
	static      map[string]string // instance id -> member id
	targetEpoch int32             // the epoch that target was made for
	targetAt    int64             // ms, when it was; 0 lets a new one be made at once
	target      map[string]map[wire.UUID][]int32
	regexes     map[string]*resolvedRegex
	owners      map[wire.UUID]map[int32]string // who has, or has not confirmed to have given up, a partition
	stale       bool                           // topics have changed: the next heartbeat compares hashes
	classics    int                            // members that speak the classic protocol
}

// A consumerMember is a member of a consumer group. It is replaced, never changed.
type consumerMember struct {
	id                   string
	instance, rack       *string
	clientID, clientHost string
	topics               []string // sorted
	regex                string   // "" for none
	rebalanceMs          int32
	assignor             *string
	classic              *logrecord.ClassicMemberMetadata // nil unless it speaks the classic protocol

	epoch, previous int32
	state           memberState
	assigned        parts
	revoking        parts
}

// firstEpoch is the epoch of a group that has no record yet.
const firstEpoch = 1

func newConsumerGroup() *consumerGroup {
	return &consumerGroup{
		epoch:       firstEpoch,
		targetEpoch: firstEpoch,
		members:     make(map[string]*consumerMember),
		static:      make(map[string]string),
		target:      make(map[string]map[wire.UUID][]int32),
		regexes:     make(map[string]*resolvedRegex),
		owners:      make(map[wire.UUID]map[int32]string),
	}
}

// sorted returns the members by id.
func (c *consumerGroup) sorted() []*consumerMember {
	ids := slices.Sorted(maps.Keys(c.members))
	all := make([]*consumerMember, len(ids))
	for i, id := range ids {
		all[i] = c.members[id]
	}
	return all
}

func (c *consumerGroup) state() State {
	switch {
	case len(c.members) == 0:
		return Empty
	case c.epoch > c.targetEpoch:
		return Assigning
	}
	for _, x := range c.members {
		if x.state != memberStable || x.epoch != c.targetEpoch {
			return Reconciling
		}
	}
	return Stable
}

// reads calls f with every topic that a member is subscribed to, by name or by its resolved regular expression; topics
// may come twice.
func (c *consumerGroup) reads(x *consumerMember, f func(topic string)) {
	for _, t := range x.topics {
		f(t)
	}
	if r := c.regexes[x.regex]; r != nil && x.regex != "" {
		for _, t := range r.topics {
			f(t)
		}
	}
}

func (c *consumerGroup) subscribed(topic string) bool {
	found := false
	for _, x := range c.members {
		c.reads(x, func(t string) { found = found || t == topic })
		if found {
			return true
		}
	}
	return false
}

// supports reports whether a classic member with these protocols fits in with the other classic members.
func (c *consumerGroup) supports(protocols []message.JoinGroupRequestProtocol, except string) bool {
	for i := range protocols {
		all := true
		for id, x := range c.members {
			if x.classic != nil && id != except && !slices.ContainsFunc(x.classic.SupportedProtocols, func(p logrecord.ClassicProtocol) bool { return p.Name == protocols[i].Name }) {
				all = false
				break
			}
		}
		if all {
			return true
		}
	}
	return false
}

// ownedByOther reports whether a partition is still with somebody else than these members.
func (c *consumerGroup) ownedByOther(topic wire.UUID, partition int32, self ...string) bool {
	owner, ok := c.owners[topic][partition]
	return ok && !slices.Contains(self, owner)
}

// mayFetch checks who asks for offsets, if it says.
func (c *consumerGroup) mayFetch(member *string, epoch int32) errcode.Code {
	if member == nil && epoch < 0 {
		return errcode.None
	}
	x := c.members[deref(member)]
	switch {
	case x == nil:
		return errcode.UnknownMemberId
	case x.classic != nil && epoch != x.epoch:
		return errcode.IllegalGeneration
	case epoch != x.epoch:
		return errcode.StaleMemberEpoch
	}
	return errcode.None
}

// mayCommitConsumer are the rules of a consumer group (KIP-1251): an epoch that is not the newest still counts for the
// partitions that the member has had since then.
func (m *Machine) mayCommitConsumer(g *group, req *offsetCommit, commits []commit) errcode.Code {
	c, epoch := g.consumer, req.GenerationIdOrMemberEpoch
	if epoch < 0 && len(c.members) == 0 {
		return errcode.None
	}
	if req.txn != nil && epoch == -1 && req.MemberId == "" && req.GroupInstanceId == nil {
		return errcode.None // without a member, as before KIP-447
	}
	x := c.members[req.MemberId]
	switch {
	case x == nil:
		return errcode.UnknownMemberId
	case x.classic != nil:
		if epoch != x.epoch {
			return errcode.IllegalGeneration
		}
		return errcode.None
	case req.version < 9 && req.txn == nil:
		return errcode.UnsupportedVersion
	case epoch == x.epoch:
		return errcode.None
	case epoch > x.epoch:
		return errcode.StaleMemberEpoch
	}
	for _, p := range commits {
		since, ok := x.assigned[p.topic.ID][p.partition.PartitionIndex]
		if !ok {
			since, ok = x.revoking[p.topic.ID][p.partition.PartitionIndex]
		}
		if !ok || since > epoch {
			return errcode.StaleMemberEpoch
		}
	}
	return errcode.None
}

// tombstones ends the group in the log.
func (c *consumerGroup) tombstones(id string, out *coordinator.Result) {
	members := c.sorted()
	for _, x := range members {
		out.Tombstone(&logrecord.ConsumerGroupCurrentMemberAssignmentKey{GroupId: id, MemberId: x.id})
	}
	for _, member := range slices.Sorted(maps.Keys(c.target)) {
		out.Tombstone(&logrecord.ConsumerGroupTargetAssignmentMemberKey{GroupId: id, MemberId: member})
	}
	out.Tombstone(&logrecord.ConsumerGroupTargetAssignmentMetadataKey{GroupId: id})
	for _, x := range members {
		out.Tombstone(&logrecord.ConsumerGroupMemberMetadataKey{GroupId: id, MemberId: x.id})
	}
	for _, regex := range slices.Sorted(maps.Keys(c.regexes)) {
		out.Tombstone(&logrecord.ConsumerGroupRegularExpressionKey{GroupId: id, RegularExpression: regex})
	}
	out.Tombstone(&logrecord.ConsumerGroupMetadataKey{GroupId: id})
}

// session is how long a member may be silent.
func (m *Machine) session(id string, x *consumerMember) time.Duration {
	if x.classic != nil {
		return time.Duration(x.classic.SessionTimeoutMs) * time.Millisecond
	}
	return m.consumerSettings(id).session
}

// sortedTopics returns the topics of an assignment in a fixed order.
func sortedTopics[V any](p map[wire.UUID]V) []wire.UUID {
	ids := slices.Collect(maps.Keys(p))
	slices.SortFunc(ids, func(a, b wire.UUID) int { return bytes.Compare(a[:], b[:]) })
	return ids
}

// sameParts compares which partitions two assignments hold.
func sameParts(a, b parts) bool {
	return maps.EqualFunc(a, b, func(x, y map[int32]int32) bool {
		if len(x) != len(y) {
			return false
		}
		for p := range x {
			if _, ok := y[p]; !ok {
				return false
			}
		}
		return true
	})
}
