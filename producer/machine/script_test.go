package machine_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// TestScripts plays testdata/*.txt. A line is a command, the lines behind it that begin with a blank are what the
// machine made of it. `OTTLA_UPDATE=1 go test ./producer/machine` rewrites those.
//
//	config key=value...            before anything else
//	leader P BROKER EPOCH          LeaderChanged
//	open P [urgent]                Gathered with an open batch, opened now
//	batch P NAME RECORDS [SIZE]    Gathered with a sealed batch
//	id ID EPOCH | id CODE          ProducerIDReceived
//	prepared NAME                  Prepared
//	reply REQ ok OFFSET | CODE | lost | unsent | refused    for every batch, or NAME=... for one
//	divide NAME A:N B:M            Divided
//	withdraw NAME RECORDS          Withdrawn
//	hurry | relax | press | ease | abort
//	begin ID EPOCH [implicit]      Begun, after "config transactional=true"
//	enlisted P                     Enlisted
//	drop                           Dropped
//	wait DURATION                  time passes, with a Tick at each deadline
func TestScripts(t *testing.T) { wiretest.Stories(t, play) }

// player is the driver of a script.
type player struct {
	t        *testing.T
	m        *machine.Machine
	now      time.Time
	start    time.Time
	parts    map[string]*machine.Partition
	batches  map[string]*machine.Batch
	requests map[string]*machine.Request
	opened   map[string]time.Time
	sent     int
	out      strings.Builder
}

func play(t *testing.T, script string) string {
	p := &player{
		t: t, start: time.Unix(1000, 0), now: time.Unix(1000, 0),
		parts: map[string]*machine.Partition{}, batches: map[string]*machine.Batch{},
		requests: map[string]*machine.Request{}, opened: map[string]time.Time{},
	}
	cfg := machine.Config{
		Linger: 5 * time.Millisecond, DeliveryTimeout: 2 * time.Second, RetryBackoff: 100 * time.Millisecond,
		RetryBackoffMax: time.Second, Retries: 1 << 30, MaxInFlight: 5, MaxRequestSize: 1000, Idempotent: true,
	}
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, " "):
			continue
		case line == "" || strings.HasPrefix(line, "#"):
			p.out.WriteString(line + "\n")
			continue
		}
		p.out.WriteString(line + "\n")
		words := strings.Fields(line)
		if words[0] == "config" {
			configure(t, &cfg, words[1:])
			continue
		}
		if p.m == nil {
			p.m = machine.New(cfg)
		}
		p.command(words[0], words[1:])
	}
	return p.out.String()
}

func configure(t *testing.T, cfg *machine.Config, words []string) {
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(v)
		switch k {
		case "idempotent":
			cfg.Idempotent = v == "true"
		case "compressed":
			cfg.Compressed = v == "true"
		case "transactional":
			cfg.Transactional = v == "true"
		case "noacks":
			cfg.NoAcks = v == "true"
		case "retries":
			cfg.Retries = n
		case "inflight":
			cfg.MaxInFlight = n
		default:
			t.Fatalf("config %s", k)
		}
	}
}

