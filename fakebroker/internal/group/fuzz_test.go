package group

import (
	"testing"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// FuzzRecords replays what might stand in a log: whatever can be decoded can be taken, served and left again.
func FuzzRecords(f *testing.F) {
	b := newBench(f, nil)
	b.classic("g", 2)
	b.beat(joinConsumerRequest("g", "B", "orders"))
	now[*message.OffsetCommitResponse](b, 9, commitRequest("idle", "", -1, 5))
	b.beat(beatRequest("g", "B", -1))
	var all []byte
	for _, e := range b.log {
		all = appendFuzzRecord(all, e.key, e.value)
		f.Add(appendFuzzRecord(nil, e.key, e.value))
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBench(t, nil)
		b.m.loaded = false
		r := wire.NewReader(data)
		for r.Err() == nil && r.Remaining() > 0 {
			key, err := logrecord.ReadKey(logrecord.GroupLog, r.Bytes())
			raw := r.NullableBytes()
			if err != nil || r.Err() != nil {
				break
			}
			value, _, err := logrecord.ReadValue(logrecord.GroupLog, key.APIKey(), raw)
			if err != nil || b.m.Replay(0, key, value) != nil {
				break
			}
			producer := int64(len(raw) % 3) // and the same in transactions, which end or do not
			if b.m.ReplayTxn(1, producer, key, value) != nil || producer > 0 && b.m.EndTxn(2, producer, producer == 1) != nil {
				break
			}
		}
		b.run(func(out *coordinator.Result) { b.m.Loaded(b.now, out) })
		serveAll(b)
	})
}

func appendFuzzRecord(dst, key, value []byte) []byte {
	dst = append(wire.AppendInt32(dst, int32(len(key))), key...)
	if value == nil {
		return wire.AppendInt32(dst, -1)
	}
	return append(wire.AppendInt32(dst, int32(len(value))), value...)
}

// serveAll asks everything of every group, and lets time pass.
func serveAll(b *bench) {
	for _, g := range b.m.sorted() {
		id := g.id
		b.ask(6, Describe{Group: id})
		b.ask(1, DescribeConsumer{Group: id})
		v := b.view(id)
		for _, x := range v.Members[:min(len(v.Members), 3)] {
			b.ask(9, joinRequest(id, x.ID, "orders"))
			b.ask(5, syncRequest(id, x.ID, x.Epoch))
			b.heartbeat(id, x.ID, x.Epoch)
			b.ask(1, beatRequest(id, x.ID, x.Epoch))
		}
		b.ask(1, joinConsumerRequest(id, "fuzz", "orders"))
		b.ask(8, FetchOffsets{Group: message.OffsetFetchRequestGroup{GroupId: id, MemberEpoch: -1}})
	}
	b.ask(5, &message.ListGroupsRequest{})
	for range 200 { // as often as it may take; timeouts of a damaged log can be very short
		if due := b.m.Deadline(); due.IsZero() || due.After(b.now.Add(time.Minute)) {
			break
		}
		b.pass(max(b.m.Deadline().Sub(b.now), 0))
	}
	b.ask(5, CommitInTransaction{Request: &message.TxnOffsetCommitRequest{GroupId: "g", ProducerId: 1, GenerationIdOrMemberEpoch: -1,
		Topics: []message.TxnOffsetCommitRequestTopic{{Name: "orders", Partitions: []message.TxnOffsetCommitRequestPartition{{}}}}}})
	b.end(1, true)
	b.ask(2, Delete{Groups: []string{"g", "idle"}})
}

// groupKeys are the requests that reach the machine as they are.
var groupKeys = []wire.Key{wire.KeyJoinGroup, wire.KeySyncGroup, wire.KeyHeartbeat, wire.KeyLeaveGroup, wire.KeyOffsetCommit, wire.KeyOffsetDelete,
	wire.KeyListGroups, wire.KeyConsumerGroupHeartbeat}

// FuzzRequests sends a machine with both kinds of groups whatever can be decoded. Every request is answered once, at the
// latest when the coordinator goes.
func FuzzRequests(f *testing.F) {
	for i, req := range []message.Request{joinRequest("c", "", "orders"), syncRequest("c", "m", 1), &message.HeartbeatRequest{GroupId: "c"},
		&message.LeaveGroupRequest{GroupId: "c", Members: []message.MemberIdentity{{MemberId: "A"}}}, commitRequest("m", "A", 2, 7),
		&message.OffsetDeleteRequest{GroupId: "m"}, &message.ListGroupsRequest{}, joinConsumerRequest("m", "B", "orders")} {
		_, version, _ := wire.BrokerVersions(req.Key())
		body, err := req.AppendTo(nil, version)
		if err != nil {
			continue
		}
		f.Add(uint8(i), uint8(version), body)
	}
	f.Fuzz(func(t *testing.T, key, v uint8, body []byte) {
		k := groupKeys[int(key)%len(groupKeys)]
		low, high, _ := wire.BrokerVersions(k)
		version := low + int16(v)%(high-low+1)
		req := message.NewRequest(k)
		if req.ReadFrom(wire.NewReader(body), version) != nil {
			return
		}
		b := newBench(t, nil)
		b.classic("c", 2)
		b.beat(joinConsumerRequest("m", "A", "orders"))
		clear(b.got)
		ticket := b.ask(version, req)
		serveAll(b)
		b.run(func(out *coordinator.Result) { b.m.Drop(errcode.NotCoordinator, out) })
		if _, ok := b.got[ticket]; !ok {
			t.Fatalf("%s is never answered", k)
		}
		b.replayed()
	})
}
