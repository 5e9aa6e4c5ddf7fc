package machine

import "time"

// add starts a partition.
func (f *Fetcher) add(now time.Time, ev Added, eff *Effects) {
	if f.byName[ev.TopicPartition] != nil {
		return
	}
	p := newPartition(ev.TopicPartition)
	f.parts = append(f.parts, p)
	f.byName[ev.TopicPartition] = p
	if f.topics[ev.Topic]++; f.topics[ev.Topic] == 1 {
		eff.Track = append(eff.Track, ev.Topic)
	}
	f.start(p, ev.Start, "no position yet", eff)
	if f.view != nil {
		f.place(p, eff)
	}
	eff.Wake = true
}

// start sends a partition to a place.
func (f *Fetcher) start(p *partition, to Where, why string, eff *Effects) {
	switch {
	case to.kind == whereOffset:
		p.moveTo(Position{to.value, to.epoch}, eff)
		if to.epoch >= 0 {
			p.state = validating
		}
	case !to.IsZero():
		p.resolve(to, why)
	case f.cfg.Reset == Fail:
		f.halt(p, ErrNoPosition, eff)
	default:
		p.resolve(f.cfg.Reset, why)
	}
}

// remove forgets a partition; its session entry goes with the next request to its broker.
func (f *Fetcher) remove(tp TopicPartition, eff *Effects) {
	p := f.byName[tp]
	if p == nil {
		return
	}
	p.void(eff)
	delete(f.byName, tp)
	for i := range f.parts {
		if f.parts[i] == p {
			f.parts = append(f.parts[:i:i], f.parts[i+1:]...)
			break
		}
	}
	if f.topics[tp.Topic]--; f.topics[tp.Topic] == 0 {
		delete(f.topics, tp.Topic)
		eff.Untrack = append(eff.Untrack, tp.Topic)
	}
}

// seek goes on elsewhere. A halted partition is taken up again, under the topic id that it has now.
func (f *Fetcher) seek(ev Sought, eff *Effects) {
	p := f.byName[ev.TopicPartition]
	if p == nil {
		return
	}
	p.void(eff)
	p.fine()
	p.brokenAt = -1
	if p.state == halted && f.view != nil {
		if id, _, known := f.view.Topic(p.Topic); known && !id.IsZero() {
			p.topicID = id
		}
	}
	p.started = false // what follows is what the application wants, not a reset
	f.start(p, ev.To, "seek", eff)
	eff.Wake = true
}

// pause keeps a partition out of fetches, or lets it in again.
func (f *Fetcher) pause(tp TopicPartition, on bool, eff *Effects) {
	if p := f.byName[tp]; p != nil && p.paused != on {
		p.paused = on
		eff.Wake = !on
	}
}

// drained makes room in a partition's buffer. Waking is left out while it could change nothing.
func (f *Fetcher) drained(ev Drained, eff *Effects) {
	p := f.byName[ev.TopicPartition]
	if p == nil || p.generation != ev.Generation {
		return
	}
	p.bufferedBytes -= ev.Bytes
	p.bufferedChunks--
	eff.Wake = p.lastFetch < 0 || !f.broker(p.lastFetch).inFlight
}

// broken fetches a damaged batch once more, since damage may have happened on the way, and gives up the second
// time.
func (f *Fetcher) broken(now time.Time, ev Broken, eff *Effects) {
	p := f.byName[ev.TopicPartition]
	if p == nil || p.generation != ev.Generation {
		return
	}
	p.void(eff)
	p.next = ev.Position
	if p.brokenAt == ev.Position.Offset {
		f.halt(p, ev.Err, eff)
		return
	}
	p.brokenAt = ev.Position.Offset
	p.state = fetching
	f.retry(p, now, p.lastFetch, ev.Err, false, eff)
	eff.Wake = true
}

// close ends everything. Sessions that brokers hold are given back; nobody waits for the answers.
func (f *Fetcher) close(eff *Effects) {
	f.closed = true
	for _, b := range f.brokers {
		if b.session.id != noSession {
			eff.Fetches = append(eff.Fetches, &Fetch{Broker: b.id, SessionID: b.session.id, Epoch: epochFinal, ByID: true, Final: true})
		}
	}
	for _, p := range f.parts {
		p.void(eff)
	}
	for _, p := range f.parts {
		if f.topics[p.Topic] > 0 {
			delete(f.topics, p.Topic)
			eff.Untrack = append(eff.Untrack, p.Topic)
		}
	}
}

// Rewind takes back delivered chunks that nobody has begun to read, from the position to on: they will be fetched
// again. The driver does it with what a paused partition has buffered when others need the memory. False means that
// the partition has moved elsewhere meanwhile and nothing was changed.
func (f *Fetcher) Rewind(tp TopicPartition, generation uint32, to Position, bytes, chunks int) bool {
	p := f.byName[tp]
	if p == nil || p.generation != generation || p.state != fetching || chunks > p.bufferedChunks {
		return false
	}
	p.next = to
	p.bufferedBytes -= bytes
	p.bufferedChunks -= chunks
	return true
}

// Of tells the leader of a partition and how much of it is delivered and not drained.
func (f *Fetcher) Of(tp TopicPartition) (leader int32, buffered int) {
	if p := f.byName[tp]; p != nil {
		return p.leader, p.bufferedBytes
	}
	return -1, 0
}
