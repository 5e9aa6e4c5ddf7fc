package machine

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// TestScripts runs the stories under testdata. A line that is not indented is an event; the indented lines under
// it are what the machine wants done. The driver's part is played here: whenever the machine asks to be woken it
// is. Run with OTTLA_UPDATE=1 after a deliberate change, and read the difference.
func TestScripts(t *testing.T) {
	wiretest.Stories(t, func(t *testing.T, story string) string { return newScript(t).run(story) })
}

type script struct {
	t       *testing.T
	out     bytes.Buffer
	f       *Fetcher
	cfg     Config
	now     time.Time
	lookups map[string]*Lookup // by kind and broker
}

func newScript(t *testing.T) *script {
	return &script{t: t, now: time.UnixMilli(1_000_000), lookups: map[string]*Lookup{}, cfg: Config{MaxBytes: 1000, MaxPartitionBytes: 100,
		MaxWait: 500 * time.Millisecond, Reset: Latest, ReplicaExpiry: 5 * time.Minute, APITimeout: time.Minute,
		RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second, Seed: 1}}
}

func (s *script) run(text string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		s.out.WriteString(line)
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		s.command(strings.Fields(line))
	}
	return s.out.String()
}

// command does one line.
func (s *script) command(w []string) {
	switch w[0] {
	case "config":
		for _, o := range w[1:] {
			s.configure(o)
		}
		return
	case "after":
		d, err := time.ParseDuration(w[1])
		require.NoError(s.t, err)
		s.now = s.now.Add(d)
		s.step(Woke{})
		return
	}
	if s.f == nil {
		s.f = New(s.cfg)
	}
	switch w[0] {
	case "topology":
		s.step(TopologyChanged{parseView(s.t, w[1:])})
	case "add":
		ev := Added{TopicPartition: tp(w[1])}
		if len(w) > 2 {
			ev.Start = s.where(w[2])
		}
		s.step(ev)
	case "seek":
		s.step(Sought{tp(w[1]), s.where(w[2])})
	case "remove":
		s.step(Removed{tp(w[1])})
	case "pause":
		s.step(Paused{tp(w[1])})
	case "resume":
		s.step(Resumed{tp(w[1])})
	case "drained":
		s.step(Drained{tp(w[1]), s.generation(w[1]), s.num(w[2])})
	case "broken":
		s.step(Broken{tp(w[1]), s.generation(w[1]), s.position(w[2]), fmt.Errorf("bad checksum")})
	case "close":
		s.step(Closed{})
	case "offsets", "ends":
		s.answer(w[0], w[1], w[2:])
	case "unanswered":
		s.step(OffsetsReceived{Lookup: s.lookups["offsets "+w[1]], Err: errLost})
	case "lost":
		s.step(FetchFailed{int32(s.num(w[1])), errLost})
	case "fetched":
		s.fetched(w[1:])
	default:
		s.t.Fatalf("unknown command %q", w[0])
	}
}

var errLost = fmt.Errorf("connection ended")

func (s *script) generation(name string) uint32 {
	if p := s.f.byName[tp(name)]; p != nil {
		return p.generation
	}
	return 0
}

func (s *script) num(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	return n
}

// position reads offset/epoch.
func (s *script) position(text string) Position {
	o, e, ok := strings.Cut(text, "/")
	p := Position{Offset: int64(s.num(o)), Epoch: -1}
	if ok {
		p.Epoch = int32(s.num(e))
	}
	return p
}

func (s *script) configure(o string) {
	key, value, _ := strings.Cut(o, "=")
	switch key {
	case "reset":
		s.cfg.Reset = s.where(value)
	case "standstill":
		d, err := time.ParseDuration(value)
		require.NoError(s.t, err)
		s.cfg.Standstill = d
	case "adopt":
		s.cfg.Adopt = true
	default:
		s.t.Fatalf("unknown option %q", o)
	}
}

func (s *script) where(text string) Where {
	switch kind, value, _ := strings.Cut(text, ":"); kind {
	case "earliest":
		return Earliest
	case "latest":
		return Latest
	case "nearest":
		return Nearest
	case "fail":
		return Fail
	case "ago":
		d, err := time.ParseDuration(value)
		require.NoError(s.t, err)
		return ByDuration(d)
	case "time":
		return At(time.UnixMilli(int64(s.num(value))))
	case "offset":
		return AtPosition(s.position(value))
	}
	s.t.Fatalf("unknown place %q", text)
	return Where{}
}

