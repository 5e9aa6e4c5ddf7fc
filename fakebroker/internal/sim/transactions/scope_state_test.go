package transactions

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// scope bounds a search: who is there, and how often what may go wrong.
type scope struct {
	name     string
	level    int16  // transaction.version
	txns     []int8 // transactions of each actor; the second one is another instance with the same id
	late     int8   // requests that arrive after their sender has sent them again
	lost     int8   // answers that are lost
	timeouts int8   // transactions that take too long
	reloads  int8   // elections of the coordinator
	markers  int8   // markers that are written twice, the first time without anybody knowing
	first    int16  // epoch that the producer starts with
	noEnds   bool   // EndTxn is never late
	bugs     bug.Set
}

// state is one state of a scope. It is never changed: after makes another one.
type state struct {
	s       *scope
	now     time.Time
	c       *coord
	parts   [2]*part
	actors  []actor
	late    []ask
	pending []pending
	orders  []order
	left    scope // what may still go wrong
	step    *step
}

// pending is a record between the coordinator's word and the log: a request may be overtaken there.
type pending struct {
	ask   ask
	guard uint64
	since int  // entries of the log then, which stands for what the guard has seen
	owner bool // its actor waits for the answer
}

// order is an order of the coordinator's to end a transaction.
type order struct {
	m       transaction.Markers
	written [2]bool
}

// step is how a state came about.
type step struct {
	before *step
	text   string
}

func (s *step) String() string {
	var lines []string
	for ; s != nil; s = s.before {
		lines = append(lines, s.text)
	}
	slices.Reverse(lines)
	var b bytes.Buffer
	for i, l := range lines {
		fmt.Fprintf(&b, "%3d %s\n", i, l)
	}
	return b.String()
}

func begin(s *scope) *state {
	st := &state{s: s, now: epoch, left: *s, actors: make([]actor, len(s.txns)), parts: [2]*part{newPart(0, s.bugs), newPart(1, s.bugs)}}
	c := &coord{level: s.level, bugs: s.bugs}
	c.do(coordOp{st.now, nil})
	if s.first > 0 {
		c.startAt(s.first, st.now)
	}
	st.c = c
	return st
}

// after is a copy that may be changed.
func (st *state) after(format string, args ...any) *state {
	next := *st
	next.actors, next.late = slices.Clone(st.actors), slices.Clone(st.late)
	next.pending, next.orders = slices.Clone(st.pending), slices.Clone(st.orders)
	next.step = &step{st.step, fmt.Sprintf(format, args...)}
	return &next
}

// note completes the last line of the story.
func (st *state) note(format string, args ...any) {
	st.step.text += fmt.Sprintf(format, args...)
}

// next lists all that can happen.
func (st *state) next() (all []*state) {
	for i := range st.actors {
		a := &st.actors[i]
		if a.idle() || a.waiting {
			continue
		}
		r, undecided := a.next(int8(i), st.s.level)
		if !undecided {
			all = st.sent(all, r)
			continue
		}
		for _, commit := range []bool{true, false} {
			r.commit = commit
			all = st.sent(all, r)
		}
	}
	for i := range st.late {
		next := st.after("late: %s", st.late[i])
		next.late = slices.Delete(next.late, i, i+1)
		next.arrive(&st.late[i], false)
		all = append(all, next)
	}
	for i := range st.pending {
		all = st.appended(all, i)
	}
	for i := range st.orders {
		all = st.marked(all, i)
	}
	if st.left.timeouts > 0 && st.c.view(st.now).State == transaction.Ongoing {
		all = append(all, st.timedOut())
	}
	if st.left.reloads > 0 {
		next := st.after("another coordinator")
		next.left.reloads--
		next.command(nil)
		all = append(all, next)
		if len(st.orders) > 0 {
			next := st.after("another coordinator, and nothing is on its way from the one before")
			next.left.reloads--
			next.orders = nil
			next.command(nil)
			all = append(all, next)
		}
	}
	return all
}

