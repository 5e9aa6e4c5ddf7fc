package machine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// TestEveryRecordOnceInOrderUnderRandomSchedules drives a Fetcher against model brokers: answers come late, get
// lost, or carry errors; leaders move with and without metadata telling; sessions are dropped; buffers fill. What is
// delivered must be each partition's offsets, in order, once. OTTLA_SEED runs one seed and prints its steps.
func TestEveryRecordOnceInOrderUnderRandomSchedules(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 30
	}
	if s := os.Getenv("OTTLA_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		newModel(t, seed, true).run()
		return
	}
	reached := map[string]int{}
	for seed := range uint64(seeds) {
		m := newModel(t, seed, false)
		m.run()
		for k, n := range m.reached {
			reached[k] += n
		}
		require.False(t, t.Failed(), "OTTLA_SEED=%d go test -run %s replays it", seed, t.Name())
	}
	if os.Getenv("OTTLA_SEED") == "" && seeds >= 150 {
		for _, what := range []string{"session refused", "not leader", "fenced", "lost", "stale answer", "held back", "incremental", "validated"} {
			require.Positive(t, reached[what], "no schedule came to %q: %v", what, reached)
		}
	}
}

// TestTheSameSeedGivesTheSameRun guards against order that comes from a map.
func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	for seed := range uint64(20) {
		a, b := newModel(t, seed, false), newModel(t, seed, false)
		a.run()
		b.run()
		require.Equal(t, a.trace, b.trace, "seed %d", seed)
	}
}

type model struct {
	t        *testing.T
	rnd      *rand.Rand
	verbose  bool
	now      time.Time
	f        *Fetcher
	logs     map[TopicPartition]*modelLog
	order    []TopicPartition
	sessions map[int32]*modelSession // by broker
	lastID   int32
	fetches  []*Fetch
	lookups  []*Lookup
	buffered []Delivery
	got      map[TopicPartition]int64 // next offset expected by the application
	gen      map[TopicPartition]uint32
	faults   bool
	seed     uint64
	trace    uint64
	reached  map[string]int
}

type modelLog struct {
	leader int32
	epoch  int32
	end    int64
}

type modelSession struct {
	id, epoch int32
	parts     map[TopicPartition]FetchPart
}

func newModel(t *testing.T, seed uint64, verbose bool) *model {
	m := &model{t: t, rnd: rand.New(rand.NewPCG(seed, 7)), verbose: verbose, seed: seed, now: time.UnixMilli(0), faults: true,
		logs: map[TopicPartition]*modelLog{}, sessions: map[int32]*modelSession{}, got: map[TopicPartition]int64{},
		gen: map[TopicPartition]uint32{}, reached: map[string]int{}}
	m.f = New(Config{MaxBytes: 1000, MaxPartitionBytes: 100, MaxWait: 500 * time.Millisecond, Reset: Fail, ReplicaExpiry: time.Minute,
		APITimeout: time.Hour, RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second, Seed: seed})
	for i := range 1 + m.rnd.IntN(6) {
		tp := TopicPartition{Topic: "t", Partition: int32(i)}
		m.order = append(m.order, tp)
		m.logs[tp] = &modelLog{leader: m.broker(), epoch: 1, end: int64(m.rnd.IntN(30))}
		m.step(Added{tp, Earliest})
	}
	m.announce()
	return m
}

func (m *model) broker() int32 { return int32(1 + m.rnd.IntN(3)) }

func (m *model) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	for _, c := range []byte(line) {
		m.trace = m.trace*1099511628211 + uint64(c)
	}
	if m.verbose {
		m.t.Log(line)
	}
}

// run makes random steps with faults, then steps without, until all is read.
func (m *model) run() {
	for range 300 {
		m.random()
	}
	m.faults = false
	m.announce()
	for i := 0; !m.done(); i++ {
		require.Less(m.t, i, 5000, "seed %d: never read to the end: %v", m.seed, m.got)
		m.random()
	}
}

func (m *model) done() bool {
	for tp, l := range m.logs {
		if m.got[tp] != l.end {
			return false
		}
	}
	return true
}

