package sim

import (
	"maps"
	"slices"
	"time"

	cm "github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

const (
	autoCommit  = 2 * time.Second
	drain       = rebalance / 2
	concurrency = 3
	ahead       = 8 // records of one partition in hand or waiting
	retryAfter  = 100 * time.Millisecond
)

// owner is the driver of consumer/machine's Claim and Work: it reads what the member is given, processes it, and commits
// what is done, in the order that package consumer has.
type owner struct {
	n       *node
	img     *image.Image // metadata as the node knows it
	claims  map[machine.TopicPartition]*claim
	commits []*commit // carried out one after the other
	busy    bool
}

// claim is the time in which the node holds a partition, once.
type claim struct {
	tp        machine.TopicPartition
	part      part
	state     cm.Claim
	work      *cm.Work[int64]
	next      int64 // offset to read
	committed int64
	final     int64 // -1; else what may be committed, whatever ends later
	giving    *giving
	commits   int  // under way
	adopted   bool // the topic was replaced since it began
}

// giving is a revocation that is being carried out.
type giving struct {
	serial uint64
	claims []*claim
	stage  cm.ClaimState
}

type commit struct {
	offsets map[*claim]int64
	parts   map[*claim]part // as it was when the commit was asked for: its offset means nothing in another life of the topic
	done    func(ok bool)
	began   time.Time
}

func (o *owner) init(n *node) {
	o.n, o.claims = n, map[machine.TopicPartition]*claim{}
	n.after(autoCommit, o.autoCommit)
}

// sorted are the claims in order.
func (o *owner) sorted() []*claim {
	return slices.SortedFunc(maps.Values(o.claims), func(a, b *claim) int { return machine.ComparePartitions(a.tp, b.tp) })
}

func (c *claim) ended() bool { return c.state.State() == cm.ClaimEnded }

// idOf is the topic id that the node knows for a name.
func (o *owner) idOf(topic string) wire.UUID {
	if o.img != nil {
		if t := o.img.Topic(topic); t != nil {
			return t.ID
		}
	}
	return wire.UUID{}
}

func (o *owner) assigned(a *machine.Assignment) {
	w := o.n.w
	for _, tp := range a.Added {
		if o.claims[tp] != nil {
			w.Fail("%s is given %s, which it has", o.n.name, tp)
		}
		c := &claim{tp: tp, part: part{o.idOf(tp.Topic), tp.Partition}, final: -1}
		o.claims[tp] = c
		w.ledger.claimed(o.n, c)
		o.start(c)
	}
	if len(o.claims) != len(a.All) {
		w.Fail("%s holds %d partitions, its member says %d", o.n.name, len(o.claims), len(a.All))
	}
}

// start looks up where a claim begins, until it works or nobody wants to know.
func (o *owner) start(c *claim) {
	n := o.n
	again := func() { n.after(retryAfter, func() { o.start(c) }) }
	if c.state.State() != cm.ClaimStarting || o.claims[c.tp] != c {
		return
	}
	if id := o.idOf(c.tp.Topic); c.part.id.IsZero() {
		c.part.id = id
	} else if !id.IsZero() && id != c.part.id {
		o.replace(c, id)
	}
	if c.part.id.IsZero() || n.m.Coordinator() < 0 {
		again()
		return
	}
	req := message.NewOffsetFetchRequest()
	req.RequireStable = true
	req.Groups = []message.OffsetFetchRequestGroup{{GroupId: groupID, MemberEpoch: -1,
		Topics: []message.OffsetFetchRequestTopics{{Name: c.tp.Topic, TopicId: c.part.id, PartitionIndexes: []int32{c.tp.Partition}}}}}
	n.send(&n.client, n.m.Coordinator(), req.Key(), req.AppendTo, 0, func(resp message.Response, err error) {
		if err != nil {
			again()
			return
		}
		g := resp.(*message.OffsetFetchResponse).Groups[0]
		if g.ErrorCode != 0 || g.Topics[0].Partitions[0].ErrorCode != 0 {
			again()
			return
		}
		if c.part.id != o.idOf(c.tp.Topic) {
			again()
			return
		}
		if !c.state.Step(cm.ClaimResolved).Read {
			return
		}
		from := max(g.Topics[0].Partitions[0].CommittedOffset, 0)
		n.w.Note("%s reads %s from %d", n.name, c.tp, from)
		o.read(c, from)
	})
}

func (o *owner) read(c *claim, from int64) {
	c.next, c.committed = from, from
	c.work = cm.NewWork[int64](cm.Position{Offset: from, Epoch: -1}, false)
	o.pump()
}

// adopt goes on with a topic that was deleted and made again, from its beginning.
func (o *owner) adopt() {
	for _, c := range o.sorted() {
		id := o.idOf(c.tp.Topic)
		if id.IsZero() || id == c.part.id || c.state.State() != cm.ClaimReading {
			continue
		}
		o.n.w.Sometimes("topic replaced under a claim")
		o.replace(c, id)
		o.read(c, 0)
	}
}

// replace has a claim go on in the next life of its topic. The coordinator may have given that to another.
func (o *owner) replace(c *claim, id wire.UUID) {
	c.part.id, c.adopted = id, true
	o.n.w.ledger.badly(c.part, replaced)
}

// pump reads on and starts what may be started.
func (o *owner) pump() {
	w := o.n.w
	for _, c := range o.sorted() {
		if c.state.State() != cm.ClaimReading {
			continue
		}
		for end := w.topics.end[c.part]; c.next < end && c.work.Len() < ahead; c.next++ {
			c.work.Offer([]byte{byte(c.next % 5)}, c.next, 1, cm.Position{Offset: c.next + 1, Epoch: -1})
		}
		for c.work.Running() < concurrency {
			job, ok := c.work.Take()
			if !ok {
				break
			}
			o.process(c, c.work, job)
		}
	}
}

func (o *owner) process(c *claim, work *cm.Work[int64], job cm.Job[int64]) {
	w := o.n.w
	d := clockwork.Between(w.work, time.Millisecond, 120*time.Millisecond)
	if w.faulty && w.menu.stall && clockwork.Chance(w.work, 200) {
		d = clockwork.Between(w.work, 0, rebalance)
	}
	p := c.part
	o.n.after(d, func() {
		if c.ended() || c.final >= 0 || work != c.work {
			w.ledger.processed(p, job.Item, true)
			return // too late: whoever has the partition now does it again
		}
		w.ledger.processed(p, job.Item, false)
		work.Finish(job.Seq)
		if c.giving != nil {
			o.drained(c.giving)
			return
		}
		o.pump()
	})
}

func (c *claim) done() int64 {
	if c.final >= 0 || c.work == nil {
		return c.final
	}
	return c.work.Frontier().Offset
}

// revoked gives claims up: drain, commit, confirm.
func (o *owner) revoked(r *machine.Revocation) {
	g := &giving{serial: r.Serial, stage: cm.ClaimDraining}
	for _, tp := range r.Parts {
		c := o.claims[tp]
		if c == nil {
			o.n.w.Fail("%s is to give up %s, which it does not have", o.n.name, tp)
		}
		if c.state.Step(cm.ClaimRevoking).Stop {
			c.work.Drain()
		}
		c.giving = g
		g.claims = append(g.claims, c)
	}
	o.n.after(drain, func() { o.overdue(g) })
	o.n.after(0, func() { o.drained(g) }) // not within the step that asks for it
}

// pumpDraining starts what has to be finished for the frontier to cover all that was started.
func (o *owner) pumpDraining(g *giving) {
	for _, c := range g.claims {
		for c.work != nil && c.state.State() == cm.ClaimDraining {
			job, ok := c.work.Take()
			if !ok {
				break
			}
			o.process(c, c.work, job)
		}
	}
}

func (o *owner) drained(g *giving) {
	for _, c := range g.claims {
		if !c.ended() && c.work != nil && c.work.Len() > 0 && c.final < 0 {
			o.pumpDraining(g)
			return
		}
	}
	o.release(g, cm.ClaimDrained)
}

func (o *owner) overdue(g *giving) {
	if g.stage != cm.ClaimDraining {
		return
	}
	o.n.w.Sometimes("given up undrained")
	for _, c := range g.claims {
		if !c.ended() && c.work != nil && c.work.Len() > 0 {
			c.final = c.work.Frontier().Offset
			o.n.w.ledger.badly(c.part, undrained)
		}
	}
	o.release(g, cm.ClaimOverdue)
}

// release commits what is done and confirms.
func (o *owner) release(g *giving, ev cm.ClaimEvent) {
	if g.stage != cm.ClaimDraining {
		return
	}
	g.stage = cm.ClaimCommitting
	offsets := map[*claim]int64{}
	for _, c := range g.claims {
		c.state.Step(ev)
		if c.state.Step(cm.ClaimReleased).Commit && c.done() >= 0 && c.done() != c.committed {
			offsets[c] = c.done()
		}
	}
	o.commit(offsets, func(bool) { o.confirm(g) })
}

// confirm tells the member when no commit of the partitions is under way any more.
func (o *owner) confirm(g *giving) {
	for _, c := range g.claims {
		if c.commits > 0 && !c.ended() {
			o.n.after(10*time.Millisecond, func() { o.confirm(g) })
			return
		}
	}
	sent := false
	for _, c := range g.claims {
		if c.state.Step(cm.ClaimCommitted).Confirm {
			if c.committed < c.done() {
				o.n.w.ledger.badly(c.part, uncommitted)
			}
			o.n.w.Note("%s gave up %s at %d", o.n.name, c.tp, c.committed)
			delete(o.claims, c.tp)
			sent = true
		}
	}
	if sent {
		o.n.step(machine.Revoked{Serial: g.serial})
	}
}

func (o *owner) lost(l machine.Loss) {
	w := o.n.w
	for _, tp := range l.Parts {
		c := o.claims[tp]
		if c == nil {
			w.Fail("%s lost %s, which it does not have", o.n.name, tp)
		}
		c.state.Step(cm.ClaimLost)
		delete(o.claims, tp)
		w.ledger.badly(c.part, lost)
	}
	if len(o.claims) > 0 {
		w.Fail("%s lost all and holds %d partitions", o.n.name, len(o.claims))
	}
	w.Sometimes("partitions lost")
}

// autoCommit commits what is done, every now and then.
func (o *owner) autoCommit() {
	offsets := map[*claim]int64{}
	for _, c := range o.claims {
		if c.giving == nil && c.state.State() == cm.ClaimReading && c.commits == 0 && c.done() > c.committed {
			offsets[c] = c.done()
		}
	}
	o.commit(offsets, nil)
	if !o.n.over {
		o.n.after(autoCommit, o.autoCommit)
	}
}

func (o *owner) commit(offsets map[*claim]int64, done func(bool)) {
	if done == nil {
		done = func(bool) {}
	}
	if len(offsets) == 0 {
		done(true)
		return
	}
	parts := map[*claim]part{}
	for c := range offsets {
		c.commits++
		parts[c] = c.part
	}
	o.commits = append(o.commits, &commit{offsets, parts, done, o.n.w.Now})
	o.next()
}

// next carries out the commit that has waited longest.
func (o *owner) next() {
	if o.busy || len(o.commits) == 0 {
		return
	}
	o.busy = true
	o.attempt(o.commits[0], maps.Clone(o.commits[0].offsets))
}

// attempt asks the coordinator once, under the generation of this moment, for what is still held.
func (o *owner) attempt(x *commit, rest map[*claim]int64) {
	n := o.n
	for c := range rest {
		if c.ended() || o.idOf(c.tp.Topic) != x.parts[c].id {
			delete(rest, c)
		}
	}
	finish := func() {
		o.busy = false
		o.commits = o.commits[1:]
		for c := range x.offsets {
			c.commits--
		}
		x.done(true)
		o.next()
	}
	again := func() { n.after(retryAfter, func() { o.attempt(x, rest) }) }
	switch {
	case len(rest) == 0 || n.over || n.w.Now.Sub(x.began) > time.Minute:
		finish()
		return
	case n.m.Coordinator() < 0:
		again()
		return
	}
	gen := n.m.Generation()
	req := message.NewOffsetCommitRequest()
	req.GroupId, req.MemberId, req.GenerationIdOrMemberEpoch = groupID, gen.MemberID, gen.ID
	if gen.InstanceID != "" {
		req.GroupInstanceId = &gen.InstanceID
	}
	order := slices.SortedFunc(maps.Keys(rest), func(a, b *claim) int { return machine.ComparePartitions(a.tp, b.tp) })
	for i, c := range order {
		if i == 0 || order[i-1].tp.Topic != c.tp.Topic {
			req.Topics = append(req.Topics, message.OffsetCommitRequestTopic{Name: c.tp.Topic, TopicId: x.parts[c].id})
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, message.OffsetCommitRequestPartition{PartitionIndex: c.tp.Partition, CommittedOffset: rest[c], CommittedLeaderEpoch: -1})
	}
	n.send(&n.client, n.m.Coordinator(), req.Key(), req.AppendTo, 0, func(resp message.Response, err error) {
		if err != nil {
			again()
			return
		}
		suspected := false
		i := 0
		for _, t := range resp.(*message.OffsetCommitResponse).Topics {
			for _, p := range t.Partitions {
				i++
				c := find(x.parts, t, p.PartitionIndex)
				if c == nil {
					n.w.Fail("the answer to a commit names %s-%d, which nobody asked about", t.Name, p.PartitionIndex)
				}
				switch code := errcode.Code(p.ErrorCode); {
				case code == errcode.None:
					if c.part == x.parts[c] {
						c.committed = max(c.committed, rest[c])
					}
					delete(rest, c)
				case code == errcode.IllegalGeneration || code == errcode.UnknownMemberId || code == errcode.RebalanceInProgress || code == errcode.StaleMemberEpoch:
					suspected = true
					n.w.Sometimes("commit overtaken: " + code.Name())
				case code.Retriable() && code != errcode.UnknownTopicOrPartition && code != errcode.UnknownTopicId:
				default:
					n.w.Sometimes("commit refused: " + code.Name())
					delete(rest, c)
				}
			}
		}
		if i != len(order) {
			n.w.Fail("a commit of %d partitions has an answer about %d", len(order), i)
		}
		if len(rest) == 0 {
			finish()
			return
		}
		if suspected {
			n.step(machine.Suspected{})
		}
		again()
	})
}

// find is the claim that an answer is about.
func find(asked map[*claim]part, t message.OffsetCommitResponseTopic, partition int32) *claim {
	for c, p := range asked {
		if p.index == partition && (t.Name != "" && t.Name == c.tp.Topic || t.Name == "" && t.TopicId == p.id) {
			return c
		}
	}
	return nil
}
