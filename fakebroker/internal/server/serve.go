package server

import (
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Handle implements network.Handler: one frame becomes one request in its handler's hands. What cannot be read, or is
// not served, closes the connection, as with Apache Kafka; only ApiVersions has an answer for every version.
func (b *Broker) Handle(x *network.Exchange) {
	s := b.sessionOf(x.Conn)
	if s.auth == awaitRawToken {
		b.rawToken(x, s)
		return
	}
	var rd wire.Reader
	rd.Reset(x.Frame)
	head, err := wire.ReadRequestHeader(&rd)
	if err != nil {
		x.Fail(fmt.Errorf("request header: %w", err))
		return
	}
	r := &s.request
	*r = Request{
		Key:           head.Key,
		Version:       head.Version,
		CorrelationID: head.CorrelationID,
		ClientID:      head.ClientID,
		Listener:      x.Conn.Listener,
		Principal:     s.principal,
		RemoteAddr:    x.Conn.Remote,
		Received:      x.Timing.Received,
		x:             x,
		session:       s,
	}
	x.Tag = r
	h, ok := handlers[head.Key]
	if !ok {
		r.Close(notServed(head.Key))
		return
	}
	early := s.permits(head.Key)
	if early != nil && s.auth != awaitAuthenticate {
		r.Close(early)
		return
	}
	if !served(head.Key, head.Version) {
		if head.Key == wire.KeyApiVersions {
			b.answerUnknownApiVersions(r)
			return
		}
		low, high, _ := wire.BrokerVersions(head.Key)
		r.Close(fmt.Errorf("%s request of version %d: versions %d to %d are served", head.Key, head.Version, low, high))
		return
	}
	r.Body = s.body(head.Key)
	if err := r.Body.ReadFrom(&rd, head.Version); err != nil {
		r.Close(fmt.Errorf("request body: %w", err))
		return
	}
	if early != nil { // between handshake and login there is an answer, as far as the API has a form for it
		b.refuseEarly(r, early)
		return
	}
	if (b.faults.Active() || b.late.waiting.Load() > 0) && b.inject(r, h) {
		return
	}
	h(b, r)
}

// served reports whether requests of a version are answered; Produce is advertised from 0 and served from 3.
func served(k wire.Key, version int16) bool {
	low, high, ok := wire.BrokerVersions(k)
	if low2, _, _ := wire.Versions(k); low2 > low {
		low = low2
	}
	return ok && version >= low && version <= high
}

func notServed(k wire.Key) error {
	if k.Valid() {
		return fmt.Errorf("%s requests are not served by this broker (ApiVersions lists those that are)", k)
	}
	return fmt.Errorf("unknown API key %d", int16(k))
}

// Sent implements network.Handler: it files the timing of an answered request.
func (b *Broker) Sent(x *network.Exchange) {
	if r, ok := x.Tag.(*Request); ok {
		b.metrics.record(r.Key, &x.Timing)
	}
}

// finish hands the answer to the connection, unless a fault rule wants it lost.
func (r *Request) finish(a network.Answer) {
	if hook := r.outcome.Answered; hook != nil {
		r.outcome.Answered = nil
		go func() { hook(); r.finish(a) }() // ends with the hook, which may well stop this broker
		return
	}
	if r.late != nil {
		r.late.served(r)
	}
	if r.outcome.Lose {
		if held, ok := a.(network.Releaser); ok {
			held.Release()
		}
		r.x.Fail(fmt.Errorf("fault rule: %s applied, response lost", r.Key))
		return
	}
	r.x.Complete(a)
}

// body returns a request message to read into. Produce and Fetch requests, the hot ones, are reused: a connection has
// one request at a time, and handlers let go of Body when they have responded.
func (s *session) body(k wire.Key) message.Request {
	switch k {
	case wire.KeyProduce:
		return &s.produce
	case wire.KeyFetch:
		return &s.fetch
	}
	return message.NewRequest(k)
}