// random makes one step.
func (m *model) random() {
	switch n := m.rnd.IntN(10); {
	case n < 4 && len(m.fetches) > 0:
		i := m.rnd.IntN(len(m.fetches))
		f := m.fetches[i]
		m.fetches = slices.Delete(m.fetches, i, i+1)
		m.answerFetch(f)
	case n < 6 && len(m.lookups) > 0:
		i := m.rnd.IntN(len(m.lookups))
		l := m.lookups[i]
		m.lookups = slices.Delete(m.lookups, i, i+1)
		m.answerLookup(l)
	case n < 8 && len(m.buffered) > 0:
		m.read()
	case n == 8 && m.faults:
		m.change()
	default:
		m.now = m.now.Add(time.Duration(m.rnd.IntN(200)) * time.Millisecond)
		m.step(Woke{})
	}
}

// change lets the cluster change.
func (m *model) change() {
	tp := m.order[m.rnd.IntN(len(m.order))]
	l := m.logs[tp]
	switch m.rnd.IntN(6) {
	case 0:
		l.leader, l.epoch = m.broker(), l.epoch+1
		m.note("%s is led by %d in epoch %d", tp, l.leader, l.epoch)
	case 1:
		m.announce()
	case 2:
		b := m.broker()
		delete(m.sessions, b)
		m.note("broker %d drops its session", b)
	case 3:
		m.step(Paused{tp})
		m.step(Resumed{tp})
	case 4:
		m.got[tp] = m.rnd.Int64N(l.end + 1)
		m.note("%s is sought to %d", tp, m.got[tp])
		m.step(Sought{tp, AtOffset(m.got[tp])})
	default:
		l.end += int64(m.rnd.IntN(20))
	}
}

func (m *model) announce() {
	v := &testView{brokers: []int32{1, 2, 3}, ids: map[string]wire.UUID{"t": {1}}, leaders: map[TopicPartition]Leader{}}
	for tp, l := range m.logs {
		v.leaders[tp] = Leader{Broker: l.leader, Epoch: l.epoch}
	}
	m.step(TopologyChanged{v})
}

// step steps the machine and takes what it wants done.
func (m *model) step(ev Event) {
	for {
		eff := m.f.Step(m.now, ev)
		m.note("%T -> %d void %d deliver %d lookups %d fetches", ev, len(eff.Voided), len(eff.Deliver), len(eff.Lookups), len(eff.Fetches))
		for _, v := range eff.Voided {
			m.gen[v.TopicPartition] = v.Generation
		}
		for _, d := range eff.Deliver {
			require.Nil(m.t, d.Failure, "seed %d: %v", m.seed, d.Failure)
			if d.Chunk != nil {
				m.buffered = append(m.buffered, d)
			}
		}
		m.lookups = append(m.lookups, eff.Lookups...)
		for _, f := range eff.Fetches {
			for _, other := range m.fetches {
				require.NotEqual(m.t, f.Broker, other.Broker, "two fetches in flight at one broker")
			}
			m.fetches = append(m.fetches, f)
			if f.MaxWait < 500*time.Millisecond {
				m.reached["held back"]++
			}
			m.note("fetch %d %d:%d %v -%v", f.Broker, f.SessionID, f.Epoch, f.Parts, f.Forget)
		}
		if !eff.Wake {
			return
		}
		ev = Woke{}
	}
}

// read is the application: it takes the first delivery and checks it.
func (m *model) read() {
	d := m.buffered[0]
	m.buffered = m.buffered[1:]
	if d.Generation != m.gen[d.TopicPartition] {
		return
	}
	require.Equal(m.t, m.got[d.TopicPartition], d.Chunk.From.Offset, "seed %d: %s: a gap or a repetition", m.seed, d.TopicPartition)
	m.got[d.TopicPartition] = d.Chunk.Next.Offset
	m.step(Drained{d.TopicPartition, d.Generation, len(d.Chunk.Records)})
}

// answerFetch is a broker.
func (m *model) answerFetch(f *Fetch) {
	if m.faults && m.rnd.IntN(12) == 0 {
		m.reached["lost"]++
		if m.rnd.IntN(2) == 0 {
			m.serverFetch(f) // the broker had answered, and the answer was lost
		}
		m.step(FetchFailed{f.Broker, errLost})
		return
	}
	m.step(m.serverFetch(f))
}

