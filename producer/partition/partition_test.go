package partition

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeysGoWhereKafkaPutsThem compares with what Apache Kafka's own partitioner answered.
func TestKeysGoWhereKafkaPutsThem(t *testing.T) {
	data, err := os.ReadFile("testdata/murmur2.tsv")
	require.NoError(t, err)
	var counts []int32
	lines := 0
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if f[0] == "keyHex" {
			for _, p := range f[3:] {
				n, err := strconv.Atoi(p[1:])
				require.NoError(t, err)
				counts = append(counts, int32(n))
			}
			continue
		}
		key, err := hex.DecodeString(f[0])
		require.NoError(t, err)
		for i, n := range counts {
			got := Default.Partition(&Topic{Name: "t", Partitions: n}, key, nil)
			require.Equal(t, f[3+i], strconv.Itoa(int(got)), "key %s of %d partitions", f[0], n)
		}
		lines++
	}
	require.Greater(t, lines, 500)
}

func TestOnlyNullKeysAreSticky(t *testing.T) {
	topic := &Topic{Name: "t", Partitions: 6}
	require.Equal(t, Sticky, Default.Partition(topic, nil, []byte("v")))
	require.NotEqual(t, Sticky, Default.Partition(topic, []byte{}, []byte("v")))
	require.Equal(t, Sticky, IgnoreKeys.Partition(topic, []byte("k"), nil))
}

func TestRoundRobinGoesRoundTheAvailable(t *testing.T) {
	r := RoundRobin()
	topic := &Topic{Name: "t", Partitions: 6, Available: []int32{1, 3, 5}}
	var got []int32
	for range 7 {
		got = append(got, r.Partition(topic, []byte("same key"), nil))
	}
	require.Equal(t, []int32{1, 3, 5, 1, 3, 5, 1}, got)
	require.Equal(t, int32(0), r.Partition(&Topic{Name: "other", Partitions: 3}, nil, nil), "each topic counts for itself")
}

func TestRandomStaysInRange(t *testing.T) {
	topic := &Topic{Name: "t", Partitions: 4, Available: []int32{0, 2}}
	seen := map[int32]int{}
	for range 200 {
		seen[Random.Partition(topic, nil, nil)]++
	}
	require.Len(t, seen, 2)
	require.Positive(t, seen[0])
	require.Positive(t, seen[2])
}

func TestNextPrefersShortQueues(t *testing.T) {
	count := func(adaptive bool, rack string, loads ...Load) map[int32]int {
		n := map[int32]int{}
		for i := range 1000 {
			n[Next(append([]Load(nil), loads...), float64(i)/1000, adaptive, rack)]++
		}
		return n
	}
	even := count(false, "", Load{Partition: 0, Queued: 9}, Load{Partition: 1})
	require.InDelta(t, 500, even[0], 2)
	uneven := count(true, "", Load{Partition: 0, Queued: 9}, Load{Partition: 1}, Load{Partition: 2, Queued: 5})
	// Weights 1, 10 and 5 of 16.
	require.InDelta(t, 1000.0/16, uneven[0], 2)
	require.InDelta(t, 10000.0/16, uneven[1], 2)
	require.InDelta(t, 5000.0/16, uneven[2], 2)
	stalled := count(true, "", Load{Partition: 0, Stalled: true}, Load{Partition: 1, Queued: 7})
	require.Equal(t, map[int32]int{1: 1000}, stalled)
	allStalled := count(true, "", Load{Partition: 0, Stalled: true})
	require.Equal(t, map[int32]int{0: 1000}, allStalled)
	near := count(true, "here", Load{Partition: 0, Rack: "there"}, Load{Partition: 1, Rack: "here", Queued: 50})
	require.Equal(t, map[int32]int{1: 1000}, near)
	nowhere := count(true, "mars", Load{Partition: 0, Rack: "there"})
	require.Equal(t, map[int32]int{0: 1000}, nowhere)
}