// answer takes partition=offset/epoch or partition=ERROR_NAME for each partition of the look-up at that broker.
func (s *script) answer(kind, broker string, words []string) {
	l := s.lookups[kind+" "+broker]
	require.NotNil(s.t, l, "no look-up at broker %s", broker)
	got := map[string]string{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		got[k] = v
	}
	offsets, ends := OffsetsReceived{Lookup: l}, EpochEndsReceived{Lookup: l}
	for _, p := range l.Parts {
		text := got[p.String()]
		text, consumed, _ := strings.Cut(text, ",")
		if code, ok := codeOf(text); ok {
			offsets.Found = append(offsets.Found, FoundOffset{Code: code})
			ends.Ends = append(ends.Ends, EpochEnd{Code: code})
			continue
		}
		pos := s.position(text)
		offsets.Found = append(offsets.Found, FoundOffset{Offset: pos.Offset, Epoch: pos.Epoch})
		end := EpochEnd{End: pos.Offset, Epoch: pos.Epoch, Consumed: s.f.byName[p.TopicPartition].next}
		if consumed != "" {
			end.Consumed = s.position(consumed)
		}
		ends.Ends = append(ends.Ends, end)
	}
	if kind == "offsets" {
		s.step(offsets)
	} else {
		s.step(ends)
	}
}

func codeOf(name string) (errcode.Code, bool) {
	for c := errcode.Code(-1); c < 140; c++ {
		if c.Name() == name && c != errcode.None {
			return c, true
		}
	}
	return 0, false
}

// fetched BROKER [session=N] [ERROR] {PARTITION [next=OFFSET/EPOCH] [bytes=N] [hw=N] [lso=N] [start=N] [ERROR] [prefer=N]
// [leader=N/EPOCH] [diverges=END/EPOCH,CONSUMED/EPOCH] [broken]}
func (s *script) fetched(words []string) {
	ev := FetchReceived{Broker: int32(s.num(words[0]))}
	var p *FetchedPart
	for _, w := range words[1:] {
		key, value, has := strings.Cut(w, "=")
		switch {
		case key == "session":
			ev.SessionID = int32(s.num(value))
		case key == "next":
			p.Next = s.position(value)
			if p.Records == nil {
				p.Records = make([]byte, 10)
			}
		case key == "bytes":
			p.Records = make([]byte, s.num(value))
		case key == "hw":
			p.HighWatermark = int64(s.num(value))
		case key == "lso":
			p.LastStable = int64(s.num(value))
		case key == "start":
			p.LogStart = int64(s.num(value))
		case key == "prefer":
			p.Preferred = int32(s.num(value))
		case key == "leader":
			pos := s.position(value)
			p.Leader = Leader{Broker: int32(pos.Offset), Epoch: pos.Epoch}
		case key == "diverges":
			end, consumed, _ := strings.Cut(value, ",")
			pos := s.position(end)
			p.Diverging = &EpochEnd{End: pos.Offset, Epoch: pos.Epoch, Consumed: s.position(consumed)}
		case key == "broken":
			p.Broken = fmt.Errorf("magic 77")
		case !has && strings.Contains(w, "-"):
			ev.Parts = append(ev.Parts, FetchedPart{TopicPartition: tp(w), TopicID: s.topicID(tp(w)), HighWatermark: -1, LastStable: -1, LogStart: -1,
				Preferred: -1, Leader: Leader{Broker: -1, Epoch: -1}, Next: Position{-1, -1}})
			p = &ev.Parts[len(ev.Parts)-1]
		default:
			code, ok := codeOf(w)
			require.True(s.t, ok, w)
			if p == nil {
				ev.Code = code
			} else {
				p.Code = code
			}
		}
	}
	s.step(ev)
}

func (s *script) topicID(p TopicPartition) wire.UUID {
	if q := s.f.byName[p]; q != nil {
		return q.topicID
	}
	return wire.UUID{}
}

// step steps one event, prints the effects, and wakes the machine for as long as it asks for it.
func (s *script) step(ev Event) {
	if s.f == nil {
		s.f = New(s.cfg)
	}
	for range 10 {
		eff := s.f.Step(s.now, ev)
		s.print(&eff)
		if _, woke := ev.(Woke); woke && s.f.view != nil && !s.f.Deadline().IsZero() {
			require.True(s.t, s.f.Deadline().After(s.now), "a deadline that has passed would spin the driver")
		}
		if !eff.Wake {
			return
		}
		ev = Woke{}
	}
	s.t.Fatal("the machine asks to be woken for ever")
}

func (s *script) say(format string, args ...any) { fmt.Fprintf(&s.out, "\t"+format+"\n", args...) }

