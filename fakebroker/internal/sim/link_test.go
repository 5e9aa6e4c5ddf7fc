package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

var (
	errBroken  = errors.New("connection ended")
	errTimeout = errors.New("no answer in time")
)

// lane is one connection of a node: bytes keep their order on it, in both directions.
type lane struct {
	out, in time.Time // when the last request, the last answer arrives
	calls   []*call   // without an outcome
}

// call is a request under way.
type call struct {
	n    *node
	lane *lane
	to   int32
	late bool // arrived after its sender had given it up
	done func(resp message.Response, err error)
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

// delay is what a packet takes.
func (w *world) delay() time.Duration {
	if w.faulty && w.menu.slow && clockwork.Chance(w.net, 40) {
		return clockwork.Between(w.net, 0, 4*time.Second)
	}
	return clockwork.Between(w.net, time.Millisecond, 30*time.Millisecond)
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

// send carries a request to a broker as bytes, and its answer back; done runs once.
func (n *node) send(l *lane, to int32, key wire.Key, appendTo func([]byte, int16) ([]byte, error), timeout time.Duration, done func(message.Response, error)) {
	w := n.w
	version := n.version(key)
	body, err := appendTo(nil, version)
	if err != nil {
		w.Fail("%s: %s version %d does not encode: %v", n.name, key, version, err)
	}
	w.Mix(body)
	c := &call{n: n, lane: l, to: to, done: done}
	l.calls = append(l.calls, c)
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	w.After(timeout, func() { c.end(nil, errTimeout) })
	if n.mute || w.faulty && w.menu.loss && clockwork.Chance(w.net, 80) {
		w.Sometimes("request lost")
		return
	}
	w.After(w.arrival(&l.out), func() { n.arrive(c, key, version, body) })
}

// arrive hands a request to the broker. One whose connection has ended meanwhile may still arrive: that is how a retry
// and its original both get there.
func (n *node) arrive(c *call, key wire.Key, version int16, body []byte) {
	w := n.w
	if c.done == nil {
		if !w.menu.late || !w.faulty || !clockwork.Chance(w.net, 2) {
			return
		}
		c.late = true
		w.Sometimes("request arrived after its sender gave it up: " + key.String())
	}
	if w.brokers.down(c.to) {
		w.After(w.delay(), func() { c.end(nil, errBroken) })
		return
	}
	req := message.NewRequest(key)
	if err := req.ReadFrom(wire.NewReader(body), version); err != nil {
		w.Fail("%s: %s version %d does not decode: %v", n.name, key, version, err)
	}
	w.brokers.handle(c, req, version, func(resp message.Response) {
		answer, err := resp.AppendTo(nil, version)
		if err != nil {
			w.Fail("answer to %s version %d does not encode: %v", key, version, err)
		}
		w.Mix(answer)
		if n.deaf || w.faulty && w.menu.loss && clockwork.Chance(w.net, 80) {
			w.Sometimes("answer lost")
			return
		}
		w.After(w.arrival(&c.lane.in), func() {
			if n.deaf {
				return
			}
			got := req.NewResponse()
			if err := got.ReadFrom(wire.NewReader(answer), version); err != nil {
				w.Fail("answer to %s version %d does not decode: %v", key, version, err)
			}
			c.end(got, nil)
		})
	})
}

// hangUp ends connections: of one broker, or to any.
func (n *node) hangUp(to int32) {
	for _, l := range []*lane{&n.group, &n.held, &n.client} {
		for _, c := range append([]*call(nil), l.calls...) {
			if to < 0 || c.to == to {
				n.w.After(n.w.delay(), func() { c.end(nil, errBroken) })
			}
		}
	}
}

// version is what this node speaks of an API: the newest, or what an older client would.
func (n *node) version(key wire.Key) int16 {
	_, newest, ok := wire.Versions(key)
	if !ok {
		panic(fmt.Sprintf("sim: no versions of %s", key))
	}
	if n.old {
		if v, ok := oldVersions[key]; ok {
			return v
		}
	}
	return newest
}

// oldVersions are those that knew static members first, and epochs of the consumer protocol.
var oldVersions = map[wire.Key]int16{wire.KeyJoinGroup: 5, wire.KeySyncGroup: 3, wire.KeyHeartbeat: 3, wire.KeyLeaveGroup: 3,
	wire.KeyOffsetCommit: 9, wire.KeyOffsetFetch: 8, wire.KeyConsumerGroupHeartbeat: 1}
