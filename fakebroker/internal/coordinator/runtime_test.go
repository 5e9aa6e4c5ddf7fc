package coordinator

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/record"
)

// tally is a machine that counts: a string request adds one record under that name, a wait stays until the next tick.
type tally struct {
	counts  map[string]int
	waiting []Ticket
	due     time.Time
	loaded  bool
	failed  errcode.Code
	open    map[int64][]string // names of transactions, by producer id
	effects []string           // Committed, in order
}

type wait struct{}

// inTxn adds a record in a producer's transaction.
type inTxn struct {
	producer int64
	name     string
}

// effect adds a record, and an effect of that name.
type effect string

func (s *tally) Handle(now time.Time, r Request, out *Result) {
	switch b := r.Body.(type) {
	case string:
		out.Record(&logrecord.OffsetCommitKey{Group: b}, &logrecord.OffsetCommitValue{}, 3)
		out.Reply(r.Ticket, s.counts[b]+1)
	case []string:
		for _, name := range b {
			out.Record(&logrecord.OffsetCommitKey{Group: name}, &logrecord.OffsetCommitValue{}, 3)
		}
		out.Written = append(out.Written, func(_ time.Time, next *Result) { next.Reply(r.Ticket, s.counts[b[0]]) })
		out.Failed = append(out.Failed, func(_ time.Time, code errcode.Code, next *Result) {
			s.failed = code
			next.Refuse(r.Ticket, code)
		})
	case inTxn:
		out.Record(&logrecord.OffsetCommitKey{Group: b.name}, &logrecord.OffsetCommitValue{}, 3)
		out.Txn = &TxnBatch{ProducerID: b.producer, ProducerEpoch: 7, Guard: 99}
		out.Reply(r.Ticket, "taken")
	case effect:
		out.Record(&logrecord.OffsetCommitKey{Group: "effect"}, &logrecord.OffsetCommitValue{}, 3)
		out.Committed = append(out.Committed, func() { s.effects = append(s.effects, string(b)) })
		out.Written = append(out.Written, func(_ time.Time, next *Result) {
			next.Committed = append(next.Committed, func() { s.effects = append(s.effects, string(b)+" later") })
		})
		out.Reply(r.Ticket, "taken")
	case wait:
		s.waiting = append(s.waiting, r.Ticket)
		s.due = now.Add(time.Minute)
	default:
		out.Reply(r.Ticket, len(s.counts))
	}
}

func (s *tally) Replay(_ int64, key, value logrecord.Record) error {
	k := key.(*logrecord.OffsetCommitKey)
	if k.Group == "poison" && !s.loaded {
		return errors.New("poison")
	}
	if value == nil {
		delete(s.counts, k.Group)
		return nil
	}
	s.counts[k.Group]++
	return nil
}

func (s *tally) ReplayTxn(_ int64, producer int64, key, value logrecord.Record) error {
	if s.open == nil {
		s.open = make(map[int64][]string)
	}
	s.open[producer] = append(s.open[producer], key.(*logrecord.OffsetCommitKey).Group)
	return nil
}

func (s *tally) EndTxn(_, producer int64, commit bool) error {
	for _, name := range s.open[producer] {
		if commit {
			s.counts[name]++
		}
	}
	delete(s.open, producer)
	return nil
}

func (s *tally) Loaded(time.Time, *Result) { s.loaded = true }
func (s *tally) Deadline() time.Time       { return s.due }
func (s *tally) Tick(_ time.Time, out *Result) {
	s.due = time.Time{}
	for _, t := range s.waiting {
		out.Reply(t, "woken")
	}
	s.waiting = nil
}

func (s *tally) Drop(code errcode.Code, out *Result) {
	for _, t := range s.waiting {
		out.Refuse(t, code)
	}
}

// memory is a Writer in memory whose high watermark the test moves.
type memory struct {
	mu        sync.Mutex
	batches   map[int32][][]byte
	end       map[int32]int64
	lag       bool // the high watermark stays behind
	committed map[int32]int64
	refuse    error
	slow      chan struct{} // Load of a big log waits for it
	appends   int
	guards    []uint64 // of Append
}

func newMemory() *memory {
	return &memory{batches: make(map[int32][][]byte), end: make(map[int32]int64), committed: make(map[int32]int64)}
}

