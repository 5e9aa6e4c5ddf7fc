package server

import (
	"net"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// A Request is one decoded request on its way through a handler.
//
// Body aliases the connection's read buffer and, for hot APIs, is itself reused: a handler may keep it only until it
// has responded.
type Request struct {
	Key           wire.Key
	Version       int16
	CorrelationID int32
	ClientID      *string
	Body          message.Request

	Listener   string    // listener name, such as PLAINTEXT
	Principal  string    // such as User:ANONYMOUS
	RemoteAddr net.Addr  // peer
	Received   time.Time // when the last byte had come: limits of the request (max.wait, timeout) start here

	x      *network.Exchange
	broker *Broker
	fate   injected // what a fault rule wants done with the answer
}

// Respond answers the request. Exactly one Respond, RespondRaw, NoResponse or Close per request, from any goroutine, now
// or later; it never blocks.
func (r *Request) Respond(resp message.Response) {
	r.finish(&messageAnswer{key: r.Key, version: r.Version, correlationID: r.CorrelationID, body: resp})
}

// RespondRaw answers with an Answer that writes header and body itself: fetch, whose records are not copied.
func (r *Request) RespondRaw(a network.Answer) { r.finish(a) }

// NoResponse ends a request that gets no answer: Produce with acks=0.
func (r *Request) NoResponse() { r.x.Skip() }

// Close ends the request by closing its connection, which is how Apache Kafka answers what it cannot read.
func (r *Request) Close(reason error) { r.x.Fail(reason) }
