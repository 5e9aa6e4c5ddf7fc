package group

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// bench runs one machine as the runtime does, with a clock that only the test moves and a log that may refuse.
type bench struct {
	t      testing.TB
	m      *Machine
	now    time.Time
	log    []entry
	last   coordinator.Ticket
	got    map[coordinator.Ticket]any // replies that have not been taken
	refuse errcode.Code               // of the next append
}

// entry is a record of the log, of a transaction or not, or the end of one.
type entry struct {
	key, value []byte
	producer   int64 // -1 for what is in no transaction
	end        bool
	commit     bool
}

func counter() func() wire.UUID {
	n := uint64(0)
	return func() (u wire.UUID) {
		n++
		binary.BigEndian.PutUint64(u[8:], n)
		return u
	}
}

// topics makes an image with topics of these partition counts.
func topics(t testing.TB, base *image.Image, counts map[string]int32) (*image.Image, *image.Delta) {
	d := image.NewDelta(base)
	offset, _ := base.Offset()
	for _, name := range sortedKeys(counts) {
		id := wire.UUID{1}
		copy(id[1:], name)
		have := int32(0)
		if old := base.Topic(name); old != nil {
			have = int32(len(old.Partitions))
		} else {
			offset++
			require.NoError(t, d.Apply(offset, 1, image.Record{Record: &logrecord.TopicRecord{Name: name, TopicId: id}}))
		}
		for p := have; p < counts[name]; p++ {
			offset++
			rec := &logrecord.PartitionRecord{PartitionId: p, TopicId: id, Replicas: []int32{1}, Isr: []int32{1}, Leader: 1}
			require.NoError(t, d.Apply(offset, 1, image.Record{Record: rec}))
		}
	}
	return d.Image(), d
}

func sortedKeys(m map[string]int32) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	return sortedStrings(keys)
}

func newBench(t testing.TB, properties map[string]string) *bench {
	layers, err := config.NewLayers(properties)
	require.NoError(t, err)
	img, _ := topics(t, image.Empty(), map[string]int32{"orders": 6, "plain": 1})
	b := &bench{t: t, now: time.UnixMilli(1_000_000), got: make(map[coordinator.Ticket]any)}
	b.m = New(Options{Environment: Environment{Image: img, Config: layers}, NewUUID: counter()})
	b.run(func(out *coordinator.Result) { b.m.Loaded(b.now, out) })
	return b
}

// run carries out a result as coordinator.Runtime does.
func (b *bench) run(f func(out *coordinator.Result)) {
	var out coordinator.Result
	f(&out)
	if len(out.Records) > 0 && b.refuse != errcode.None {
		code := b.refuse
		b.refuse = errcode.None
		if len(out.Failed) == 0 {
			for _, r := range out.Replies {
				b.got[r.Ticket] = code
			}
			return
		}
		var after coordinator.Result
		for _, f := range out.Failed {
			f(b.now, code, &after)
		}
		b.reply(&out)
		b.run(func(next *coordinator.Result) { *next = after })
		return
	}
	for _, r := range out.Records {
		offset := int64(len(b.log))
		b.append(r, out.Txn)
		if out.Txn != nil {
			require.NoError(b.t, b.m.ReplayTxn(offset, out.Txn.ProducerID, r.Key, r.Value))
			continue
		}
		require.NoError(b.t, b.m.Replay(offset, r.Key, r.Value))
	}
	b.reply(&out)
	if len(out.Written) > 0 {
		b.run(func(next *coordinator.Result) {
			for _, f := range out.Written {
				f(b.now, next)
			}
		})
	}
}

// end writes the marker of a producer's transaction.
func (b *bench) end(producer int64, commit bool) {
	b.log = append(b.log, entry{producer: producer, end: true, commit: commit})
	require.NoError(b.t, b.m.EndTxn(int64(len(b.log)-1), producer, commit))
}

func (b *bench) append(r coordinator.Record, txn *coordinator.TxnBatch) {
	key, err := logrecord.AppendKey(nil, r.Key)
	require.NoError(b.t, err)
	var value []byte
	if r.Value != nil {
		value, err = logrecord.AppendValue(nil, r.Value, r.Version)
		require.NoError(b.t, err)
	}
	e := entry{key: key, value: value, producer: -1}
	if txn != nil {
		e.producer = txn.ProducerID
	}
	b.log = append(b.log, e)
}

func (b *bench) reply(out *coordinator.Result) {
	for _, r := range out.Replies {
		_, twice := b.got[r.Ticket]
		require.False(b.t, twice, "ticket %d is answered twice", r.Ticket)
		b.got[r.Ticket] = r.Response
		if r.Code != errcode.None {
			b.got[r.Ticket] = r.Code
		}
	}
}

