package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

var t0 = time.Unix(1_700_000_000, 0)

func at(d time.Duration) time.Time { return t0.Add(d) }

func TestBackoffDoublesWithinJitterAndEndsAtMost(t *testing.T) {
	b := machine.Backoff{First: 100 * time.Millisecond, Most: time.Second}
	r := machine.NewRand(7)
	for failures, exact := range []time.Duration{0, 100, 200, 400, 800, 1000, 1000} {
		exact *= time.Millisecond
		if failures > 0 {
			require.Equal(t, exact, b.Exact(failures))
		}
		for range 100 {
			d := b.After(failures, &r)
			require.GreaterOrEqual(t, d, exact*8/10)
			require.LessOrEqual(t, d, min(exact*12/10, time.Second))
		}
	}
	require.Zero(t, machine.Backoff{}.After(5, &r))
}

func TestRandRepeatsFromItsSeed(t *testing.T) {
	a := machine.NewRand(42)
	b := a
	for range 100 {
		require.Equal(t, a.Uint64(), b.Uint64())
		n := a.Intn(10)
		require.Equal(t, n, b.Intn(10))
		require.Less(t, n, 10)
	}
}

func TestInflightAnswersInOrder(t *testing.T) {
	var f machine.Inflight[string]
	f.Started(t0, 5)
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} { // beyond the first ring
		corr := f.Correlation()
		require.EqualValues(t, 5+i, corr)
		f.Send(machine.Sent[string]{CorrelationID: corr, At: at(0), Deadline: at(time.Duration(10-i) * time.Second), Value: name})
	}
	require.Equal(t, 10, f.Len())
	require.Equal(t, at(time.Second), f.Deadline(), "the earliest of all, not of the oldest")

	_, err := f.Answer(at(1), 6)
	var ce *machine.CorrelationError
	require.ErrorAs(t, err, &ce)
	require.EqualValues(t, 5, ce.Want)
	s, err := f.Answer(at(1), 5)
	require.NoError(t, err)
	require.Equal(t, "a", s.Value)

	late, ok := f.Expired(at(time.Second))
	require.True(t, ok)
	require.Equal(t, "j", late.Value)
	var rest []string
	for s, ok := f.Drain(); ok; s, ok = f.Drain() {
		rest = append(rest, s.Value)
	}
	require.Equal(t, []string{"b", "c", "d", "e", "f", "g", "h", "i", "j"}, rest)
	_, err = f.Answer(at(1), 15)
	require.ErrorContains(t, err, "no request waits")
}

func TestIdlenessCountsFromTheLastUse(t *testing.T) {
	f := machine.Inflight[int]{MaxIdle: time.Minute}
	f.Started(t0, 0)
	require.False(t, f.Idle(at(59*time.Second)))
	require.True(t, f.Idle(at(time.Minute)))
	f.Send(machine.Sent[int]{CorrelationID: f.Correlation(), At: at(time.Minute), Deadline: at(time.Hour)})
	require.False(t, f.Idle(at(time.Hour)), "a request is under way")
	_, err := f.Answer(at(2*time.Minute), 0)
	require.NoError(t, err)
	require.Equal(t, at(3*time.Minute), f.Deadline())
}

func TestFrameLengthKnowsStrangers(t *testing.T) {
	n, err := machine.FrameLength([]byte{0, 0, 1, 0}, 1024)
	require.NoError(t, err)
	require.Equal(t, 256, n)
	for text, b := range map[string][]byte{
		"a TLS alert came":      {0x15, 3, 3, 0},
		"a TLS handshake came":  {0x16, 3, 1, 0},
		"an HTTP answer came":   []byte("HTTP"),
		"an SSH greeting came":  []byte("SSH-"),
		"announces -1 bytes":    {255, 255, 255, 255},
		"the limit is 1024":     {0, 0, 4, 1},
		"the least possible is": {0, 0, 0, 3},
	} {
		_, err := machine.FrameLength(b, 1024)
		require.ErrorContains(t, err, text)
	}
	_, err = machine.FrameLength([]byte{0x15, 3, 3, 0}, 1<<30)
	require.ErrorContains(t, err, "352518912")
}

func TestFrameMemoryFollowsWhatArrives(t *testing.T) {
	const huge = 1 << 30
	require.Equal(t, 100, machine.NextSize(0, 100, 0))
	require.Equal(t, machine.FirstChunk, machine.NextSize(0, huge, huge))
	for arrived := machine.FirstChunk; arrived < huge; {
		next := machine.NextSize(arrived, huge, 0)
		require.Greater(t, next, arrived)
		require.LessOrEqual(t, next, 4*arrived)
		arrived = next
	}
	require.Equal(t, 1<<20, machine.NextSize(machine.FirstChunk, 1<<20, 1<<20), "what was asked for comes in one piece")
}