func (p *player) command(name string, a []string) {
	switch name {
	case "leader":
		p.step(machine.Event{Kind: machine.LeaderChanged, Partition: p.part(a[0]), Leader: number(a[1]), LeaderEpoch: number(a[2])})
	case "open":
		p.opened[a[0]] = p.now
		p.step(machine.Event{Kind: machine.Gathered, Partition: p.part(a[0]), Opened: p.now, Urgent: len(a) > 1})
	case "batch":
		size := 100
		if len(a) > 3 {
			size = int(number(a[3]))
		}
		b := p.batch(a[1], number(a[2]), size)
		p.step(machine.Event{Kind: machine.Gathered, Partition: p.part(a[0]), Batches: []*machine.Batch{b}, Opened: p.opened[a[0]]})
	case "id":
		e := machine.Event{Kind: machine.ProducerIDReceived}
		if len(a) == 2 {
			e.ID, e.Epoch = int64(number(a[0])), int16(number(a[1]))
		} else {
			c := code(p.t, a[0])
			e.Err, e.Fatal = c, !c.Retriable()
		}
		p.step(e)
	case "prepared":
		p.step(machine.Event{Kind: machine.Prepared, Batch: p.batches[a[0]]})
	case "reply":
		p.reply(p.requests[a[0]], a[1:])
	case "divide":
		e := machine.Event{Kind: machine.Divided, Batch: p.batches[a[0]]}
		for _, w := range a[1:] {
			n, c, _ := strings.Cut(w, ":")
			x := p.batch(n, number(c), 50)
			x.Created = e.Batch.Created
			e.Batches = append(e.Batches, x)
		}
		p.step(e)
	case "withdraw":
		b := p.batches[a[0]]
		if !b.Withdrawable() {
			p.say("not withdrawable")
			return
		}
		b.Count = number(a[1])
		p.step(machine.Event{Kind: machine.Withdrawn, Batch: b})
	case "hurry":
		p.step(machine.Event{Kind: machine.Hurried})
	case "relax":
		p.step(machine.Event{Kind: machine.Relaxed})
	case "press":
		p.step(machine.Event{Kind: machine.Pressed})
	case "ease":
		p.step(machine.Event{Kind: machine.Eased})
	case "abort":
		p.step(machine.Event{Kind: machine.Aborted, Err: errors.New("closed")})
	case "begin":
		p.step(machine.Event{Kind: machine.Begun, ID: int64(number(a[0])), Epoch: int16(number(a[1])), Implicit: len(a) > 2})
	case "enlisted":
		p.step(machine.Event{Kind: machine.Enlisted, Partition: p.part(a[0])})
	case "drop":
		p.step(machine.Event{Kind: machine.Dropped, Err: errAborted})
	case "wait":
		d, err := time.ParseDuration(a[0])
		require.NoError(p.t, err)
		p.wait(d)
	default:
		p.t.Fatalf("command %s", name)
	}
}

// wait lets time pass and brings a Tick at every deadline on the way.
func (p *player) wait(d time.Duration) {
	end := p.now.Add(d)
	for n := 0; p.m.Deadline().Before(end) || p.m.Deadline().Equal(end); n++ {
		require.Less(p.t, n, 10_000, "the deadline does not move")
		if p.m.Deadline().After(p.now) {
			p.now = p.m.Deadline()
		}
		p.step(machine.Event{Kind: machine.Tick})
	}
	p.now = end
}

func (p *player) reply(r *machine.Request, a []string) {
	require.NotNil(p.t, r)
	r.Results = make([]machine.Result, len(r.Batches))
	for _, w := range a {
		switch w {
		case "lost":
			r.Err, r.Written = errors.New("connection lost"), true
		case "unsent":
			r.Err = errors.New("connection refused")
		case "refused":
			r.Err, r.Fatal = errors.New("login refused"), true
		}
		if r.Err != nil {
			break
		}
		who, what, one := strings.Cut(w, "=")
		if !one {
			who, what = "", w
		}
		for i, b := range r.Batches {
			if who == "" || b.Owner == who {
				r.Results[i] = result(p.t, what)
			}
		}
	}
	p.step(machine.Event{Kind: machine.Replied, Request: r})
	p.m.Recycle(r)
}

func result(t *testing.T, what string) machine.Result {
	if strings.HasPrefix(what, "ok") {
		n, _ := strconv.Atoi(what[2:])
		return machine.Result{BaseOffset: int64(n), AppendTime: -1}
	}
	if what == "missing" {
		return machine.Result{Missing: true}
	}
	return machine.Result{Code: code(t, what), BaseOffset: -1, AppendTime: -1}
}

