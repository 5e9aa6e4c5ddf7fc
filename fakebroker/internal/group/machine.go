package group

import (
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Options are what a Machine is made of.
type Options struct {
	Environment Environment
	// NewUUID makes member ids.
	NewUUID func() wire.UUID
	// Bugs are the mistakes to be made on purpose; see package bug.
	Bugs bug.Set
	// Changed, when it is set, is called with the id of each group that a request or a timer may have changed, after its
	// records were replayed. Tests wait with it.
	Changed func(group string)
}

// A Machine is the group coordinator of one partition of __consumer_offsets. It implements coordinator.TxnShard
// and coordinator.Dropper.
type Machine struct {
	o      Options
	env    Environment
	set    settings
	groups map[string]*group
	txns   map[int64]map[string]bool // groups that a producer's open transaction has offsets for
	timers timers
	loaded bool
	regex  regexCache
	empty  []*group // of which perhaps nothing is left
}

// A group is all that is known under one group id. At most one of classic and consumer is set; offsets may be there
// without either while the log is loaded, and then the group is a classic one that nobody joined.
type group struct {
	id       string
	classic  *classicGroup
	consumer *consumerGroup
	offsets  offsets
	pending  pending
	history  history
}

// New returns an empty machine.
func New(o Options) *Machine {
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	return &Machine{o: o, env: o.Environment, set: readSettings(o.Environment.Config), groups: make(map[string]*group), txns: make(map[int64]map[string]bool)}
}

// Handle implements coordinator.Shard.
func (m *Machine) Handle(now time.Time, r coordinator.Request, out *coordinator.Result) {
	m.sweep()
	switch b := r.Body.(type) {
	case *message.JoinGroupRequest:
		m.join(now, r, b, out)
		m.changed(b.GroupId, out)
	case *message.SyncGroupRequest:
		m.sync(now, r, b, out)
		m.changed(b.GroupId, out)
	case *message.HeartbeatRequest:
		m.heartbeat(now, r, b, out)
	case *message.LeaveGroupRequest:
		m.leave(now, r, b, out)
		m.changed(b.GroupId, out)
	case *message.OffsetCommitRequest:
		m.commitOffsets(now, r, b, out)
		m.changed(b.GroupId, out)
	case CommitInTransaction:
		m.commitInTransaction(now, r, b, out)
		m.changed(b.Request.GroupId, out)
	case FetchOffsets:
		m.fetchOffsets(r, b, out)
	case *message.OffsetDeleteRequest:
		m.deleteOffsets(r, b, out)
		m.changed(b.GroupId, out)
	case *message.ConsumerGroupHeartbeatRequest:
		m.consumerHeartbeat(now, r, b, out)
		if len(out.Records) > 0 {
			m.changed(b.GroupId, out)
		}
	case *message.ListGroupsRequest:
		m.list(r, b, out)
	case Describe:
		m.describe(r, b, out)
	case DescribeConsumer:
		m.describeConsumer(r, b, out)
	case Delete:
		m.delete(now, r, b, out)
	case Environment:
		m.follow(now, b, out)
		out.Reply(r.Ticket, nil)
	case Inspect:
		m.inspect(r, b, out)
	case ForceRebalance:
		m.force(now, r, b, out)
		m.changed(b.Group, out)
	case FenceMember:
		m.fence(now, r, b, out)
		m.changed(b.Group, out)
	case ExpireSession:
		m.expireSession(now, r, b, out)
		m.changed(b.Group, out)
	default:
		panic(fmt.Sprintf("group: %T is no request for a group coordinator", r.Body))
	}
}

// changed has those told who wait for a group, after everything that this result brings.
func (m *Machine) changed(id string, out *coordinator.Result) {
	out.Written = append(out.Written, func(time.Time, *coordinator.Result) { m.o.Changed(id) })
}

// Replay implements coordinator.Shard.
func (m *Machine) Replay(offset int64, key, value logrecord.Record) error {
	switch k := key.(type) {
	case *logrecord.OffsetCommitKey:
		v, _ := value.(*logrecord.OffsetCommitValue)
		m.replayOffset(offset, k.Group, k.Topic, k.Partition, v)
	case *logrecord.LegacyOffsetCommitKey:
		m.replayLegacyOffset(offset, k, value)
	case *logrecord.GroupMetadataKey:
		v, _ := value.(*logrecord.GroupMetadataValue)
		m.replayClassic(k.Group, v)
	default:
		m.replayConsumer(key, value)
	}
	return nil
}

// Loaded implements coordinator.Shard: members have their whole timeout from now on, whatever was left of it before.
func (m *Machine) Loaded(now time.Time, out *coordinator.Result) {
	m.loaded = true
	m.sweep()
	m.timers.set(timerKey{kind: expiryTimer}, now.Add(m.set.retentionCheck))
	for _, g := range m.sorted() {
		switch {
		case g.classic != nil:
			m.classicLoaded(now, g, out)
		case g.consumer != nil:
			m.consumerLoaded(now, g, out)
		}
		m.changed(g.id, out)
	}
}

// Deadline implements coordinator.Shard.
func (m *Machine) Deadline() time.Time { return m.timers.deadline() }

// Tick implements coordinator.Shard.
func (m *Machine) Tick(now time.Time, out *coordinator.Result) {
	m.sweep()
	key, due := m.timers.pop(now)
	if !due {
		return
	}
	if key.kind == expiryTimer {
		m.expireOffsets(now, out)
		m.timers.set(key, now.Add(m.set.retentionCheck))
		return
	}
	g := m.groups[key.group]
	if g == nil {
		return
	}
	switch {
	case g.classic != nil:
		m.classicTimer(now, g, key, out)
	case g.consumer != nil:
		m.consumerTimer(now, g, key, out)
		m.insist(key, out)
	}
	m.changed(key.group, out)
}

// retryTimer is when a timer fires again whose records the log refused, as in Apache Kafka.
const retryTimer = 500 * time.Millisecond

// insist keeps a timer from being forgotten: what it is for is not done before it is in the log.
func (m *Machine) insist(key timerKey, out *coordinator.Result) {
	if len(out.Records) == 0 {
		return
	}
	out.Failed = append(out.Failed, func(now time.Time, _ errcode.Code, _ *coordinator.Result) {
		if !m.timers.running(key) {
			m.timers.set(key, now.Add(retryTimer))
		}
	})
}

// follow takes a new environment. Groups notice changed topics themselves: consumer groups here, classic ones when their
// leader does.
func (m *Machine) follow(now time.Time, e Environment, out *coordinator.Result) {
	if e.Config != m.env.Config {
		m.set = readSettings(e.Config)
	}
	m.env = e
	m.env.Changed = nil
	if len(e.Changed) == 0 {
		return
	}
	for _, c := range e.Changed {
		if c.New == nil {
			m.topicDeleted(c.Old, out)
		}
	}
	m.topicsChanged(now, e.Changed, out)
}

// sorted returns the groups by id.
func (m *Machine) sorted() []*group {
	all := make([]*group, 0, len(m.groups))
	for _, g := range m.groups {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *group) int { return compare(a.id, b.id) })
	return all
}

// group returns the group of an id, new if need be.
func (m *Machine) group(id string) *group {
	g := m.groups[id]
	if g == nil {
		g = &group{id: id}
		m.groups[id] = g
	}
	return g
}

// forget notes a group of which nothing may be left. It is not removed at once: further records of the same batch may go
// on with it, as another kind of group.
func (m *Machine) forget(g *group) { m.empty = append(m.empty, g) }

// sweep removes the groups of which nothing is left. It comes before everything that looks for groups.
func (m *Machine) sweep() {
	for _, g := range m.empty {
		if g.classic == nil && g.consumer == nil && g.offsets.count == 0 && g.pending.empty() && m.groups[g.id] == g {
			delete(m.groups, g.id)
		}
	}
	m.empty = m.empty[:0]
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// topic finds what a request names by name or by id.
func (m *Machine) topic(name string, id wire.UUID) *image.Topic {
	if name == "" && !id.IsZero() {
		return m.env.Image.TopicByID(id)
	}
	return m.env.Image.Topic(name)
}