func TestRefreshCoalescesAndBacksOff(t *testing.T) {
	r := machine.Refresh{MaxAge: 5 * time.Minute, Backoff: machine.Backoff{First: 100 * time.Millisecond, Most: time.Second}, Rand: machine.NewRand(1)}
	require.True(t, r.Due().IsZero(), "nobody asked")
	require.False(t, r.IsDue(t0))
	r.Want()
	r.Want()
	require.True(t, r.IsDue(t0))
	r.Started(t0)
	require.False(t, r.IsDue(at(time.Hour)), "one at a time")
	r.Succeeded(at(0), true, true)
	require.Equal(t, at(5*time.Minute), r.Due())

	r.Want()
	require.False(t, r.IsDue(at(70*time.Millisecond)), "wishes keep their distance")
	require.True(t, r.IsDue(at(120*time.Millisecond)))
	r.WantNew()
	require.True(t, r.IsDue(at(time.Millisecond)), "new topics do not wait")
	r.Started(at(time.Millisecond))
	r.Want() // the answer under way may be older than what this wish is about
	r.Succeeded(at(time.Millisecond), true, true)
	require.True(t, r.Wanted())

	first := machine.Refresh{MaxAge: time.Minute}
	first.WantFirst()
	require.True(t, first.IsDue(t0))
	first.Started(t0)
	first.WantFirst() // somebody else waits for the first answer too: it is under way
	first.Succeeded(t0, true, true)
	require.False(t, first.Wanted())
}

