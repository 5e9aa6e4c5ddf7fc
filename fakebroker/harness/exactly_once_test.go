package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/harness"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// copied is a cluster with records in "in" and "out", for checks to look at.
type copied struct {
	*testing.T
	k  *fakebroker.Cluster
	cl *client.Client
	p  *producer.Producer
}

func newCopied(t *testing.T) *copied {
	k := fakebroker.Start(t, fakebroker.Topic("in", 2), fakebroker.Topic("out", 2))
	cl, err := client.New(client.Cluster(k))
	require.NoError(t, err)
	p, err := producer.New(cl)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close(context.Background()))
		require.NoError(t, cl.Close(context.Background()))
	})
	return &copied{t, k, cl, p}
}

// write writes values, "partition:key=value" each.
func (c *copied) write(topic string, records ...string) {
	c.Helper()
	for _, text := range records {
		where, rest, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(rest, "=")
		r := producer.Record{Topic: topic, Key: []byte(key), Value: []byte(value), Headers: []producer.Header{{Key: "id", Value: []byte(strings.ToLower(value))}}}
		require.NoError(c, c.p.Submit(c.Context(), r.To(int32(where[0]-'0')), nil))
	}
	require.NoError(c, c.p.Flush(c.Context()))
}

func (c *copied) check(opts ...harness.Option) *harness.Result {
	c.Helper()
	r, err := harness.ExactlyOnce(c.Context(), c.cl, "in", "out", append([]harness.Option{harness.Within(0)}, opts...)...)
	require.NoError(c, err)
	return r
}

func TestExactlyOnceFindsNothingInACopy(t *testing.T) {
	c := newCopied(t)
	c.write("in", "0:k=a", "1:l=b", "0:k=c")
	c.write("out", "1:l=b", "0:k=a", "0:k=c")
	r := c.check()
	require.NoError(t, r.Err())
	require.Equal(t, "in 3 · out 3 · duplicates 0 · lost 0", r.String())
}

func TestExactlyOnceNamesWhatDiffers(t *testing.T) {
	c := newCopied(t)
	c.write("in", "0:k=a", "1:l=b", "0:k=c", "0:k=d")
	c.write("out", "0:k=a", "0:k=d", "0:k=c", "1:k=a", "1:x=y")
	r := c.check()
	require.EqualError(t, r.Err(), `not exactly once: in 4 · out 5 · duplicates 1 · lost 1 · unexpected 1 · reordered 1
  order: key "k": "c" (in-0@1) is at out-0@2, behind "d" (in-0@2) at out-0@1
  unexpected: out-1@1 has "y" (key "x"), which comes from no record of in
  duplicate: "a" (in-0@0, key "k") is at out-0@0 and out-1@0
  lost: "b" (in-1@0, key "l") is not in out`)
	require.Equal(t, 0, c.check(harness.AnyOrder()).Reordered)
}

func TestExactlyOnceDescribesTheFirstAndCountsAll(t *testing.T) {
	c := newCopied(t)
	for i := range 40 {
		c.write("in", fmt.Sprintf("%d:k=%d", i%2, i))
	}
	r := c.check()
	require.Equal(t, 40, r.Lost)
	require.Equal(t, 5, strings.Count(r.Err().Error(), "lost: "))
}

func TestExactlyOnceKnowsWhatARecordBecomes(t *testing.T) {
	c := newCopied(t)
	c.write("in", "0:k=a b", "0:k=", "1:l=b")
	c.write("out", "0:k=b", "0:k=a", "1:k=b")
	words := harness.Expect(func(r consumer.Record) []string { return strings.Fields(string(r.Value)) })
	require.NoError(t, c.check(words).Err())
	c.write("out", "1:k=b", "1:k=b")
	require.Equal(t, 2, c.check(words).Duplicates)
	c.write("in", "0:k=c b", "0:k=b b b")
	r := c.check(words)
	require.Equal(t, 3, r.Lost) // c, and two of six b
	require.Zero(t, r.Duplicates)
}

func TestExactlyOnceKnowsRecordsByKeyHeaderOrWhatItIsTold(t *testing.T) {
	c := newCopied(t)
	c.write("in", "0:k=a", "1:l=b")
	c.write("out", "0:k=A", "1:l=B")
	require.Equal(t, 2, c.check().Lost)
	require.NoError(t, c.check(harness.ByKey()).Err())
	require.NoError(t, c.check(harness.ByHeader("id")).Err())
	require.NoError(t, c.check(harness.OutIdentity(func(r consumer.Record) string { return strings.ToLower(string(r.Value)) })).Err())
}

