package machine_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer/machine"
)

// log is what a partition holds, one offset a word: 7 a record of producer 7's transaction, n7 one outside of a transaction,
// c7 and a7 its markers, . a record of nobody.
type log []string

// aborted lists the aborted transactions as a broker has them: producer, first offset, offset of the marker.
func (l log) aborted() (out [][3]int64) {
	open := map[byte]int64{}
	for i, w := range l {
		switch {
		case w == "." || w[0] == 'n':
		case w[0] == 'a' || w[0] == 'c':
			if first, ok := open[w[1]]; ok && w[0] == 'a' {
				out = append(out, [3]int64{int64(w[1] - '0'), first, int64(i)})
			}
			delete(open, w[1])
		default:
			if _, ok := open[w[0]]; !ok {
				open[w[0]] = int64(i)
			}
		}
	}
	return out
}

// visible marks what a read_committed reader sees; computed from the end of each transaction, not as the filter does it.
func (l log) visible() string {
	out := []byte(strings.Repeat("-", len(l)))
	for i, w := range l {
		switch {
		case w == "." || w[0] == 'n':
			out[i] = '+'
		case w[0] == 'c' || w[0] == 'a':
		default:
			for _, later := range l[i:] {
				if later == "c"+w {
					out[i] = '+'
				}
				if later == "c"+w || later == "a"+w {
					break
				}
			}
		}
	}
	return string(out)
}

// read shows the answer with offsets from to end to a filter, as a broker would send it to a reader at offset from.
func (l log) read(from, end int, unsorted bool) string {
	var list []machine.Aborted
	for _, a := range l.aborted() {
		if a[1] < int64(end) && a[2] >= int64(from) {
			list = append(list, machine.Aborted{ProducerID: a[0], FirstOffset: a[1]})
		}
	}
	if unsorted {
		rand.New(rand.NewPCG(uint64(from), uint64(end))).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	f := machine.NewAbortedFilter(list)
	out := []byte(strings.Repeat("-", end-from))
	for i := from; i < end; i++ {
		w, skip := l[i], false
		switch {
		case w == ".":
			skip = f.Batch(-1, int64(i), false)
		case w[0] == 'n':
			skip = f.Batch(int64(w[1]-'0'), int64(i), false)
		case w[0] == 'a' || w[0] == 'c':
			f.Marker(int64(w[1]-'0'), int64(i), w[0] == 'a')
			continue
		default:
			skip = f.Batch(int64(w[0]-'0'), int64(i), true)
		}
		if !skip {
			out[i-from] = '+'
		}
	}
	return string(out)
}

func TestAbortedFilter(t *testing.T) {
	for name, text := range map[string]string{
		"interleaved producers":                         ". 7 8 7 8 a7 8 c8 .",
		"the same producer aborts twice":                "7 7 a7 7 a7 7 c7",
		"aborts, commits, aborts":                       "7 a7 7 c7 7 a7 7 c7",
		"a commit marker of another producer":           "7 8 c8 7 a7",
		"a commit before the abort of the same":         "7 c7 7 7 a7",
		"two transactions of one producer, one between": "7 8 a7 8 7 c8 7 a7 8 c8",
		"outside of its transactions":                   "n7 7 n8 a7 n7",
		"an abort marker without records":               "a7 7 c7 a7 8 c8 a8",
		"a marker long after":                           "7 . . . . . . a7 7 c7",
	} {
		l := log(strings.Fields(text))
		requireReads(t, name, l)
	}
}

// requireReads compares all answers that can be cut out of a log.
func requireReads(t *testing.T, name string, l log) {
	want := l.visible()
	for from := range l {
		for end := from + 1; end <= len(l); end++ {
			require.Equal(t, want[from:end], l.read(from, end, false), "%s: %v from %d to %d", name, l, from, end)
			require.Equal(t, want[from:end], l.read(from, end, true), "%s, list unsorted: %v from %d to %d", name, l, from, end)
		}
	}
}

// Random logs of four producers, cut everywhere. Every transaction ends, since read_committed stops at the first that has not.
func TestAbortedFilterOfRandomLogs(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var l log
		open := map[byte]bool{}
		for range 4 + rng.IntN(20) {
			p := byte('1' + rng.IntN(4))
			switch n := rng.IntN(10); {
			case n == 0:
				l = append(l, ".")
			case n < 3 && open[p]:
				l = append(l, string([]byte{"ac"[rng.IntN(2)], p}))
				open[p] = false
			case n == 3 && !open[p]:
				l = append(l, "n"+string(p))
			default:
				l = append(l, string(p))
				open[p] = true
			}
		}
		for p := byte('1'); p <= '4'; p++ {
			if open[p] {
				l = append(l, string([]byte{"ac"[rng.IntN(2)], p}))
			}
		}
		requireReads(t, "random", l)
	}
}
