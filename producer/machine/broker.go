package machine

import "time"

// broker is the pipeline of produce requests to one broker.
type broker struct {
	id       int32
	inFlight int // requests without an answer
	// preparing counts batches of its partitions that are being compressed.
	preparing int
	active    []*Partition // with an open batch or a queue; order is rotated for fairness
	start     int          // where the next request begins to look
	dirty     bool         // something happened; look whether to send
	wakeAt    time.Time    // when to look even if nothing happens
}

// Request is one produce request: at most one batch for each partition, in the
// order of Batches. The driver sets Results (parallel to Batches) or Err.
type Request struct {
	Broker  int32
	Batches []*Batch
	Size    int // of the batches together

	// Results has an answer for each batch when the broker answered.
	Results []Result
	// Err is why there is no answer; Written that it may have got through.
	Err     error
	Written bool
	// Fatal: trying again will not help (login refused, client closed).
	Fatal bool

	// Owner is for the driver; it survives recycling.
	Owner any

	pipe *broker
}

func (m *Machine) broker(id int32) *broker {
	if id < 0 {
		return m.homeless
	}
	for _, b := range m.brokers {
		if b.id == id {
			return b
		}
	}
	b := &broker{id: id, wakeAt: never}
	m.brokers = append(m.brokers, b)
	return b
}

func (b *broker) activate(p *Partition) {
	if !p.active {
		p.active = true
		b.active = append(b.active, p)
	}
}

func (b *broker) deactivate(p *Partition) {
	if !p.active {
		return
	}
	p.active = false
	for i, x := range b.active {
		if x == p {
			b.remove(i)
			return
		}
	}
}

// remove takes active[i] out; the order of the others does not matter much.
func (b *broker) remove(i int) {
	last := len(b.active) - 1
	b.active[i] = b.active[last]
	b.active[last] = nil
	b.active = b.active[:last]
}

func (m *Machine) newRequest(pipe *broker) *Request {
	if n := len(m.free); n > 0 {
		r := m.free[n-1]
		m.free = m.free[:n-1]
		r.pipe, r.Broker = pipe, pipe.id
		return r
	}
	return &Request{pipe: pipe, Broker: pipe.id}
}

// Recycle takes back a request that was brought as Replied, after that Step.
func (m *Machine) Recycle(r *Request) {
	clear(r.Batches)
	clear(r.Results)
	*r = Request{Batches: r.Batches[:0], Results: r.Results[:0], Owner: r.Owner}
	if len(m.free) < 64 {
		m.free = append(m.free, r)
	}
}
