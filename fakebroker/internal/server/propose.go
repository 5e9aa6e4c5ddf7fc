package server

import (
	"context"

	"github.com/ottla-kafka/ottla/wire/message"
)

// Propose hands a request to the controller, as a client's would be, and returns its answer when this broker follows
// what came of it. A request that ctx ends waiting for may still take effect.
func (b *Broker) Propose(ctx context.Context, req message.Request) (message.Response, error) {
	type answer struct {
		resp message.Response
		err  error
	}
	a, err := wait(ctx, func(done func(answer)) {
		b.controller.Submit(req, func(resp message.Response, err error) { done(answer{resp, err}) })
	})
	if err != nil {
		return nil, err
	}
	return a.resp, a.err
}
