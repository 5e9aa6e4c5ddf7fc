package bug_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
)

func TestASetHasWhatItIsMadeOf(t *testing.T) {
	all := bug.All()
	seen := map[string]bool{}
	for _, b := range all {
		s := bug.Of(b)
		require.Equal(t, b.String(), s.String())
		require.False(t, seen[b.String()], "two bugs are called %s", b)
		seen[b.String()] = true
		for _, other := range all {
			require.Equal(t, b == other, s.Has(other))
			require.False(t, bug.Set(0).Has(other))
		}
	}
}
