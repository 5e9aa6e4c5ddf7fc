package group

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// txnCommit is TxnOffsetCommit of one producer, by a member or (generation -1, no name) by nobody.
func txnCommit(producer int64, id, member string, generation int32, offsets ...int64) CommitInTransaction {
	req := &message.TxnOffsetCommitRequest{TransactionalId: "t", GroupId: id, ProducerId: producer, MemberId: member, GenerationIdOrMemberEpoch: generation,
		Topics: []message.TxnOffsetCommitRequestTopic{{Name: "orders"}}}
	for i, offset := range offsets {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, message.TxnOffsetCommitRequestPartition{PartitionIndex: int32(i), CommittedOffset: offset})
	}
	return CommitInTransaction{Request: req}
}

// commitTxn returns the code of the first partition.
func (b *bench) commitTxn(version int16, c CommitInTransaction) errcode.Code {
	b.t.Helper()
	return errcode.Code(now[*message.TxnOffsetCommitResponse](b, version, c).Topics[0].Partitions[0].ErrorCode)
}

// stable is what a reader that requires stable offsets is told of partition 0.
func (b *bench) stable(id string) (offset int64, code errcode.Code) {
	b.t.Helper()
	r := now[message.OffsetFetchResponseGroup](b, 8, FetchOffsets{RequireStable: true, Group: message.OffsetFetchRequestGroup{GroupId: id, MemberEpoch: -1,
		Topics: []message.OffsetFetchRequestTopics{{Name: "orders", PartitionIndexes: []int32{0}}}}})
	p := r.Topics[0].Partitions[0]
	return p.CommittedOffset, errcode.Code(p.ErrorCode)
}

func TestOffsetsOfATransactionCountWithItsMarker(t *testing.T) {
	for _, commit := range []bool{true, false} {
		b := newBench(t, nil)
		now[*message.OffsetCommitResponse](b, 9, commitRequest("g", "", -1, 5))
		require.Equal(t, errcode.None, b.commitTxn(5, txnCommit(1, "g", "", -1, 7)))
		require.Equal(t, errcode.None, b.commitTxn(5, txnCommit(1, "g", "", -1, 9)))
		want := int64(5)
		for _, x := range []*bench{b, b.replayed()} {
			offset, _ := x.fetched("g")
			require.EqualValues(t, 5, offset, "whoever does not ask for stable offsets gets what is committed")
			_, code := x.stable("g")
			require.Equal(t, errcode.UnstableOffsetCommit, code)
		}
		b.end(2, true)
		_, code := b.stable("g")
		require.Equal(t, errcode.UnstableOffsetCommit, code, "the end of another producer's")
		b.end(1, commit)
		if commit {
			want = 9 // the latest of the transaction
		}
		for _, x := range []*bench{b, b.replayed()} {
			offset, code := x.stable("g")
			require.Equal(t, want, offset)
			require.Equal(t, errcode.None, code)
			require.Empty(t, x.m.txns)
		}
	}
}

func TestALaterPlainCommitOutlastsTheTransaction(t *testing.T) {
	b := newBench(t, nil)
	b.commitTxn(5, txnCommit(1, "g", "", -1, 7))
	now[*message.OffsetCommitResponse](b, 9, commitRequest("g", "", -1, 3))
	b.end(1, true)
	offset, code := b.stable("g")
	require.EqualValues(t, 3, offset)
	require.Equal(t, errcode.None, code)
}

func TestAnAbortedTransactionLeavesAGroupWithoutOffsets(t *testing.T) {
	b := newBench(t, nil)
	b.commitTxn(5, txnCommit(1, "g", "", -1, 7))
	require.Equal(t, Empty, b.view("g").State)
	b.end(1, false)
	offset, code := b.stable("g")
	require.EqualValues(t, -1, offset)
	require.Equal(t, errcode.None, code)
	b.pass(25 * time.Hour)
	require.Equal(t, Dead, b.view("g").State)
}

