package server

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

var morning = time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)

// sessionTest drives a cache as a client would.
type sessionTest struct {
	t *testing.T
	s *fetchSessions
}

func newSessionTest(t *testing.T, slots int) *sessionTest {
	next := int64(100)
	return &sessionTest{t: t, s: newFetchSessions(slots, func(int64) int64 { next++; return next })}
}

func fetchOf(id, epoch int32, indexes ...int32) *message.FetchRequest {
	req := message.NewFetchRequest()
	req.SessionId, req.SessionEpoch = id, epoch
	if len(indexes) > 0 {
		t := message.FetchRequestFetchTopic{Topic: "t"}
		for _, i := range indexes {
			t.Partitions = append(t.Partitions, message.FetchRequestFetchPartition{Partition: i, PartitionMaxBytes: 1000})
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

// fetch answers a request: partitions in data have records, all have the given high watermark.
func (st *sessionTest) fetch(now time.Time, req *message.FetchRequest, high int64, data ...int32) (id int32, mentioned, read []int32) {
	st.t.Helper()
	ctx, code := st.s.context(req, 12, now)
	require.Equal(st.t, errcode.None, code)
	for i := range ctx.parts {
		fp := &ctx.parts[i]
		read = append(read, fp.index)
		fp.result = fetchResult{highWatermark: high, diverging: failedFetch(0).diverging}
		for _, d := range data {
			if d == fp.index {
				fp.result.size = 10
			}
		}
	}
	ctx.settle(now)
	for i := range ctx.parts {
		if ctx.parts[i].mention() {
			mentioned = append(mentioned, ctx.parts[i].index)
		}
	}
	id = ctx.sessionID
	ctx.done()
	return id, mentioned, read
}

func TestSessionMentionsOnlyWhatChanged(t *testing.T) {
	st := newSessionTest(t, 10)
	id, mentioned, _ := st.fetch(morning, fetchOf(0, 0, 0, 1, 2), 5)
	require.NotZero(t, id)
	require.Equal(t, []int32{0, 1, 2}, mentioned, "a full fetch mentions all")
	_, mentioned, read := st.fetch(morning, fetchOf(id, 1), 5)
	require.Equal(t, []int32{0, 1, 2}, read)
	require.Empty(t, mentioned)
	_, mentioned, _ = st.fetch(morning, fetchOf(id, 2), 5, 1)
	require.Equal(t, []int32{1}, mentioned)
	_, mentioned, read = st.fetch(morning, fetchOf(id, 3), 6)
	require.Equal(t, []int32{0, 2, 1}, read, "who got records is read last")
	require.Equal(t, []int32{0, 2, 1}, mentioned, "the high watermark moved")
}

func TestSessionAddsAndForgets(t *testing.T) {
	st := newSessionTest(t, 10)
	id, _, _ := st.fetch(morning, fetchOf(0, 0, 0, 1), 5)
	req := fetchOf(id, 1, 7)
	req.ForgottenTopicsData = []message.FetchRequestForgottenTopic{{Topic: "t", Partitions: []int32{0, 99}}}
	_, mentioned, read := st.fetch(morning, req, 5)
	require.Equal(t, []int32{1, 7}, read)
	require.Equal(t, []int32{7}, mentioned)
	req = fetchOf(id, 2)
	req.ForgottenTopicsData = []message.FetchRequestForgottenTopic{{Topic: "t", Partitions: []int32{1, 7}}}
	left, _, read := st.fetch(morning, req, 5)
	require.Empty(t, read)
	require.Zero(t, left, "an empty session ends")
	_, code := st.s.context(fetchOf(id, 3), 12, morning)
	require.Equal(t, errcode.FetchSessionIdNotFound, code)
}

func TestSessionErrors(t *testing.T) {
	st := newSessionTest(t, 10)
	id, _, _ := st.fetch(morning, fetchOf(0, 0, 0), 5)
	_, code := st.s.context(fetchOf(id, 2), 12, morning)
	require.Equal(t, errcode.InvalidFetchSessionEpoch, code)
	_, code = st.s.context(fetchOf(id, 1), 13, morning)
	require.Equal(t, errcode.FetchSessionTopicIdError, code)
	_, code = st.s.context(fetchOf(id+1, 1), 12, morning)
	require.Equal(t, errcode.FetchSessionIdNotFound, code)
	other, _, _ := st.fetch(morning, fetchOf(id, 0, 0), 5)
	require.NotEqual(t, id, other, "a full fetch with a session closes it and makes another")
	require.Len(t, st.s.byID, 1)
	none, _, _ := st.fetch(morning, fetchOf(other, -1, 0), 5)
	require.Zero(t, none)
	require.Empty(t, st.s.byID)
}

func TestSessionEpochWraps(t *testing.T) {
	st := newSessionTest(t, 10)
	id, _, _ := st.fetch(morning, fetchOf(0, 0, 0), 5)
	st.s.byID[id].epoch = math.MaxInt32
	st.fetch(morning, fetchOf(id, math.MaxInt32), 5)
	require.EqualValues(t, 1, st.s.byID[id].epoch)
}

func TestErrorIsMentionedAndSoIsItsEnd(t *testing.T) {
	c := &cachedPartition{highWatermark: -1, logStart: -1}
	ok := fetchResult{highWatermark: 5, diverging: failedFetch(0).diverging}
	failed := failedFetch(errcode.NotLeaderOrFollower)
	require.True(t, c.tell(&ok))
	require.False(t, c.tell(&ok))
	require.True(t, c.tell(&failed))
	require.True(t, c.tell(&failed))
	require.True(t, c.tell(&ok))
	require.False(t, c.tell(&ok))
}

func TestSessionCacheIsBoundedAndEvicts(t *testing.T) {
	st := newSessionTest(t, 2)
	small, _, _ := st.fetch(morning, fetchOf(0, 0, 0), 5)
	large, _, _ := st.fetch(morning, fetchOf(0, 0, 0, 1, 2), 5)
	none, _, _ := st.fetch(morning.Add(time.Minute), fetchOf(0, 0, 0, 1), 5)
	require.Zero(t, none, "nobody goes in the first two minutes")
	later := morning.Add(119 * time.Second)
	st.fetch(later, fetchOf(small, 1), 5)
	st.fetch(later, fetchOf(large, 1), 5)
	middle, _, _ := st.fetch(morning.Add(121*time.Second), fetchOf(0, 0, 0, 1), 5)
	require.NotZero(t, middle, "a smaller session that is old enough makes room")
	require.Nil(t, st.s.byID[small])
	require.NotNil(t, st.s.byID[large])
	tiny, _, _ := st.fetch(morning.Add(time.Hour), fetchOf(0, 0, 0), 5)
	require.NotZero(t, tiny, "an unused one goes whatever its size")
}

func TestTwoFetchesOfOneSessionDoNotShareMemory(t *testing.T) {
	st := newSessionTest(t, 2)
	id, _, _ := st.fetch(morning, fetchOf(0, 0, 0, 1), 5)
	a, code := st.s.context(fetchOf(id, 1), 12, morning)
	require.Equal(t, errcode.None, code)
	b, code := st.s.context(fetchOf(id, 2), 12, morning)
	require.Equal(t, errcode.None, code)
	require.NotSame(t, &a.parts[0], &b.parts[0])
	a.done()
	b.done()
}
