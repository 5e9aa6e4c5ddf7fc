package transaction

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// A parked request came while the transaction before was being ended. Apache Kafka answers CONCURRENT_TRANSACTIONS at
// once, and its clients ask again 20 ms later; the markers take a fraction of that. With Options.Patience the request
// waits for the end that long at most, and gets the same answer when that was not enough.
type parked struct {
	id     string
	until  time.Time
	ticket coordinator.Ticket
	body   any
}

// busy answers a request that cannot be served while a transaction is being ended.
func (m *Machine) busy(now time.Time, id string, ticket coordinator.Ticket, body any, out *coordinator.Result) {
	if m.o.Patience <= 0 || len(m.parked) >= mostParked {
		out.Refuse(ticket, errcode.ConcurrentTransactions)
		return
	}
	m.parked = append(m.parked, parked{id: id, until: now.Add(m.o.Patience), ticket: ticket, body: body})
}

// mostParked bounds the requests that wait. There is one for each producer that goes on at once.
const mostParked = 1000

// resume serves the requests that wait for an id, until one has something to write: the others follow when that is done.
func (m *Machine) resume(now time.Time, id string, out *coordinator.Result) {
	for {
		i := slices.IndexFunc(m.parked, func(p parked) bool { return p.id == id })
		if t := m.txns[id]; i < 0 || t == nil || t.state.preparing() || len(out.Records) > 0 {
			return
		}
		p := m.parked[i]
		m.parked = slices.Delete(m.parked, i, i+1)
		m.Handle(now, coordinator.Request{Ticket: p.ticket, Body: p.body}, out)
	}
}

// refuseParked answers the request that has waited longest; the queue is in the order of their times.
func (m *Machine) refuseParked(code errcode.Code, out *coordinator.Result) {
	out.Refuse(m.parked[0].ticket, code)
	m.parked = m.parked[1:]
}

// Drop implements coordinator.Dropper.
func (m *Machine) Drop(code errcode.Code, out *coordinator.Result) {
	for len(m.parked) > 0 {
		m.refuseParked(code, out)
	}
}
