package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// What Kafka calls retriable is tried again: it never comes to the user, whatever request it answers. A failed batch is not
// a request of ours: the producer has tried it again for as long as it may.
func TestRetriableCodesNeverSurface(t *testing.T) {
	for a := range apiCount {
		for c := errcode.Code(-1); c < 200; c++ {
			if !c.Known() || c == errcode.None || !c.Retriable() || a == produce {
				continue
			}
			v := judge(a, c)
			require.Contains(t, []verdict{again, soon, moved}, v, "%s %s: %s", apiNames[a], c.Name(), v)
		}
	}
}

// The codes that say that somebody else has the id end the session at every coordinator, and nowhere else: a leader may be
// behind.
func TestFencingCodes(t *testing.T) {
	for _, a := range []api{initProducerID, addPartitions, addOffsets, commitOffsets, endTxn} {
		for _, c := range []errcode.Code{errcode.ProducerFenced, errcode.InvalidProducerEpoch} {
			require.Equal(t, fenced, judge(a, c), "%s %s", apiNames[a], c.Name())
		}
	}
	require.Equal(t, bump, judge(produce, errcode.InvalidProducerEpoch))
}

func TestTransitionsAreListedOnce(t *testing.T) {
	for from, list := range transitions {
		seen := map[State]bool{}
		for _, to := range list {
			require.False(t, seen[to] || State(from) == to, "%s -> %s", State(from), to)
			seen[to] = true
		}
	}
	require.False(t, Allowed(Over, Ready))
	require.False(t, Allowed(Closed, Over))
	require.False(t, Allowed(Ready, Committing))
}

// Every hint is for a code that some request can bring to the user.
func TestHintsAreForCodesThatSurface(t *testing.T) {
	for c := range hints {
		surfaces := false
		for a := range apiCount {
			surfaces = surfaces || judge(a, c) > moved
		}
		require.True(t, surfaces, c.Name())
	}
}

func TestBackoffsOfTheTwoKinds(t *testing.T) {
	m := New(Config{RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second})
	now := time.Unix(0, 0)
	var s slot
	m.later(now, &s, soon)
	require.Less(t, s.retryAt.Sub(now), 7*time.Millisecond, "the transaction before is just ending")
	for range 20 {
		m.later(now, &s, soon)
	}
	require.LessOrEqual(t, s.retryAt.Sub(now), 120*time.Millisecond)
	s.reset()
	m.later(now, &s, again)
	require.Greater(t, s.retryAt.Sub(now), 79*time.Millisecond)
}