// ask sends a request; its reply may come later.
func (b *bench) ask(version int16, body any) coordinator.Ticket {
	b.last++
	ticket := b.last
	b.run(func(out *coordinator.Result) {
		b.m.Handle(b.now, coordinator.Request{Ticket: ticket, Body: body, Version: version, ClientID: "client", ClientHost: "/127.0.0.1"}, out)
	})
	return ticket
}

// take returns the reply to a ticket, nil when there is none yet.
func (b *bench) take(ticket coordinator.Ticket) any {
	r := b.got[ticket]
	delete(b.got, ticket)
	return r
}

func now[R any](b *bench, version int16, body any) R {
	b.t.Helper()
	r, ok := b.take(b.ask(version, body)).(R)
	require.True(b.t, ok, "no answer to %T", body)
	return r
}

// pass lets time pass, with every timer in its turn.
func (b *bench) pass(d time.Duration) {
	end := b.now.Add(d)
	for {
		due := b.m.Deadline()
		if due.IsZero() || due.After(end) {
			b.now = end
			return
		}
		if due.After(b.now) {
			b.now = due
		}
		b.run(func(out *coordinator.Result) { b.m.Tick(b.now, out) })
	}
}

// replayed is a machine that has loaded the log.
func (b *bench) replayed() *bench {
	c := &bench{t: b.t, now: b.now, got: make(map[coordinator.Ticket]any), log: b.log}
	c.m = New(Options{Environment: b.m.env, NewUUID: counter()})
	for i, e := range b.log {
		if e.end {
			require.NoError(b.t, c.m.EndTxn(int64(i), e.producer, e.commit))
			continue
		}
		key, err := logrecord.ReadKey(logrecord.GroupLog, e.key)
		require.NoError(b.t, err)
		value, _, err := logrecord.ReadValue(logrecord.GroupLog, key.APIKey(), e.value)
		require.NoError(b.t, err)
		if e.producer >= 0 {
			require.NoError(b.t, c.m.ReplayTxn(int64(i), e.producer, key, value))
			continue
		}
		require.NoError(b.t, c.m.Replay(int64(i), key, value))
	}
	c.run(func(out *coordinator.Result) { c.m.Loaded(c.now, out) })
	return c
}

func (b *bench) view(id string) *View {
	b.t.Helper()
	return now[*View](b, 0, Inspect{Group: id})
}

// durable is what of a group is in the log. A classic group that rebalances is not comparable: nil.
func (b *bench) durable(id string) *View {
	v := *b.view(id)
	if v.Type == classicType && v.State != Stable && v.State != Empty {
		return nil
	}
	v.History = nil
	for i := range v.Members {
		if v.Members[i].Classic && v.Type == classicType {
			v.Members[i].State = "" // who has yet to sync is not in the log
		}
	}
	return &v
}

func (b *bench) sawCause(id string, cause Cause) bool {
	for _, e := range b.view(id).History {
		if e.Cause == cause {
			return true
		}
	}
	return false
}

func subscription(names ...string) []byte {
	s := message.NewConsumerProtocolSubscription()
	s.Topics = names
	out, err := s.AppendTo(wire.AppendInt16(nil, 3), 3)
	if err != nil {
		panic(err)
	}
	return out
}

func joinRequest(id, member string, names ...string) *message.JoinGroupRequest {
	return &message.JoinGroupRequest{GroupId: id, MemberId: member, SessionTimeoutMs: 10_000, RebalanceTimeoutMs: 20_000, ProtocolType: "consumer",
		Protocols: []message.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription(names...)}}}
}

func syncRequest(id, member string, generation int32, assignments ...message.SyncGroupRequestAssignment) *message.SyncGroupRequest {
	name, kind := "range", "consumer"
	return &message.SyncGroupRequest{GroupId: id, MemberId: member, GenerationId: generation, ProtocolName: &name, ProtocolType: &kind, Assignments: assignments}
}

func classicAssignment(partitions ...int32) []byte {
	a := message.NewConsumerProtocolAssignment()
	a.AssignedPartitions = []message.ConsumerProtocolAssignmentTopicPartition{{Topic: "orders", Partitions: partitions}}
	out, err := a.AppendTo(wire.AppendInt16(nil, 3), 3)
	if err != nil {
		panic(err)
	}
	return out
}