func TestExactlyOnceAsksForTheGroup(t *testing.T) {
	c := newCopied(t)
	c.write("in", "0:k=a", "0:k=b", "1:l=c")
	c.write("out", "0:k=a", "0:k=b", "1:l=c")
	r := c.check(harness.Group("g"))
	require.EqualValues(t, 3, r.Left)
	con, err := consumer.New(c.cl, consumer.Group("g"), consumer.Subscribe("in"), consumer.StartAt(consumer.Earliest))
	require.NoError(t, err)
	for n := 0; n < 3; {
		list, err := con.Poll(t.Context(), 0)
		require.NoError(t, err)
		n += len(list)
	}
	require.NoError(t, con.Commit(t.Context()))
	require.NoError(t, con.Close(t.Context()))
	require.NoError(t, c.check(harness.Group("g")).Err())
	c.write("in", "1:l=d")
	c.write("out", "1:l=d")
	require.ErrorContains(t, c.check(harness.Group("g")).Err(), `group "g" has committed in-1 up to offset 1, there are records up to 1`)
}

// failing notes what a test would have failed with.
type failing struct {
	*testing.T
	failed, logged string
}

func (f *failing) Fatalf(format string, args ...any) { f.failed = fmt.Sprintf(format, args...) }
func (f *failing) Logf(format string, args ...any)   { f.logged = fmt.Sprintf(format, args...) }

func TestCheckExactlyOnceFailsTheTest(t *testing.T) {
	c := newCopied(t)
	c.write("in", "0:k=a")
	f := &failing{T: t}
	harness.CheckExactlyOnce(f, c.k, "in", "out", harness.Within(time.Millisecond))
	require.Contains(t, f.failed, "CheckExactlyOnce: not exactly once: in 1 · out 0 · duplicates 0 · lost 1\n")
	c.write("out", "0:k=a")
	f = &failing{T: t}
	harness.CheckExactlyOnce(f, c.k, "in", "out")
	require.Empty(t, f.failed)
	require.Equal(t, "CheckExactlyOnce: in → out: in 1 · out 1 · duplicates 0 · lost 0", f.logged)
}

// A misspelt topic is not a topic of which nothing is lost; nor is it made by asking.
func TestExactlyOnceWantsItsTopics(t *testing.T) {
	c := newCopied(t)
	for wrong, topics := range map[string][2]string{"inn": {"inn", "out"}, "outt": {"in", "outt"}} {
		_, err := harness.ExactlyOnce(t.Context(), c.cl, topics[0], topics[1])
		require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
		require.ErrorContains(t, err, "topic "+wrong)
		_, err = c.k.Offsets(wrong, 0)
		require.ErrorContains(t, err, "there is no partition "+wrong)
	}
	f := &failing{T: t}
	harness.CheckExactlyOnce(f, c.k, "in", "outt")
	require.Contains(t, f.failed, "topic outt")
}

// A cluster that has records and gives none out does not hold the check for ever; the error says where it stands.
func TestExactlyOnceGivesUpWhereNothingComes(t *testing.T) {
	inBubble(t, func(r *recorded) {
		p, err := producer.New(r.cl)
		require.NoError(r, err)
		_, err = r.rec.Send(r.Context(), p, producer.Record{Topic: "in", Value: []byte("a")})
		require.NoError(r, err)
		require.NoError(r, p.Close(r.Context()))
		in := r.k.Inject(fault.Fetch().Delay(time.Hour))
		began := time.Now()
		_, err = harness.ExactlyOnce(r.Context(), r.cl, "in", "out")
		in.Remove()
		require.ErrorContains(r, err, "read in: nothing has come for 1m0s: in-0 is at offset 0 of 1")
		require.Less(r, time.Since(began), 2*time.Minute)
	})
}

func TestExactlyOnceBeginsNothingUnderAnEndedContext(t *testing.T) {
	c := newCopied(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	for range 20 {
		_, err := harness.ExactlyOnce(ctx, c.cl, "in", "out")
		require.ErrorIs(t, err, enough)
	}
	require.Zero(t, c.k.Requests(wire.KeyFetch))
}
