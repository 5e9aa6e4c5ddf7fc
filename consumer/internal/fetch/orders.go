package fetch

import (
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// view shows a client's topology to the machine.
type view struct{ t *client.Topology }

func (v view) Topic(name string) (wire.UUID, errcode.Code, bool) {
	t := v.t.Topic(name)
	if t == nil {
		return wire.UUID{}, errcode.None, false
	}
	return t.ID, t.Err, true
}

func (v view) Leader(tp machine.TopicPartition) machine.Leader {
	p := v.t.Topic(tp.Topic).Partition(tp.Partition)
	if p == nil {
		return machine.Leader{Broker: -1, Epoch: -1, Code: errcode.UnknownTopicOrPartition}
	}
	return machine.Leader{Broker: p.Leader, Epoch: p.LeaderEpoch, Code: p.Err}
}

func (v view) Broker(id int32) bool {
	_, ok := v.t.Brokers[id]
	return ok
}

// carryOut does what is on the list, in the order that machine.Effects gives. No lock is held.
func (d *Driver) carryOut(e *machine.Effects) {
	if d.opts.Notice != nil {
		for _, n := range e.Notices {
			d.opts.Notice(n)
		}
	}
	if len(e.Track) > 0 {
		d.cl.AddTopics(e.Track...)
	}
	if len(e.Untrack) > 0 {
		d.cl.RemoveTopics(e.Untrack...)
	}
	for _, l := range e.Leaders {
		d.cl.LearnLeader(l.TopicID, l.Partition, l.Leader.Broker, l.Leader.Epoch, nil)
	}
	if e.Refresh {
		d.cl.RefreshMetadata()
	}
	for _, l := range e.Lookups {
		d.lookUp(l)
	}
	for _, f := range e.Fetches {
		d.fetch(f)
	}
}

// fetch sends a fetch once the memory for its answer is reserved. While there is none, a goroutine waits for it,
// at most one for each broker, since the machine has one fetch in flight there; the driver's own goroutine must
// not wait.
func (d *Driver) fetch(f *machine.Fetch) {
	if f.Final {
		d.cl.Issue(f.Broker, d.lane, &client.Call{Key: wire.KeyFetch, MinVersion: 7, Append: d.appendFetch(f), Done: func(client.Reply) {}})
		return
	}
	reserve := int64(f.MaxBytes)
	if d.budget.TryAcquire(reserve) {
		d.issue(f, reserve)
		return
	}
	d.mu.Lock()
	d.starving++
	d.evict()
	d.mu.Unlock()
	d.group.Go(func() { // ends when there is memory, or with d.ctx
		err := d.budget.Acquire(d.ctx, reserve)
		d.mu.Lock()
		d.starving--
		d.mu.Unlock()
		if err == nil {
			d.issue(f, reserve)
		}
	})
}

// issue sends a fetch whose memory is reserved.
func (d *Driver) issue(f *machine.Fetch, reserve int64) {
	var block []byte // the memory of the answer, if it comes from the pool
	call := &client.Call{
		Key: wire.KeyFetch, Append: d.appendFetch(f), Timeout: d.cl.Config().RequestTimeout + f.MaxWait,
		Done: func(r client.Reply) { d.answered(f, reserve, r, block) },
		// The limit counts records; what is around them takes some dozens of bytes for each partition.
		MaxResponse: int(f.MaxBytes) + 4096 + 256*len(f.Parts),
	}
	if !f.ByID {
		call.MaxVersion = 12 // the last that names topics
	}
	if d.pool != nil {
		d.pool.trim(time.Now())
		call.Memory = func(n int) []byte {
			block = d.pool.get(n)
			return block
		}
	}
	d.cl.Issue(f.Broker, d.lane, call)
}

// answered takes the outcome of a fetch, in the connection's goroutine.
func (d *Driver) answered(f *machine.Fetch, reserve int64, r client.Reply, block []byte) {
	charged := settle(d.budget, reserve, int64(len(r.Body)))
	if block != nil && r.Err == nil {
		charged.pool, charged.block = d.pool, block
	}
	defer charged.leave()
	if r.Err != nil {
		d.Step(machine.FetchFailed{Broker: f.Broker, Err: r.Err})
		return
	}
	m := d.cl.Meter()
	m.FetchLatency.Add(r.Latency)
	m.FetchedBytes.Add(int64(len(r.Body)))
	ev, nodes, err := d.decodeFetch(f, r, charged)
	if err != nil {
		d.Step(machine.FetchFailed{Broker: f.Broker, Err: err})
		return
	}
	d.learn(ev.Parts, nodes)
	d.Step(ev)
}

// learn hands leaders that an answer names, with their addresses, to the client (KIP-951).
func (d *Driver) learn(parts []machine.FetchedPart, nodes []client.Node) {
	if len(nodes) == 0 {
		return
	}
	for _, p := range parts {
		if p.Leader.Broker >= 0 {
			d.cl.LearnLeader(p.TopicID, p.Partition, p.Leader.Broker, p.Leader.Epoch, nodes)
		}
	}
}

// lookUp sends a ListOffsets or OffsetForLeaderEpoch request.
func (d *Driver) lookUp(l *machine.Lookup) {
	call := &client.Call{Key: wire.KeyListOffsets, Append: d.appendOffsets(l)}
	call.Done = func(r client.Reply) { d.Step(decodeOffsets(l, r)) }
	if l.Epochs {
		call.Key, call.Append = wire.KeyOffsetForLeaderEpoch, appendEpochs(l)
		call.Done = func(r client.Reply) { d.Step(d.decodeEpochs(l, r)) }
	}
	if wait := d.opts.Machine.MaxWait; wait > 0 {
		// A fetch that waits for data may be in front of it on the connection.
		call.Timeout = d.cl.Config().RequestTimeout + wait + time.Second
	}
	d.cl.Issue(l.Broker, d.lane, call)
}