func (m *memory) Append(partition, _ int32, batch []byte, guard uint64, _ time.Time) (int64, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.guards = append(m.guards, guard)
	if m.refuse != nil {
		return 0, 0, m.refuse
	}
	m.appends++
	b := append([]byte(nil), batch...)
	record.PatchBase(b, m.end[partition], 0)
	h, _ := record.ParseHeader(b)
	m.batches[partition] = append(m.batches[partition], b)
	m.end[partition] = h.NextOffset()
	if !m.lag {
		m.committed[partition] = m.end[partition]
	}
	return m.end[partition], m.committed[partition], nil
}

func (m *memory) AppendMarker(partition, epoch int32, k Marker, now time.Time) (int64, int64, error) {
	return m.Append(partition, epoch, record.AppendEndTxn(nil, record.EndTxn{Commit: k.Commit, CoordinatorEpoch: k.CoordinatorEpoch},
		0, 0, 1, k.ProducerID, k.ProducerEpoch), 0, now)
}

func (m *memory) Size(int32) int64 {
	if m.slow != nil {
		return loadAtOnce + 1
	}
	return 0
}

func (m *memory) Load(partition, _ int32, f func([]byte) error) (int64, int64, error) {
	if m.slow != nil {
		<-m.slow
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.batches[partition] {
		if err := f(b); err != nil {
			return 0, 0, err
		}
	}
	return m.end[partition], m.committed[partition], nil
}

func newRuntime(t *testing.T, w Writer) *Runtime {
	r := New(Options{Log: logrecord.GroupLog, Writer: w, Logger: slog.New(slog.DiscardHandler),
		NewShard: func(int32, int32) Shard { return &tally{counts: make(map[string]int)} }})
	t.Cleanup(r.Close)
	return r
}

// ask submits and returns the answer when everything is idle: nil when it is not there yet.
func ask(r *Runtime, partition int32, body any) *Reply {
	var got *Reply
	r.Submit(partition, Request{Body: body}, func(response any, code errcode.Code) { got = &Reply{Response: response, Code: code} })
	synctest.Wait()
	return got
}

func TestRecordsAreReplayedAndComeBackAfterAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		r := newRuntime(t, w)
		require.Equal(t, errcode.NotCoordinator, ask(r, 0, "a").Code)
		r.Elect(0, 1)
		for i := range 3 {
			require.Equal(t, i+1, ask(r, 0, "a").Response)
		}
		require.Equal(t, 3, w.appends)
		r.Resign(0)
		require.Equal(t, errcode.NotCoordinator, ask(r, 0, "a").Code)
		r.Elect(0, 2)
		require.Equal(t, 4, ask(r, 0, "a").Response)
		r.Reload(0, func() {})
		require.Equal(t, 5, ask(r, 0, "a").Response)
	})
}

func TestOneRequestIsOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		r := newRuntime(t, w)
		r.Elect(0, 1)
		require.Equal(t, 1, ask(r, 0, []string{"a", "b", "c"}).Response, "Written sees the replayed state")
		require.Equal(t, 1, w.appends)
	})
}

func TestRepliesWaitForTheHighWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		w.lag = true
		r := newRuntime(t, w)
		r.Elect(0, 1)
		var order []string
		for _, name := range []string{"a", "b"} {
			r.Submit(0, Request{Body: name}, func(any, errcode.Code) { order = append(order, name) })
		}
		r.Submit(0, Request{Body: 0}, func(any, errcode.Code) { order = append(order, "read") })
		synctest.Wait()
		require.Empty(t, order, "a read must not tell what could be lost")
		r.Committed(0, 1)
		synctest.Wait()
		require.Equal(t, []string{"a"}, order)
		r.Committed(0, 2)
		synctest.Wait()
		require.Equal(t, []string{"a", "b", "read"}, order)
		last := ask(r, 0, "c")
		require.Nil(t, last)
		var lost errcode.Code
		r.Submit(0, Request{Body: "d"}, func(_ any, code errcode.Code) { lost = code })
		r.Elect(0, 2)
		synctest.Wait()
		require.Equal(t, errcode.NotCoordinator, lost)
	})
}

func TestARefusedAppendChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		r := newRuntime(t, w)
		r.Elect(0, 1)
		ask(r, 0, "a")
		for _, c := range []struct {
			err  error
			code errcode.Code
		}{
			{fmt.Errorf("append: %w", errcode.NotEnoughReplicas), errcode.CoordinatorNotAvailable},
			{fmt.Errorf("append: %w", errcode.NotLeaderOrFollower), errcode.NotCoordinator},
			{fmt.Errorf("append: %w", errcode.MessageTooLarge), errcode.UnknownServerError},
			{errors.New("disk"), errcode.UnknownServerError},
		} {
			w.refuse = c.err
			require.Equal(t, c.code, ask(r, 0, "a").Code)
			require.Equal(t, c.code, ask(r, 0, []string{"a"}).Code, "Failed answers")
		}
		w.refuse = nil
		require.Equal(t, 2, ask(r, 0, "a").Response)
	})
}

func TestLoadingAsksClientsToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		w.slow = make(chan struct{})
		r := newRuntime(t, w)
		r.Elect(0, 1)
		r.Elect(1, 1)
		require.Equal(t, errcode.CoordinatorLoadInProgress, ask(r, 0, "a").Code)
		var all map[int32]Reply
		r.SubmitAll(Request{Body: 0}, func(answers map[int32]Reply) { all = answers })
		synctest.Wait()
		require.Equal(t, errcode.CoordinatorLoadInProgress, all[1].Code)
		close(w.slow)
		synctest.Wait()
		require.Equal(t, 1, ask(r, 0, "a").Response)
		require.Equal(t, 1, ask(r, 1, "a").Response)
	})
}

// News reach every shard: one that is being loaded was made by what was known before.
func TestWhatIsToldWhileALogIsLoadedArrivesAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		w.slow = make(chan struct{})
		r := newRuntime(t, w)
		r.Elect(0, 1)
		r.Tell("news")
		r.Tell("news")
		synctest.Wait()
		close(w.slow)
		synctest.Wait()
		require.Equal(t, 3, ask(r, 0, "news").Response)
		r.Tell("news")
		require.Equal(t, 5, ask(r, 0, "news").Response)
	})
}

// What is committed while a log is being loaded counts afterwards: the loader has read the high watermark of before.
func TestTheHighWatermarkMayMoveWhileALogIsLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		r := newRuntime(t, w)
		r.Elect(0, 1)
		ask(r, 0, "a")
		w.lag, w.slow, w.committed[0] = true, make(chan struct{}), 0
		r.Elect(0, 2)
		r.Committed(0, 1)
		synctest.Wait()
		close(w.slow)
		synctest.Wait()
		answer := ask(r, 0, 0)
		require.NotNil(t, answer, "it rests on what has been committed")
		require.Equal(t, 1, answer.Response)
	})
}

func TestALogThatMakesNoSenseIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		r := newRuntime(t, w)
		r.Elect(0, 1)
		ask(r, 0, "poison")
		r.Elect(0, 2)
		require.Equal(t, errcode.NotCoordinator, ask(r, 0, "a").Code)
	})
}

func TestTimersAndTheEndAnswerEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRuntime(t, newMemory())
		r.Elect(0, 1)
		var woken, dropped, closed atomic.Pointer[Reply]
		take := func(into *atomic.Pointer[Reply]) func(any, errcode.Code) {
			return func(response any, code errcode.Code) { into.Store(&Reply{Response: response, Code: code}) }
		}
		r.Submit(0, Request{Body: wait{}}, take(&woken))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		require.Nil(t, woken.Load())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, "woken", woken.Load().Response)
		r.Submit(0, Request{Body: wait{}}, take(&dropped))
		r.Elect(0, 2)
		synctest.Wait()
		require.Equal(t, errcode.NotCoordinator, dropped.Load().Code)
		r.Submit(0, Request{Body: wait{}}, take(&closed))
		r.Close()
		require.Equal(t, errcode.CoordinatorNotAvailable, closed.Load().Code)
		require.Equal(t, errcode.CoordinatorNotAvailable, ask(r, 0, "a").Code)
	})
}

func TestDivisibleResultsGoInSeveralBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		r := newRuntime(t, w)
		r.Elect(0, 1)
		synctest.Wait()
		s := &shard{epoch: 1, machine: &tally{counts: make(map[string]int)}, active: true}
		out := Result{Divisible: true}
		for i := range 2*divisibleRecords + 1 {
			out.Tombstone(&logrecord.OffsetCommitKey{Group: fmt.Sprint(i)})
		}
		require.Equal(t, errcode.None, r.writeAll(s, time.Now(), &out))
		require.Equal(t, 3, w.appends)
	})
}

