package fetch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
)

func same(a, b []byte) bool { return &a[:1][0] == &b[:1][0] }

func TestPoolGivesTheSmallestBlockThatIsLargeEnough(t *testing.T) {
	var p pool
	small, large := p.get(100_000), p.get(900_000)
	require.Len(t, small, 100_000)
	require.Less(t, cap(small), 113_000, "an eighth more at most")
	p.put(large)
	p.put(small)
	require.True(t, same(small, p.get(100_001)), "a little more fits too")
	got := p.get(50_000)
	require.True(t, same(large, got), "there is no other")
	require.Len(t, got, 50_000)
	require.False(t, same(large, p.get(50_000)))
}

func TestPoolIsBoundedAndForgets(t *testing.T) {
	var p pool
	for n := range maxIdle + 3 {
		p.put(make([]byte, 100*(n+1)))
	}
	require.Len(t, p.idle, maxIdle)
	for _, b := range p.idle {
		require.Greater(t, cap(b), 300, "the largest ones stay")
	}
	p.get(100)
	p.trim(time.Now().Add(idleFor / 2))
	require.Len(t, p.idle, maxIdle-1)
	p.trim(time.Now().Add(2 * idleFor))
	require.Empty(t, p.idle)
}

func TestBlockComesBackWithItsLastUserUnlessItIsKept(t *testing.T) {
	for _, keep := range []bool{false, true} {
		var p pool
		c := settle(client.NewBudget(0), 0, 0)
		c.pool, c.block = &p, p.get(100)
		c.use()
		c.leave()
		require.Empty(t, p.idle, "one user is left")
		c.kept.Store(keep)
		c.leave()
		require.Equal(t, !keep, len(p.idle) == 1)
	}
}