// step feeds events and carries out the effects, seals at once.
func (p *player) step(events ...machine.Event) {
	for len(events) > 0 {
		e := p.m.Step(p.now, events...)
		events = nil
		for _, mp := range e.Seal {
			name := mp.Owner.(string)
			b := p.batch(fmt.Sprintf("%s@%d", name, p.ms(p.opened[name])), 1, 100)
			b.Created = p.opened[name]
			delete(p.opened, name)
			p.say("seal %s: %s", name, b.Owner)
			events = append(events, machine.Event{Kind: machine.Gathered, Partition: mp, Batches: []*machine.Batch{b}})
		}
		for _, b := range e.Prepare {
			p.say("prepare %s", b.Owner)
		}
		for _, b := range e.Split {
			p.say("split %s", b.Owner)
		}
		for _, b := range e.Release {
			p.say("release %s", b.Owner)
		}
		for _, b := range e.Discard {
			p.say("discard %s", b.Owner)
		}
		for _, v := range e.Verdicts {
			p.say("%s", verdict(v))
		}
		for _, r := range e.Send {
			p.sent++
			name := fmt.Sprintf("#%d", p.sent)
			p.requests[name] = r
			words := []string{}
			for _, b := range r.Batches {
				words = append(words, fmt.Sprintf("%s(id %d epoch %d seq %d)", b.Owner, b.ProducerID, b.Epoch, b.BaseSequence))
			}
			p.say("send %s to %d: %s", name, r.Broker, strings.Join(words, " "))
		}
		if e.InitProducerID {
			p.say("ask for a producer id")
		}
		if e.Refresh {
			p.say("refresh metadata")
		}
		for _, mp := range e.Bumped {
			id, epoch := mp.Producer()
			p.say("bump %s: id %d epoch %d", mp.Owner, id, epoch)
		}
		for _, mp := range e.Enlist {
			p.say("enlist %s", mp.Owner)
		}
		for _, d := range e.Doomed {
			p.say("%s", doom(d))
		}
	}
}

var errAborted = errors.New("transaction aborted")

func doom(d machine.Doom) string {
	s := fmt.Sprintf("doomed by %s: %s", d.Partition.Owner, d.Outcome)
	switch {
	case d.Code != errcode.None:
		s += ", " + d.Code.Name()
	case d.Err != nil:
		s += ", " + d.Err.Error()
	}
	if d.Sequenced {
		s += ", its sequence is used up"
	}
	return s
}

func verdict(v machine.Verdict) string {
	s := fmt.Sprintf("verdict %s: %s", v.Batch.Owner, v.Outcome)
	if v.Expired {
		s += ", expired"
	}
	switch {
	case v.Outcome == machine.Acked:
		s += fmt.Sprintf(" at %d", v.Result.BaseOffset)
	case v.Code != errcode.None:
		s += ", " + v.Code.Name()
	case v.Err != nil:
		s += ", " + v.Err.Error()
	}
	return s
}

func (p *player) say(format string, a ...any) {
	fmt.Fprintf(&p.out, "  %4dms  %s\n", p.ms(p.now), fmt.Sprintf(format, a...))
}

func (p *player) ms(t time.Time) int64 { return t.Sub(p.start).Milliseconds() }

func (p *player) part(name string) *machine.Partition {
	if p.parts[name] == nil {
		p.parts[name] = machine.NewPartition(name)
	}
	return p.parts[name]
}

func (p *player) batch(name string, count int32, size int) *machine.Batch {
	b := &machine.Batch{Owner: name}
	b.Reset()
	b.Count, b.Size, b.Created = count, size, p.now
	p.batches[name] = b
	return b
}

func number(s string) int32 {
	n, _ := strconv.Atoi(s)
	return int32(n)
}

func code(t *testing.T, name string) errcode.Code {
	for c := errcode.Code(-1); c < 200; c++ {
		if c.Known() && c.Name() == name {
			return c
		}
	}
	t.Fatalf("no error code %s", name)
	return 0
}