func TestRefreshStartsOverAfterTheTrigger(t *testing.T) {
	r := machine.Refresh{MaxAge: time.Minute, Backoff: machine.Backoff{First: 100 * time.Millisecond, Most: time.Second}, Rebootstrap: true, Trigger: 10 * time.Second}
	now, rounds := t0, 0
	for r.Want(); !r.StartOver(now); rounds++ {
		now = maxTime(now, r.Due())
		require.True(t, r.IsDue(now))
		r.Started(now)
		r.Failed(now)
		require.LessOrEqual(t, r.Due().Sub(now), time.Second)
	}
	require.Less(t, rounds, 25)
	r.Started(now)
	r.Succeeded(now, true, true)
	require.False(t, r.StartOver(now.Add(time.Hour)))
	r.Restart()
	require.True(t, r.StartOver(now), "REBOOTSTRAP_REQUIRED does not wait for the trigger")
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestCandidatesAskTheConnectedFirstAndSeedsLast(t *testing.T) {
	r := machine.NewRand(3)
	got := machine.Candidates([]int32{1, 2, 3}, []int32{2}, []int32{-1}, true, false, &r)
	require.EqualValues(t, 2, got[0])
	require.ElementsMatch(t, []int32{1, 3}, got[1:3])
	require.Equal(t, []int32{-1}, got[3:])
	require.Len(t, machine.Candidates([]int32{1, 2}, nil, []int32{-1}, false, false, &r), 2, "metadata.recovery.strategy=none")
	require.Equal(t, []int32{-1}, machine.Candidates([]int32{1, 2}, nil, []int32{-1}, false, true, &r))
	require.Equal(t, []int32{-1}, machine.Candidates(nil, nil, []int32{-1}, false, false, &r))
}

func TestVersionsPickTheLatestCommonOne(t *testing.T) {
	v := machine.NewVersions([]message.ApiVersion{{ApiKey: int16(wire.KeyFetch), MinVersion: 4, MaxVersion: 12}, {ApiKey: 30_000}, {ApiKey: -3}})
	got, err := v.Pick(wire.KeyFetch, 0, 0)
	require.NoError(t, err)
	require.EqualValues(t, 12, got)
	got, err = v.Pick(wire.KeyFetch, 5, 9)
	require.NoError(t, err)
	require.EqualValues(t, 9, got)
	_, err = v.Pick(wire.KeyFetch, 13, 17)
	require.ErrorContains(t, err, "is needed in version 13 to 17, the broker speaks 4 to 12")
	_, err = v.Pick(wire.KeyProduce, 0, 0)
	require.ErrorContains(t, err, "does not know Produce")
	_, err = (*machine.Versions)(nil).Pick(wire.KeyProduce, 0, 0)
	require.Error(t, err)
}

func metadata(brokers []int32, topics ...message.MetadataResponseTopic) *message.MetadataResponse {
	resp := new(message.MetadataResponse)
	resp.SetDefaults()
	for _, id := range brokers {
		resp.Brokers = append(resp.Brokers, message.MetadataResponseBroker{NodeId: id, Host: "h", Port: 9092})
	}
	resp.Topics = topics
	return resp
}

func topic(name string, id byte, code errcode.Code, epochs ...int32) message.MetadataResponseTopic {
	out := message.MetadataResponseTopic{Name: &name, TopicId: wire.UUID{id}, ErrorCode: int16(code)}
	for i, epoch := range epochs { // the leader is the epoch: a change of one shows in the other
		out.Partitions = append(out.Partitions, message.MetadataResponsePartition{PartitionIndex: int32(len(epochs) - 1 - i), LeaderId: epoch, LeaderEpoch: epoch})
	}
	return out
}

func all(string) bool { return true }

func TestLeaderEpochsNeverGoBack(t *testing.T) {
	top := machine.NewTopology().Merge(t0, metadata([]int32{1, 2, 3}, topic("a", 1, 0, 3, 3)), all)
	next := top.Merge(t0, metadata([]int32{1, 2, 3}, topic("a", 1, 0, 2, 4)), all)
	leader, epoch, _ := next.Leader("a", 1)
	require.EqualValues(t, []int32{3, 3}, []int32{leader, epoch}, "the answering broker was behind")
	leader, epoch, _ = next.Leader("a", 0)
	require.EqualValues(t, []int32{4, 4}, []int32{leader, epoch})
	leader, _, _ = top.Leader("a", 0)
	require.EqualValues(t, 3, leader, "the old picture is as it was")
	require.Equal(t, top.Version+1, next.Version)

	again := next.Merge(t0, metadata([]int32{1}, topic("a", 9, 0, 0, 0)), all)
	_, epoch, _ = again.Leader("a", 1)
	require.Zero(t, epoch, "another id: the topic was created anew, its epochs begin anew")
	require.Nil(t, again.TopicByID(wire.UUID{1}))
	require.Len(t, again.Brokers, 1)
}

func TestPassingTopicErrorsKeepWhatIsKnown(t *testing.T) {
	top := machine.NewTopology().Merge(t0, metadata([]int32{1}, topic("a", 1, 0, 1)), all)
	next := top.Merge(t0, metadata([]int32{1}, topic("a", 0, errcode.LeaderNotAvailable)), all)
	_, _, ok := next.Leader("a", 0)
	require.True(t, ok)
	code, waitable := next.Missing("a")
	require.Equal(t, errcode.LeaderNotAvailable, code)
	require.True(t, waitable)
	next = top.Merge(t0, metadata([]int32{1}, topic("a", 0, errcode.UnknownTopicOrPartition)), all)
	_, _, ok = next.Leader("a", 0)
	require.False(t, ok, "it was deleted")
	next = top.Merge(t0, metadata([]int32{1}, topic("b", 2, 0, 1)), func(name string) bool { return name == "b" })
	require.Nil(t, next.Topic("a"), "nobody follows it any more")
	require.Len(t, next.Topics(), 1)
}

func TestLeaderHintsAreTakenWhenNewer(t *testing.T) {
	top := machine.NewTopology().Merge(t0, metadata([]int32{1}, topic("a", 1, 0, 5)), all)
	require.Same(t, top, top.WithLeader(wire.UUID{1}, 0, 2, 5, nil), "not newer")
	require.Same(t, top, top.WithLeader(wire.UUID{1}, 7, 2, 6, nil), "no such partition")
	require.Same(t, top, top.WithLeader(wire.UUID{7}, 0, 2, 6, nil), "no such topic")
	require.Same(t, top, top.WithLeader(wire.UUID{1}, 0, 2, 6, nil), "nobody said where broker 2 is")
	next := top.WithLeader(wire.UUID{1}, 0, 2, 6, []machine.Node{{ID: 2, Host: "new", Port: 1}})
	leader, epoch, _ := next.Leader("a", 0)
	require.EqualValues(t, []int32{2, 6}, []int32{leader, epoch})
	require.Equal(t, "new:1", next.Brokers[2].Addr())
	require.Len(t, top.Brokers, 1)
	leader, _, _ = top.Leader("a", 0)
	require.EqualValues(t, 5, leader)
}