// newMember gives the id of a new dynamic member.
func (b *bench) newMember(id string, names ...string) string {
	b.t.Helper()
	r := now[*message.JoinGroupResponse](b, 9, joinRequest(id, "", names...))
	require.Equal(b.t, errcode.MemberIdRequired, errcode.Code(r.ErrorCode))
	return r.MemberId
}

// classic makes a stable classic group of n members, each with its share of orders, and returns their ids.
func (b *bench) classic(id string, n int) []string {
	b.t.Helper()
	var ids []string
	var tickets []coordinator.Ticket
	for range n {
		ids = append(ids, b.newMember(id, "orders"))
		tickets = append(tickets, b.ask(9, joinRequest(id, ids[len(ids)-1], "orders")))
	}
	b.pass(6 * time.Second)
	b.finish(id, ids, tickets)
	return ids
}

// finish syncs everybody whose JoinGroup was answered.
func (b *bench) finish(id string, ids []string, tickets []coordinator.Ticket) {
	b.t.Helper()
	var leader *message.JoinGroupResponse
	generation := int32(0)
	for _, ticket := range tickets {
		r, ok := b.take(ticket).(*message.JoinGroupResponse)
		require.True(b.t, ok, "JoinGroup is not answered")
		require.Zero(b.t, r.ErrorCode, errcode.Code(r.ErrorCode).Name())
		if r.Leader == r.MemberId {
			leader = r
		}
		generation = r.GenerationId
	}
	require.NotNil(b.t, leader)
	require.Len(b.t, leader.Members, len(ids))
	var syncs []coordinator.Ticket
	var shares []message.SyncGroupRequestAssignment
	for i, member := range ids {
		var mine []int32
		for p := range int32(6) {
			if int(p)%len(ids) == i {
				mine = append(mine, p)
			}
		}
		shares = append(shares, message.SyncGroupRequestAssignment{MemberId: member, Assignment: classicAssignment(mine...)})
		if member != leader.MemberId {
			syncs = append(syncs, b.ask(5, syncRequest(id, member, generation)))
		}
	}
	for _, s := range syncs {
		require.Nil(b.t, b.got[s], "a follower is answered before the leader")
	}
	syncs = append(syncs, b.ask(5, syncRequest(id, leader.MemberId, generation, shares...)))
	for _, s := range syncs {
		r, ok := b.take(s).(*message.SyncGroupResponse)
		require.True(b.t, ok, "SyncGroup is not answered")
		require.Zero(b.t, r.ErrorCode)
		require.NotEmpty(b.t, r.Assignment)
	}
}

func (b *bench) heartbeat(id, member string, generation int32) errcode.Code {
	b.t.Helper()
	return errcode.Code(now[*message.HeartbeatResponse](b, 4, &message.HeartbeatRequest{GroupId: id, MemberId: member, GenerationId: generation}).ErrorCode)
}

func beatRequest(id, member string, epoch int32) *message.ConsumerGroupHeartbeatRequest {
	r := message.NewConsumerGroupHeartbeatRequest()
	r.GroupId, r.MemberId, r.MemberEpoch = id, member, epoch
	return r
}

func joinConsumerRequest(id, member string, names ...string) *message.ConsumerGroupHeartbeatRequest {
	r := beatRequest(id, member, 0)
	r.RebalanceTimeoutMs, r.SubscribedTopicNames = 20_000, names
	r.TopicPartitions = []message.ConsumerGroupHeartbeatRequestTopicPartitions{}
	return r
}

func (b *bench) beat(r *message.ConsumerGroupHeartbeatRequest) *message.ConsumerGroupHeartbeatResponse {
	b.t.Helper()
	return now[*message.ConsumerGroupHeartbeatResponse](b, 1, r)
}

func (b *bench) grow(counts map[string]int32) {
	img, d := topics(b.t, b.m.env.Image, counts)
	b.ask(0, Environment{Image: img, Config: b.m.env.Config, Changed: d.Topics()})
}

func member(n int) string { return fmt.Sprintf("member-%03d", n) }

func changeOfDeleted(img *image.Image) image.TopicChange {
	return image.TopicChange{Old: img.Topic("orders")}
}

// offsetRecord reads a record that commits an offset.
func offsetRecord(t testing.TB, e entry) (group string, partition int32, offset int64) {
	key, err := logrecord.ReadKey(logrecord.GroupLog, e.key)
	require.NoError(t, err)
	value, _, err := logrecord.ReadValue(logrecord.GroupLog, key.APIKey(), e.value)
	require.NoError(t, err)
	k, ok := key.(*logrecord.OffsetCommitKey)
	require.True(t, ok)
	return k.Group, k.Partition, value.(*logrecord.OffsetCommitValue).Offset
}