// sent is what may become of a request: it is answered, its answer is lost, or it comes late, and in both of the latter cases
// its actor sends it again.
func (st *state) sent(all []*state, r ask) []*state {
	decide := func(next *state) *actor {
		a := &next.actors[r.actor]
		if r.kind == endTransaction {
			if a.asked[a.txn] = aborts; r.commit {
				a.asked[a.txn] = commits
			}
		}
		return a
	}
	next := st.after("%s", r)
	decide(next)
	next.arrive(&r, true)
	all = append(all, next)
	if st.left.lost > 0 && r.kind != produceOne { // a record's answer is lost while it is pending
		next := st.after("%s, answer lost", r)
		decide(next)
		next.left.lost--
		next.arrive(&r, false)
		all = append(all, next)
	}
	if st.left.late > 0 && !(st.s.noEnds && r.kind == endTransaction) {
		next := st.after("%s: will be late", r)
		decide(next)
		next.left.late--
		next.late = append(next.late, r)
		all = append(all, next)
	}
	return all
}

func (r ask) String() string {
	switch r.kind {
	case initID:
		return fmt.Sprintf("actor %d InitProducerId as %v", r.actor, r.by)
	case addPartitions:
		return fmt.Sprintf("actor %d as %v AddPartitionsToTxn of %d for transaction %d", r.actor, r.by, r.part, r.of.txn)
	case produceOne:
		return fmt.Sprintf("actor %d as %v Produce to %d, sequence %d, of transaction %d", r.actor, r.by, r.part, r.seq, r.of.txn)
	}
	return fmt.Sprintf("actor %d as %v EndTxn(%t) for transaction %d", r.actor, r.by, r.commit, r.of.txn)
}

func where(part int8) []transaction.TopicPartition {
	return []transaction.TopicPartition{{Topic: "out", Partition: int32(part)}}
}

// arrive hands a request to whom it is for; answer: the actor gets the answer.
func (st *state) arrive(r *ask, answer bool) {
	var body any
	version := int16(0)
	if st.s.level >= 2 {
		version = 2
	}
	switch r.kind {
	case initID:
		body = transaction.InitProducerID{ID: scopeID, TimeoutMs: scopeTimeout, Expected: r.by, NewProducerID: -1}
	case addPartitions:
		body = transaction.AddPartitions{ID: scopeID, Producer: r.by, Partitions: where(r.part), Version: version}
	case endTransaction:
		body = transaction.EndTxn{ID: scopeID, Producer: r.by, Commit: r.commit, Version: version, NewProducerID: -1}
	case produceOne:
		st.verify(r, answer)
		return
	}
	out := st.command(body)
	now, _ := out.response.(transaction.Producer)
	st.note(": %s %v", out.code.Name(), now)
	if answer {
		a := &st.actors[r.actor]
		a.answered(r, out.code, now, st.s.level, st.s.txns[r.actor])
	}
}

// command has the coordinator do something.
func (st *state) command(body any) coordOutcome {
	c, out := st.c.with(st.now, body)
	st.c = c
	for _, m := range out.markers {
		st.orders = append(st.orders, order{m: m})
		o := &st.orders[len(st.orders)-1]
		o.written = [2]bool{true, true}
		for _, p := range m.Partitions {
			o.written[p.Partition] = false
		}
		st.complete(len(st.orders) - 1)
	}
	return out
}

// complete reports an order that is carried out.
func (st *state) complete(i int) {
	if o := st.orders[i]; o.written[0] && o.written[1] {
		st.orders = slices.Delete(st.orders, i, i+1)
		st.command(o.m.Written())
	}
}

// verify is a leader's first step with a transactional batch: it asks the coordinator, which adds the partition or only looks,
// unless the transaction is known to be open here.
func (st *state) verify(r *ask, answer bool) {
	guard, code := uint64(0), errcode.None
	old := st.parts[r.part]
	st.parts[r.part] = old.with(func(p *part) {
		var err error
		guard, err = p.l.StartVerification(r.by.ID, r.by.Epoch, int32(r.seq), st.s.level >= 2, st.now)
		if code = errcode.None; err != nil {
			code = storage.CodeOf(err)
		}
	})
	needed := guard != 0
	if !needed {
		st.parts[r.part] = old
	}
	if needed {
		var body any = transaction.VerifyPartitions{ID: scopeID, Producer: r.by, Partitions: where(r.part)}
		if st.s.level >= 2 {
			body = transaction.AddPartitions{ID: scopeID, Producer: r.by, Partitions: where(r.part), Version: 2}
		}
		out := st.command(body)
		code = out.code
		if codes, ok := out.response.([]errcode.Code); ok && code == errcode.None {
			code = codes[0]
		}
		if code == errcode.ProducerFenced {
			code = errcode.InvalidProducerEpoch // as leaders answer
		}
	}
	st.note(": verification %t %s", needed, code.Name())
	if code != errcode.None {
		if answer {
			st.actors[r.actor].answered(r, code, transaction.NoProducer, st.s.level, st.s.txns[r.actor])
		}
		return
	}
	st.pending = append(st.pending, pending{*r, guard, len(old.log), answer})
	if answer {
		st.actors[r.actor].waiting = true
	}
}

