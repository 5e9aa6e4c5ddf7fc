package server

import (
	"fmt"
	"net"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// A Request is one decoded request on its way through a handler.
//
// Request and Body are reused by the connection, and Body's bytes alias its read buffer: a handler may keep them only
// until it has responded.
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

	x       *network.Exchange
	session *session
	outcome fault.Outcome // what a fault rule wants done with it
	late    *lateRequests // to be told of the answer; nil while no request is to come late
	answer  messageAnswer
}

// Respond answers the request. Exactly one Respond, RespondRaw, NoResponse or Close per request, from any goroutine, now
// or later; it never blocks.
func (r *Request) Respond(resp message.Response) {
	r.answer = messageAnswer{key: r.Key, version: r.Version, correlationID: r.CorrelationID, body: resp}
	r.finish(&r.answer)
}

// RespondRaw answers with an Answer that writes header and body itself: fetch, whose records are not copied.
func (r *Request) RespondRaw(a network.Answer) { r.finish(a) }

// NoResponse ends a request that gets no answer: Produce with acks=0.
func (r *Request) NoResponse() {
	if hook := r.outcome.Answered; hook != nil {
		r.outcome.Answered = nil
		go func() { hook(); r.NoResponse() }() // as in finish
		return
	}
	if r.outcome.Lose {
		r.Close(fmt.Errorf("fault rule: %s applied, connection dropped", r.Key))
		return
	}
	r.x.Skip()
}

// Close ends the request by closing its connection, which is how Apache Kafka answers what it cannot read.
func (r *Request) Close(reason error) { r.x.Fail(reason) }