func TestWhoMayCommitInATransaction(t *testing.T) {
	instance := "i"
	for name, c := range map[string]struct {
		version int16
		change  func(*message.TxnOffsetCommitRequest)
		code    errcode.Code
	}{
		"a member of the generation":           {version: 3},
		"nobody, as before KIP-447":            {version: 2, change: func(r *message.TxnOffsetCommitRequest) { r.MemberId, r.GenerationIdOrMemberEpoch = "", -1 }},
		"no member of an older generation":     {version: 3, change: func(r *message.TxnOffsetCommitRequest) { r.GenerationIdOrMemberEpoch-- }, code: errcode.IllegalGeneration},
		"no member of a generation to come":    {version: 3, change: func(r *message.TxnOffsetCommitRequest) { r.GenerationIdOrMemberEpoch++ }, code: errcode.IllegalGeneration},
		"no stranger":                          {version: 3, change: func(r *message.TxnOffsetCommitRequest) { r.MemberId = "x" }, code: errcode.UnknownMemberId},
		"no other instance":                    {version: 3, change: func(r *message.TxnOffsetCommitRequest) { r.GroupInstanceId = &instance }, code: errcode.UnknownMemberId},
		"nobody of a group that is not there":  {version: 5, change: func(r *message.TxnOffsetCommitRequest) { r.GroupId = "absent" }, code: errcode.IllegalGeneration},
		"which newer clients are told by name": {version: 6, change: func(r *message.TxnOffsetCommitRequest) { r.GroupId = "absent" }, code: errcode.GroupIdNotFound},
		"anybody who only stores offsets there": {version: 5, change: func(r *message.TxnOffsetCommitRequest) {
			r.GroupId, r.MemberId, r.GenerationIdOrMemberEpoch = "absent", "", -1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			members := b.classic("g", 1)
			v := b.view("g")
			req := txnCommit(1, "g", members[0], v.Generation, 7)
			if c.change != nil {
				c.change(req.Request)
			}
			if c.version >= 6 {
				req.Request.Topics[0].TopicId = b.m.env.Image.Topic("orders").ID
			}
			require.Equal(t, c.code, b.commitTxn(c.version, req))
			require.Equal(t, c.code == errcode.None, !b.pendingEmpty())
		})
	}
}

func (b *bench) pendingEmpty() bool {
	for _, g := range b.m.groups {
		if !g.pending.empty() {
			return false
		}
	}
	return true
}

// A rebalance stops the commits of members, but not those of their transactions.
func TestTransactionsCommitWhileAGenerationForms(t *testing.T) {
	b := newBench(t, nil)
	members := b.classic("g", 1)
	b.m.groups["g"].classic.state = CompletingRebalance
	g := b.m.groups["g"].classic.generation
	plain := now[*message.OffsetCommitResponse](b, 8, commitRequest("g", members[0], g, 1))
	require.EqualValues(t, errcode.RebalanceInProgress, plain.Topics[0].Partitions[0].ErrorCode)
	require.Equal(t, errcode.None, b.commitTxn(3, txnCommit(1, "g", members[0], g, 1)))
}

func TestMembersOfConsumerGroupsCommitByEpoch(t *testing.T) {
	b := newBench(t, nil)
	joined := b.beat(joinConsumerRequest("m", "A", "orders"))
	byID := func(c CommitInTransaction) CommitInTransaction {
		c.Request.Topics[0].TopicId = b.m.env.Image.Topic("orders").ID
		return c
	}
	require.Equal(t, errcode.None, b.commitTxn(3, txnCommit(1, "m", "A", joined.MemberEpoch, 1)), "OffsetCommit would need version 9")
	require.Equal(t, errcode.None, b.commitTxn(2, txnCommit(1, "m", "", -1, 1)))
	require.Equal(t, errcode.IllegalGeneration, b.commitTxn(5, txnCommit(1, "m", "A", joined.MemberEpoch+1, 1)))
	require.Equal(t, errcode.StaleMemberEpoch, b.commitTxn(6, byID(txnCommit(1, "m", "A", joined.MemberEpoch+1, 1))))
	require.Equal(t, errcode.UnknownMemberId, b.commitTxn(5, txnCommit(1, "m", "B", joined.MemberEpoch, 1)))
}

func TestWhatIsNotThereIsNotCommitted(t *testing.T) {
	b := newBench(t, map[string]string{"offset.metadata.max.bytes": "3"})
	c := txnCommit(1, "g", "", -1, 1, 2)
	c.Request.Topics[0].Partitions[0].PartitionIndex = 99
	long := "long"
	c.Request.Topics[0].Partitions[1].CommittedMetadata = &long
	c.Request.Topics = append(c.Request.Topics, message.TxnOffsetCommitRequestTopic{Name: "nowhere", Partitions: []message.TxnOffsetCommitRequestPartition{{}}})
	var got []string
	for _, topic := range now[*message.TxnOffsetCommitResponse](b, 5, c).Topics {
		for _, p := range topic.Partitions {
			got = append(got, fmt.Sprint(topic.Name, p.PartitionIndex, errcode.Code(p.ErrorCode).Name()))
		}
	}
	require.Equal(t, []string{"nowhere0UNKNOWN_TOPIC_OR_PARTITION", "orders99UNKNOWN_TOPIC_OR_PARTITION", "orders1OFFSET_METADATA_TOO_LARGE"}, got)
	require.True(t, b.pendingEmpty())
	byID := now[*message.TxnOffsetCommitResponse](b, 6, txnCommit(1, "g", "", -1, 1))
	require.EqualValues(t, errcode.None, byID.Topics[0].Partitions[0].ErrorCode, "the server has resolved the id")
	unknown := txnCommit(1, "g", "", -1, 1)
	unknown.Request.Topics[0].Name, unknown.Request.Topics[0].TopicId = "", wire.UUID{9}
	require.Equal(t, errcode.UnknownTopicId, b.commitTxn(6, unknown))
}

