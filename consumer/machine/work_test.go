package machine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// workScript runs a story about one partition. Lines are "verb arguments"; the answer stands behind "=>":
//
//	offer KEY...     the next records, "-" for one without a key; offsets count from 0
//	take             => the offset of the record that may be processed now, or "none"
//	finish OFFSET    => the frontier
//	fail, again OFFSET
//	drain, restart, pass OFFSET
//	state            => outstanding, running
func workScript(t *testing.T, serial bool, script string) {
	t.Helper()
	w := NewWork[int64](Position{0, 3}, serial)
	seqs := map[int64]uint64{}
	next := int64(0)
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		ask, want, _ := strings.Cut(line, " => ")
		f := strings.Fields(ask)
		var at int64
		if len(f) > 1 && f[0] != "offer" {
			_, err := fmt.Sscan(f[1], &at)
			require.NoError(t, err, line)
		}
		got := ""
		switch f[0] {
		case "offer":
			for _, k := range f[1:] {
				key := []byte(k)
				if k == "-" {
					key = nil
				}
				w.Offer(key, next, 10, Position{next + 1, 3})
				next++
			}
		case "take":
			if job, ok := w.Take(); ok {
				seqs[job.Item] = job.Seq
				got = fmt.Sprint(job.Item)
			} else {
				got = "none"
			}
		case "finish":
			w.Finish(seqs[at])
			got = fmt.Sprint(w.Frontier().Offset)
		case "fail":
			w.Fail(seqs[at])
		case "again":
			w.Again(seqs[at])
		case "drain":
			w.Drain()
		case "restart":
			w.Restart()
			got = fmt.Sprint(w.Frontier().Offset)
		case "pass":
			w.Pass(Position{at, 3})
			got = fmt.Sprint(w.Frontier().Offset)
		case "state":
			got = fmt.Sprintf("%d outstanding, %d running", w.Len(), w.Running())
		default:
			t.Fatalf("unknown verb in %q", line)
		}
		require.Equal(t, want, got, line)
	}
}

func TestRecordsOfOneKeyWaitForEachOther(t *testing.T) {
	workScript(t, false, `
		offer a b a
		take => 0
		take => 1
		take => none
		finish 1 => 0
		take => none
		finish 0 => 2
		take => 2
		finish 2 => 3
		state => 0 outstanding, 0 running`)
}

func TestRecordsWithoutAKeyWaitForNobody(t *testing.T) {
	workScript(t, false, `
		offer - - -
		take => 0
		take => 1
		take => 2
		finish 2 => 0
		finish 0 => 1
		finish 1 => 3`)
}

func TestOldestRecordIsTakenFirst(t *testing.T) {
	workScript(t, false, `
		offer a b a c
		take => 0
		finish 0 => 1
		take => 1
		take => 2
		take => 3`)
}

func TestSerialWorkIsOneAfterTheOther(t *testing.T) {
	workScript(t, true, `
		offer a - b
		take => 0
		take => none
		finish 0 => 1
		take => 1`)
}

func TestFailedRecordHoldsItsKeyAndTheFrontier(t *testing.T) {
	workScript(t, false, `
		offer a b a c
		take => 0
		fail 0
		take => 1
		finish 1 => 0
		take => 3
		finish 3 => 0
		take => none
		state => 4 outstanding, 0 running
		again 0
		take => 0
		finish 0 => 2
		take => 2
		finish 2 => 4`)
}

func TestDrainKeepsWhatFinishedWorkNeeds(t *testing.T) {
	workScript(t, false, `
		offer a a b c d a
		take => 0
		take => 2
		finish 2 => 0
		drain
		state => 3 outstanding, 1 running
		finish 0 => 1
		take => 1
		take => none
		finish 1 => 3
		state => 0 outstanding, 0 running`)
	workScript(t, false, `
		offer a b c
		drain
		state => 0 outstanding, 0 running
		take => none`)
	workScript(t, false, `
		offer a b
		take => 0
		finish 0 => 1
		drain
		state => 0 outstanding, 0 running
		pass 5 => 5`)
}