func (s *script) print(e *Effects) {
	for _, v := range e.Voided {
		s.say("void %s", v.TopicPartition)
	}
	for _, d := range e.Deliver {
		switch {
		case d.Chunk != nil:
			s.say("deliver %s %d..%d", d.TopicPartition, d.Chunk.From.Offset, d.Chunk.Next.Offset-1)
		case d.Moved != nil:
			s.say("position of %s is %s", d.TopicPartition, at(*d.Moved))
		case d.Failure != nil && d.Failure.Halted:
			s.say("halt %s: %v", d.TopicPartition, d.Failure.Err)
		default:
			s.say("report %s after %s: %v", d.TopicPartition, d.Failure.Elapsed, d.Failure.Err)
		}
	}
	for _, n := range e.Notices {
		who := n.TopicPartition.String()
		if n.Topic == "" {
			who = fmt.Sprintf("broker %d", n.Broker)
		}
		s.say("notice %s %s: %s", n.Kind, who, n.Reason)
	}
	for _, h := range e.Leaders {
		s.say("learn %s is led by %d in epoch %d", h.TopicPartition, h.Leader.Broker, h.Leader.Epoch)
	}
	for _, topic := range e.Track {
		s.say("track %s", topic)
	}
	for _, topic := range e.Untrack {
		s.say("untrack %s", topic)
	}
	if e.Refresh {
		s.say("refresh metadata")
	}
	for _, l := range e.Lookups {
		kind := "offsets"
		if l.Epochs {
			kind = "ends"
		}
		s.lookups[fmt.Sprintf("%s %d", kind, l.Broker)] = l
		for _, p := range l.Parts {
			if l.Epochs {
				s.say("ask %d for the end of epoch %d in %s", l.Broker, p.Epoch, p.TopicPartition)
			} else {
				s.say("ask %d for offset of %d in %s", l.Broker, p.Timestamp, p.TopicPartition)
			}
		}
	}
	for _, f := range e.Fetches {
		s.printFetch(f)
	}
}

func (s *script) printFetch(f *Fetch) {
	var parts []string
	for _, p := range f.Parts {
		parts = append(parts, fmt.Sprintf("%s@%s", p.TopicPartition, at(Position{p.Offset, p.FetchedEpoch})))
	}
	for _, p := range f.Forget {
		parts = append(parts, fmt.Sprintf("-%s", p.TopicPartition))
	}
	what := "fetch"
	if !f.ByID {
		what = "fetch by name"
	}
	s.say("%s %d session %d:%d wait %s [%s]", what, f.Broker, f.SessionID, f.Epoch, f.MaxWait, strings.Join(parts, " "))
}

func at(p Position) string { return fmt.Sprintf("%d/%d", p.Offset, p.Epoch) }

var lastHyphen = regexp.MustCompile(`^(.*)-(\d+)$`)

func tp(name string) TopicPartition {
	m := lastHyphen.FindStringSubmatch(name)
	if m == nil {
		return TopicPartition{Topic: name}
	}
	n, _ := strconv.Atoi(m[2])
	return TopicPartition{Topic: m[1], Partition: int32(n)}
}

// testView is a View in words: brokers=1,2 t=ID t-0=LEADER/EPOCH t-1=ERROR.
type testView struct {
	brokers []int32
	ids     map[string]wire.UUID
	codes   map[string]errcode.Code
	leaders map[TopicPartition]Leader
}

func parseView(t *testing.T, words []string) *testView {
	v := &testView{ids: map[string]wire.UUID{}, codes: map[string]errcode.Code{}, leaders: map[TopicPartition]Leader{}}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		code, isCode := codeOf(value)
		switch {
		case key == "brokers":
			for id := range strings.SplitSeq(value, ",") {
				n, err := strconv.Atoi(id)
				require.NoError(t, err)
				v.brokers = append(v.brokers, int32(n))
			}
		case lastHyphen.MatchString(key) && isCode:
			v.leaders[tp(key)] = Leader{Broker: -1, Epoch: -1, Code: code}
		case lastHyphen.MatchString(key):
			leader, epoch, _ := strings.Cut(value, "/")
			l, err := strconv.Atoi(leader)
			require.NoError(t, err)
			e, err := strconv.Atoi(epoch)
			require.NoError(t, err)
			v.leaders[tp(key)] = Leader{Broker: int32(l), Epoch: int32(e)}
		case isCode:
			v.codes[key] = code
		default:
			v.ids[key] = wire.UUID{15: byte(len(value)), 14: value[0]}
		}
	}
	return v
}

func (v *testView) Topic(name string) (wire.UUID, errcode.Code, bool) {
	if code, ok := v.codes[name]; ok {
		return wire.UUID{}, code, true
	}
	id, known := v.ids[name]
	return id, errcode.None, known
}

func (v *testView) Leader(p TopicPartition) Leader {
	if l, ok := v.leaders[p]; ok {
		return l
	}
	return Leader{Broker: -1, Epoch: -1, Code: errcode.UnknownTopicOrPartition}
}

func (v *testView) Broker(id int32) bool { return slices.Contains(v.brokers, id) }