func TestPendingOffsetsKeepWhatTheyAreAbout(t *testing.T) {
	b := newBench(t, nil)
	now[*message.OffsetCommitResponse](b, 9, commitRequest("g", "", -1, 5))
	b.commitTxn(5, txnCommit(1, "g", "", -1, 7))
	b.commitTxn(5, txnCommit(1, "only", "", -1, 7))
	b.pass(8 * 24 * time.Hour)
	offset, _ := b.fetched("g")
	require.EqualValues(t, 5, offset, "what a transaction may change does not expire")
	require.Equal(t, Empty, b.view("only").State, "nor does its group")
	b.end(1, false)
	b.pass(24 * time.Hour)
	require.Equal(t, []State{Dead, Dead}, []State{b.view("g").State, b.view("only").State})
}

func TestDeletionTakesPendingOffsetsAlong(t *testing.T) {
	for name, remove := range map[string]func(b *bench){
		"the group": func(b *bench) {
			require.Equal(b.t, []errcode.Code{errcode.None}, now[[]errcode.Code](b, 2, Delete{Groups: []string{"g"}}))
		},
		"the offset": func(b *bench) {
			now[*message.OffsetDeleteResponse](b, 0, &message.OffsetDeleteRequest{GroupId: "g", Topics: []message.OffsetDeleteRequestTopic{
				{Name: "orders", Partitions: []message.OffsetDeleteRequestPartition{{PartitionIndex: 0}}}}})
		},
		"the topic": func(b *bench) {
			old := b.m.env.Image.Topic("orders")
			b.ask(0, Environment{Image: image.Empty(), Config: b.m.env.Config, Changed: []image.TopicChange{{Old: old}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.commitTxn(5, txnCommit(1, "g", "", -1, 7))
			b.commitTxn(5, txnCommit(2, "g", "", -1, 8))
			remove(b)
			for _, x := range []*bench{b, b.replayed()} {
				require.True(t, x.pendingEmpty())
				x.end(1, true)
				x.end(2, true)
				require.Empty(t, x.view("g").Offsets)
				require.Empty(t, x.m.txns)
			}
		})
	}
}

// TestOffsetsAreTheSameAfterAnyLoad commits plainly and in transactions in any order, and loads the log now and then: it
// must be as if nothing had happened, and what is committed be what the order of the log says.
func TestOffsetsAreTheSameAfterAnyLoad(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := newBench(t, nil)
		for range 60 {
			id, producer := fmt.Sprint("g", rnd.IntN(2)), rnd.Int64N(3)
			switch rnd.IntN(6) {
			case 0:
				now[*message.OffsetCommitResponse](b, 9, commitRequest(id, "", -1, rnd.Int64N(1000)))
			case 1, 2:
				b.commitTxn(5, txnCommit(producer, id, "", -1, rnd.Int64N(1000), rnd.Int64N(1000)))
			case 3, 4:
				b.end(producer, rnd.IntN(2) == 0)
			case 5:
				last := b.last
				b = b.replayed()
				b.last = last
			}
		}
		for id := range b.m.groups {
			want := committedByLog(b, id)
			for _, x := range []*bench{b, b.replayed()} {
				for _, o := range x.view(id).Offsets {
					require.Equal(t, want[o.Partition], o.Offset, "seed %d", seed)
					delete(want, o.Partition)
				}
				require.Empty(t, want, "seed %d", seed)
				want = committedByLog(b, id)
				for p := range int32(2) {
					require.Equal(t, b.m.groups[id].pending.has("orders", p), x.m.groups[id].pending.has("orders", p), "seed %d", seed)
				}
			}
		}
	}
}

// committedByLog is what a group has committed by a plain pass: of all records that count, the last one.
func committedByLog(b *bench, id string) map[int32]int64 {
	type at struct{ record, offset int64 }
	have, open := make(map[int32]at), make(map[int64]map[int32]at)
	for i, e := range b.log {
		if e.end {
			for p, a := range open[e.producer] {
				if e.commit && a.record >= have[p].record {
					have[p] = a
				}
			}
			delete(open, e.producer)
			continue
		}
		group, partition, offset := offsetRecord(b.t, e)
		switch {
		case group != id:
		case e.producer < 0:
			have[partition] = at{int64(i), offset}
		default:
			if open[e.producer] == nil {
				open[e.producer] = make(map[int32]at)
			}
			open[e.producer][partition] = at{int64(i), offset}
		}
	}
	out := make(map[int32]int64)
	for p, a := range have {
		out[p] = a.offset
	}
	return out
}

var _ coordinator.TxnShard = (*Machine)(nil)
