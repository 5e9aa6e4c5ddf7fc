package transactions

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// lane is one connection of a session: bytes keep their order on it, in both directions, and the broker takes the next request
// when it has answered the one before.
type lane struct {
	out, in time.Time // when the last request, the last answer arrives
	calls   []*call   // without an outcome
	inbox   []func()  // at the broker
	busy    bool
	// What is lost on a connection takes all that comes behind it along.
	mute, deaf bool
}

// enter has the broker take a request; next lets it take the one behind it.
func (l *lane) enter(f func()) {
	l.inbox = append(l.inbox, f)
	l.next(false)
}

func (l *lane) next(answered bool) {
	if answered {
		l.busy = false
	}
	if l.busy || len(l.inbox) == 0 {
		return
	}
	f := l.inbox[0]
	l.inbox, l.busy = l.inbox[1:], true
	f()
}

// call is a request under way.
type call struct {
	n       *node
	lane    *lane
	to      int32
	key     wire.Key
	version int16
	done    func(message.Response, error)
}

// end gives a call its outcome, once.
func (c *call) end(resp message.Response, err error) {
	if c.done == nil {
		return
	}
	done := c.done
	c.done = nil
	for i, other := range c.lane.calls {
		if other == c {
			c.lane.calls = append(c.lane.calls[:i:i], c.lane.calls[i+1:]...)
			break
		}
	}
	c.n.do(func() { done(resp, err) })
}

// arrival is when something sent now arrives behind what was sent before.
func (w *world) arrival(last *time.Time) time.Duration {
	at := w.Now.Add(w.delay())
	if at.Before(*last) {
		at = *last
	}
	*last = at
	return at.Sub(w.Now)
}

// send carries a request to a broker as bytes, and its answer back; done runs once. When a request has no answer in time, or its
// connection breaks, slot gets another connection.
func (n *node) send(slot **lane, to int32, req message.Request, version int16, done func(message.Response, error)) {
	w, l := n.w, *slot
	body, err := req.AppendTo(nil, version)
	if err != nil {
		w.Fail("%s: %s version %d does not encode: %v", n.name, req.Key(), version, err)
	}
	w.Mix(body)
	c := &call{n: n, lane: l, to: to, key: req.Key(), version: version, done: done}
	l.calls = append(l.calls, c)
	w.After(5*time.Second, func() {
		if c.done != nil {
			c.end(nil, errTimeout)
			w.breaks(slot, l)
		}
	})
	if w.faulty && w.menu.late && clockwork.Chance(w.net, 25) {
		// The connection breaks; the request is in some buffer and comes through when its sender has gone on.
		w.After(w.delay(), func() { w.breaks(slot, l) })
		at := clockwork.Between(w.net, 0, 8*time.Second)
		if late := w.Now.Add(at); late.After(l.out) {
			l.out = late // what was sent behind it comes behind it
		}
		w.After(l.out.Sub(w.Now), func() { l.enter(func() { n.arrive(c, body) }) })
		return
	}
	if l.mute = l.mute || n.mute || w.lost(); l.mute {
		return
	}
	w.After(w.arrival(&l.out), func() { l.enter(func() { n.arrive(c, body) }) })
}

// breaks ends a connection; who waits for answers on it is told.
func (w *world) breaks(slot **lane, l *lane) {
	if *slot == l {
		*slot = &lane{}
	}
	for _, c := range append([]*call(nil), l.calls...) {
		c.end(nil, errBroken)
	}
}

// arrive hands a request to its broker, whether its sender still waits or not.
func (n *node) arrive(c *call, body []byte) {
	w := n.w
	if !w.up[c.to] {
		w.After(w.delay(), func() { c.end(nil, errBroken) })
		c.lane.next(true)
		return
	}
	if c.done == nil {
		w.Sometimes("request arrived after its sender gave it up: " + c.key.String())
	}
	req := message.NewRequest(c.key)
	if err := req.ReadFrom(wire.NewReader(body), c.version); err != nil {
		w.Fail("%s: %s version %d does not decode: %v", n.name, c.key, c.version, err)
	}
	w.handle(c.to, req, c.version, func(resp message.Response) {
		answer, err := resp.AppendTo(nil, c.version)
		if err != nil {
			w.Fail("answer to %s version %d does not encode: %v", c.key, c.version, err)
		}
		w.Mix(answer)
		defer c.lane.next(true)
		if c.lane.deaf = c.lane.deaf || n.deaf || w.lost(); c.lane.deaf {
			return
		}
		w.After(w.arrival(&c.lane.in), func() {
			if n.deaf {
				return
			}
			got := req.NewResponse()
			if err := got.ReadFrom(wire.NewReader(answer), c.version); err != nil {
				w.Fail("answer to %s version %d does not decode: %v", c.key, c.version, err)
			}
			c.end(got, nil)
		})
	})
}