func TestPassMovesOnlyOverWhatNobodyHas(t *testing.T) {
	workScript(t, false, `
		pass 4 => 4
		offer a
		pass 9 => 4
		take => 0
		finish 0 => 1
		pass 9 => 9`)
}

func TestRestartForgetsWhatRuns(t *testing.T) {
	workScript(t, false, `
		offer a a b
		take => 0
		restart => -1
		finish 0 => -1
		offer a c
		take => 3
		take => 4
		finish 4 => -1
		finish 3 => 5`)
}

// TestRandomWork checks against a plain model: order within keys, at most one of a key at a time, the frontier, and that a
// drain leaves exactly what finished work needs.
func TestRandomWork(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := NewWork[int](Position{0, 0}, false)
		type rec struct {
			key      string
			finished bool
		}
		var all []rec
		running, failed := map[uint64]int{}, map[uint64]int{}
		busy, last := map[string]bool{}, map[string]int{}
		drained := false
		pick := func(m map[uint64]int) (uint64, bool) {
			for want, seq := rnd.IntN(len(all)+1), uint64(0); seq < uint64(len(all)); seq++ {
				at := (seq + uint64(want)) % uint64(len(all))
				if _, ok := m[at]; ok {
					return at, true
				}
			}
			return 0, false
		}
		step := func(kind int) {
			switch kind {
			case 0:
				if !drained {
					key := fmt.Sprint(rnd.IntN(5))
					w.Offer([]byte(key), len(all), 10, Position{int64(len(all) + 1), 0})
					all = append(all, rec{key: key})
				}
			case 1, 2:
				if job, ok := w.Take(); ok {
					r := all[job.Item]
					require.False(t, busy[r.key], "seed %d: two of key %s", seed, r.key)
					require.LessOrEqual(t, last[r.key], job.Item, "seed %d", seed)
					busy[r.key], last[r.key] = true, job.Item
					running[job.Seq] = job.Item
				}
			case 3, 4:
				if seq, ok := pick(running); ok {
					w.Finish(seq)
					busy[all[running[seq]].key], all[running[seq]].finished = false, true
					delete(running, seq)
				}
			case 5:
				if seq, ok := pick(running); ok {
					w.Fail(seq)
					failed[seq] = running[seq]
					busy[all[running[seq]].key] = false
					delete(running, seq)
				}
			case 6:
				if seq, ok := pick(failed); ok {
					w.Again(seq)
					delete(failed, seq)
				}
			}
			n := 0
			for n < len(all) && all[n].finished {
				n++
			}
			require.EqualValues(t, n, w.Frontier().Offset, "seed %d", seed)
			require.Equal(t, len(running), w.Running(), "seed %d", seed)
			require.Equal(t, 10*w.Len(), w.Bytes(), "seed %d", seed)
		}
		for range 200 {
			step(rnd.IntN(7))
		}
		w.Drain()
		drained = true
		for range 5000 {
			if w.Len() == 0 {
				break
			}
			step(1 + rnd.IntN(6))
		}
		require.Zero(t, w.Len(), "seed %d: the drain does not end", seed)
		for i, r := range all {
			require.Equal(t, int64(i) < w.Frontier().Offset, r.finished, "seed %d: finished work behind the frontier", seed)
		}
		require.Empty(t, w.lanes, "seed %d", seed)
	}
}

func BenchmarkWork(b *testing.B) {
	w := NewWork[Position](Position{}, false)
	keys := make([][]byte, 64)
	for i := range keys {
		keys[i] = fmt.Append(nil, "key-", i)
	}
	b.ReportAllocs()
	for i := range b.N {
		w.Offer(keys[i%64], Position{}, 10, Position{int64(i + 1), 0})
		if job, ok := w.Take(); ok {
			w.Finish(job.Seq)
		}
	}
}
