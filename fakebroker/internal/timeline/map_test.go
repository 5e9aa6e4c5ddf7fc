package timeline

import (
	"fmt"
	"maps"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMapBehavesAsABuiltinMap drives random changes, with a hash that is poor on purpose so that collisions and deep
// levels occur, and checks that older versions keep their content.
func TestMapBehavesAsABuiltinMap(t *testing.T) {
	hashes := map[string]func(int32) uint64{
		"good":  Int32[int32],
		"same":  func(int32) uint64 { return 7 },
		"few":   func(k int32) uint64 { return uint64(k % 5) },
		"upper": func(k int32) uint64 { return uint64(k) << 58 },
	}
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewSource(1))
			m, want := NewMap[int32, int](hash), map[int32]int{}
			type version struct {
				m    Map[int32, int]
				want map[int32]int
			}
			var versions []version
			for round := range 60 {
				e := m.Edit()
				for range rng.Intn(40) {
					k := int32(rng.Intn(100))
					if rng.Intn(3) == 0 {
						_, was := want[k]
						require.Equal(t, was, e.Delete(k))
						delete(want, k)
					} else {
						e.Set(k, round)
						want[k] = round
					}
				}
				m = e.Map()
				versions = append(versions, version{m, maps.Clone(want)})
			}
			for _, v := range versions {
				require.Equal(t, len(v.want), v.m.Len())
				require.Equal(t, v.want, maps.Collect(v.m.All()))
				for k := range int32(100) {
					got, ok := v.m.Get(k)
					w, wok := v.want[k]
					require.Equal(t, wok, ok)
					require.Equal(t, w, got)
				}
			}
		})
	}
}

func TestIterationFollowsTheKeysAndNotTheOrderOfInsertion(t *testing.T) {
	a, b := NewMap[string, int](String), NewMap[string, int](String)
	for i := range 500 {
		a = a.Set(fmt.Sprint("t-", i), i)
		b = b.Set(fmt.Sprint("t-", 499-i), 499-i)
	}
	order := func(m Map[string, int]) (keys []string) {
		for k := range m.All() {
			keys = append(keys, k)
		}
		return keys
	}
	require.Equal(t, order(a), order(b))
}

func TestAnEditThatGoesOnDoesNotChangeTheMapItGave(t *testing.T) {
	e := NewMap[string, int](String).Edit()
	e.Set("a", 1)
	m := e.Map()
	e.Set("a", 2)
	e.Delete("a")
	v, ok := m.Get("a")
	require.True(t, ok)
	require.Equal(t, 1, v)
}

func ExampleMap_Edit() {
	base := NewMap[string, int](String).Set("orders", 3)
	edit := base.Edit()
	edit.Set("orders", 6)
	edit.Set("payments", 1)
	next := edit.Map()
	before, _ := base.Get("orders")
	after, _ := next.Get("orders")
	fmt.Println(before, after, next.Len())
	// Output: 3 6 2
}

func BenchmarkEditThousandStrings(b *testing.B) {
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = fmt.Sprint("topic-", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		e := NewMap[string, int](String).Edit()
		for i, k := range keys {
			e.Set(k, i)
		}
	}
}

func BenchmarkSetOneInAHundredThousand(b *testing.B) {
	e := NewMap[int32, int](Int32).Edit()
	for i := range int32(100_000) {
		e.Set(i, 1)
	}
	m := e.Map()
	b.ReportAllocs()
	for b.Loop() {
		m.Set(77, 2)
	}
}