func (m *model) serverFetch(f *Fetch) FetchReceived {
	ev := FetchReceived{Broker: f.Broker}
	s := m.sessions[f.Broker]
	if f.Epoch == epochInitial {
		m.lastID++
		s = &modelSession{id: m.lastID, epoch: 1, parts: map[TopicPartition]FetchPart{}}
		m.sessions[f.Broker] = s
	} else {
		m.reached["incremental"]++
		switch {
		case s == nil || s.id != f.SessionID:
			m.reached["session refused"]++
			ev.Code = errcode.FetchSessionIdNotFound
			return ev
		case s.epoch != f.Epoch:
			m.reached["session refused"]++
			ev.Code = errcode.InvalidFetchSessionEpoch
			return ev
		}
		s.epoch++
	}
	ev.SessionID = s.id
	for _, g := range f.Forget {
		_, known := s.parts[g.TopicPartition]
		require.True(m.t, known, "seed %d: forgets %s, which is not in the session", m.seed, g.TopicPartition)
		delete(s.parts, g.TopicPartition)
	}
	for _, p := range f.Parts {
		s.parts[p.TopicPartition] = p
	}
	for _, tp := range m.order {
		if p, ok := s.parts[tp]; ok {
			ev.Parts = append(ev.Parts, m.serverPart(f.Broker, p))
		}
	}
	return ev
}

// serverPart reads one partition: up to 20 offsets of 5 bytes, or an error.
func (m *model) serverPart(broker int32, p FetchPart) FetchedPart {
	l := m.logs[p.TopicPartition]
	out := FetchedPart{TopicPartition: p.TopicPartition, TopicID: p.TopicID, Preferred: -1, HighWatermark: l.end, LastStable: -1, LogStart: 0,
		Leader: Leader{-1, -1, 0}, Next: Position{-1, -1}}
	switch {
	case l.leader != broker:
		m.reached["not leader"]++
		out.Code = errcode.NotLeaderOrFollower
	case p.LeaderEpoch < l.epoch:
		m.reached["fenced"]++
		out.Code = errcode.FencedLeaderEpoch
	case m.faults && m.rnd.IntN(15) == 0:
		codes := []errcode.Code{errcode.KafkaStorageError, errcode.UnknownServerError, errcode.OffsetNotAvailable, errcode.UnknownTopicId, errcode.ReplicaNotAvailable}
		out.Code = codes[m.rnd.IntN(len(codes))]
	case p.Offset > l.end:
		out.Code = errcode.OffsetOutOfRange
	case p.Offset < l.end:
		n := min(1+int64(m.rnd.IntN(20)), l.end-p.Offset)
		out.Next = Position{p.Offset + n, l.epoch}
		out.Records = make([]byte, 5*n)
	}
	if out.Code != errcode.None {
		out.HighWatermark = -1
	} else if q := m.f.byName[p.TopicPartition]; q.generation != p.generation {
		m.reached["stale answer"]++
	}
	return out
}

// answerLookup is a broker, too.
func (m *model) answerLookup(l *Lookup) {
	offsets, ends := OffsetsReceived{Lookup: l}, EpochEndsReceived{Lookup: l}
	if m.faults && m.rnd.IntN(8) == 0 {
		offsets.Err, ends.Err = errLost, errLost
	} else {
		for _, p := range l.Parts {
			log := m.logs[p.TopicPartition]
			var code errcode.Code
			if log.leader != l.Broker {
				code = errcode.NotLeaderOrFollower
			}
			offsets.Found = append(offsets.Found, FoundOffset{Code: code, Offset: 0, Epoch: 1})
			ends.Ends = append(ends.Ends, EpochEnd{Code: code, Epoch: p.Epoch, End: log.end, Consumed: Position{m.got[p.TopicPartition], 1}})
		}
	}
	if l.Epochs {
		m.reached["validated"]++
		m.step(ends)
	} else {
		m.step(offsets)
	}
}