func TestTransactionsCountOnlyWhenTheyWereCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		r := newRuntime(t, w)
		r.Elect(0, 1)
		end := func(producer int64, commit bool) errcode.Code {
			code := errcode.Code(-2)
			r.WriteMarker(0, Marker{ProducerID: producer, ProducerEpoch: 8, CoordinatorEpoch: 1, Commit: commit}, func(c errcode.Code) { code = c })
			synctest.Wait()
			return code
		}
		for _, b := range []inTxn{{1, "committed"}, {2, "aborted"}, {1, "committed"}, {3, "open"}} {
			require.Equal(t, "taken", ask(r, 0, b).Response)
		}
		require.Equal(t, []uint64{99, 99, 99, 99}, w.guards)
		h, err := record.ParseHeader(w.batches[0][0])
		require.NoError(t, err)
		require.True(t, h.Transactional())
		require.Equal(t, []any{int64(1), int16(7), int32(0)}, []any{h.ProducerID, h.ProducerEpoch, h.BaseSequence})
		require.Equal(t, 0, ask(r, 0, 0).Response, "nothing has been committed")
		require.Equal(t, errcode.None, end(2, false))
		require.Equal(t, 0, ask(r, 0, 0).Response)
		require.Equal(t, errcode.None, end(1, true))
		require.Equal(t, 1, ask(r, 0, 0).Response)
		r.Reload(0, func() {})
		require.Equal(t, 1, ask(r, 0, 0).Response, "one name is known")
		require.Equal(t, errcode.None, end(3, true), "a transaction that was open when the log was loaded")
		require.Equal(t, 2, ask(r, 0, 0).Response)
		require.Equal(t, 3, ask(r, 0, "committed").Response)
		require.Equal(t, errcode.None, end(3, true), "a marker that ends nothing")
	})
}

func TestMarkersAreAnsweredWhenTheyAreCommittedOrLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		r := newRuntime(t, w)
		var got []errcode.Code
		end := func() {
			r.WriteMarker(0, Marker{ProducerID: 1, Commit: true}, func(c errcode.Code) { got = append(got, c) })
			synctest.Wait()
		}
		end()
		require.Equal(t, []errcode.Code{errcode.NotCoordinator}, got)
		w.slow = make(chan struct{})
		r.Elect(0, 1)
		end()
		require.Equal(t, errcode.CoordinatorLoadInProgress, got[1])
		close(w.slow)
		synctest.Wait()
		w.lag = true
		end()
		require.Len(t, got, 2, "not below the high watermark")
		r.Committed(0, 1)
		synctest.Wait()
		require.Equal(t, errcode.None, got[2])
		end()
		r.Resign(0)
		synctest.Wait()
		require.Equal(t, errcode.NotCoordinator, got[3])
		r.Elect(0, 2)
		synctest.Wait()
		w.refuse = fmt.Errorf("append: %w", errcode.TransactionCoordinatorFenced)
		end()
		require.Equal(t, errcode.TransactionCoordinatorFenced, got[4])
		w.refuse = errors.New("disk")
		end()
		require.Equal(t, errcode.UnknownServerError, got[5])
		r.Close()
		end()
		require.Equal(t, errcode.CoordinatorNotAvailable, got[6])
	})
}

func TestEffectsWaitForTheHighWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newMemory()
		var m *tally
		r := New(Options{Log: logrecord.GroupLog, Writer: w, Logger: slog.New(slog.DiscardHandler), NewShard: func(int32, int32) Shard {
			m = &tally{counts: make(map[string]int)}
			return m
		}})
		defer r.Close()
		r.Elect(0, 1)
		ask(r, 0, effect("a"))
		require.Equal(t, []string{"a", "a later"}, m.effects)
		w.lag = true
		ask(r, 0, effect("b"))
		require.Len(t, m.effects, 2)
		r.Committed(0, 2)
		synctest.Wait()
		require.Equal(t, []string{"a", "a later", "b", "b later"}, m.effects)
		w.refuse = errcode.NotEnoughReplicas
		require.Equal(t, errcode.CoordinatorNotAvailable, ask(r, 0, effect("refused")).Code)
		w.refuse = nil
		old := m
		ask(r, 0, effect("lost"))
		r.Elect(0, 2)
		synctest.Wait()
		require.Len(t, old.effects, 4, "what is refused or lost has no effect")
	})
}