// appended is the second step: the log takes the batch or refuses it. Or its actor does not wait for it any more.
func (st *state) appended(all []*state, i int) []*state {
	w := st.pending[i]
	r := &w.ask
	next := st.after("append: %s", r)
	next.pending = slices.Delete(next.pending, i, i+1)
	code := errcode.None
	next.parts[r.part] = st.parts[r.part].with(func(p *part) { code = p.append(r.by, int32(r.seq), r.of, w.guard, st.now) })
	next.note(": %s", code.Name())
	if w.owner {
		a := &next.actors[r.actor]
		a.waiting = false
		a.answered(r, code, transaction.NoProducer, st.s.level, st.s.txns[r.actor])
	}
	all = append(all, next)
	if w.owner && st.left.lost > 0 {
		next := st.after("answer will be lost: %s", r)
		next.left.lost--
		next.pending[i].owner = false
		next.actors[r.actor].waiting = false
		all = append(all, next)
	}
	return all
}

// marked is one marker of an order.
func (st *state) marked(all []*state, i int) []*state {
	for p := range 2 {
		if st.orders[i].written[p] {
			continue
		}
		m := &st.orders[i].m
		for twice := range 2 {
			if twice > 0 && st.left.markers == 0 {
				continue
			}
			next := st.after("marker to %d: %v commit %t, coordinator %d", p, m.Producer, m.Commit, m.CoordinatorEpoch)
			code := errcode.None
			next.parts[p] = st.parts[p].with(func(p *part) { code = p.mark(m, st.now) })
			next.note(": %s", code.Name())
			switch {
			case twice > 0:
				next.left.markers--
				next.note(", answer lost")
			case code != errcode.None: // somebody newer is at work
				next.orders = slices.Delete(next.orders, i, i+1)
			default:
				next.orders[i].written[p] = true
				next.complete(i)
			}
			all = append(all, next)
		}
	}
	return all
}

// timedOut lets a transaction take too long.
func (st *state) timedOut() *state {
	next := st.after("timeout")
	next.left.timeouts--
	next.now = st.now.Add(scopeTimeout*time.Millisecond + 30*time.Second)
	next.command(tick{})
	return next
}

// key is what tells states apart.
func (st *state) key() uint64 {
	b := make([]byte, 0, 512)
	l := &st.left
	b = append(b, byte(l.late), byte(l.lost), byte(l.timeouts), byte(l.reloads), byte(l.markers))
	b = st.c.key(b)
	for _, p := range st.parts {
		b = p.key(b)
	}
	for i := range st.actors {
		b = st.actors[i].key(b)
	}
	part := func(n int, key func(i int) []byte) {
		list := make([][]byte, n)
		for i := range list {
			list[i] = key(i)
		}
		slices.SortFunc(list, bytes.Compare)
		b = append(b, byte(n))
		for _, k := range list {
			b = append(b, k...)
		}
	}
	part(len(st.late), func(i int) []byte { return st.late[i].key(nil) })
	part(len(st.pending), func(i int) []byte {
		w := &st.pending[i]
		return append(w.ask.key(nil), byte(w.since), byte(cmp.Compare(w.guard, 0)), byte(b2i(w.owner)))
	})
	part(len(st.orders), func(i int) []byte {
		o := &st.orders[i]
		return fmt.Appendf(nil, "%v%t%d%v", o.m.Producer, o.m.Commit, o.m.CoordinatorEpoch, o.written)
	})
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

var epoch = time.Unix(1_800_000_000, 0)
