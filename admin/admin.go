package admin

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Admin administers the cluster of its client. Make it with New or Dial.
type Admin struct {
	cl    *client.Client
	owned bool // Close closes cl
}

// New makes an Admin on a client, which stays the caller's to close. It does no I/O, and nothing has to be closed.
func New(cl *client.Client) *Admin { return &Admin{cl: cl} }

// Dial makes an Admin with a client of its own, which Close closes. It does no I/O either; the error is only ever about
// the configuration.
func Dial(seeds []string, opts ...client.Option) (*Admin, error) {
	cl, err := client.New(append([]client.Option{client.Seeds(seeds...)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &Admin{cl: cl, owned: true}, nil
}

// Client is the client the Admin works with.
func (a *Admin) Client() *client.Client { return a.cl }

// Close closes the client if Dial made it, and does nothing otherwise. Calls under way end with client.ErrClosed.
func (a *Admin) Close(ctx context.Context) error {
	if !a.owned {
		return nil
	}
	return a.cl.Close(ctx)
}

// request sends a request, with the client's retries, and gives its answer in its own type. The answer of a broker that
// refused comes beside the error.
func request[R message.Response](ctx context.Context, a *Admin, to client.Target, req message.Request) (R, error) {
	resp, err := a.cl.Request(ctx, to, req)
	r, ok := resp.(R)
	if err == nil && !ok {
		err = fmt.Errorf("%v: the client answered with %T", req.Key(), resp)
	}
	return r, tooOld(err, req.Key(), 0)
}

// once is one attempt of a request, in version least or later, at one broker. It uses the administrators' connection,
// where no fetch that waits for records stands in front of it.
func once[R message.Response](ctx context.Context, a *Admin, broker int32, least int16, req message.Request) (R, error) {
	var none R
	done := make(chan client.Reply, 1)
	timeout := a.cl.Config().RequestTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)), time.Millisecond)
	}
	a.cl.Issue(broker, client.Metadata, &client.Call{Key: req.Key(), MinVersion: least, Append: req.AppendTo, Timeout: timeout,
		Done: func(r client.Reply) { done <- r }})
	var reply client.Reply
	select {
	case reply = <-done:
	case <-ctx.Done():
		select {
		case reply = <-done: // both at once: what became of a change is worth more than that time is over
		default:
			return none, context.Cause(ctx)
		}
	}
	if reply.Err != nil {
		return none, tooOld(reply.Err, req.Key(), least)
	}
	resp := req.NewResponse()
	if err := resp.ReadFrom(wire.NewReader(reply.Body), reply.Version); err != nil {
		return none, &client.OpError{Op: req.Key().String(), Broker: a.cl.BrokerName(broker), Partition: -1, Attempts: 1,
			Err: fmt.Errorf("%w: %w", client.ErrProtocol, err)}
	}
	return resp.(R), nil
}

// patience is the timeout.ms of a request: how long the broker may wait for a change to be complete. It is a little less
// than the attempt has, so that the broker's own answer, which says what became of each row, comes in time.
func (a *Admin) patience(ctx context.Context) int32 {
	left := a.cl.Config().RequestTimeout
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	return int32(max(left*9/10/time.Millisecond, 1))
}

// TopicPartition names one partition; it is the consumer's type, too.
type TopicPartition = client.TopicPartition

// text is a nullable string without its null.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// clamp32 keeps a number that the protocol cannot carry from becoming another one; the broker refuses it then.
func clamp32(n int) int32 { return int32(min(max(n, math.MinInt32), math.MaxInt32)) }

// clamp16 does the same for 16 bits.
func clamp16(n int) int16 { return int16(min(max(n, math.MinInt16), math.MaxInt16)) }

// leftOut is the error of a row that the broker's answer does not have.
func leftOut(op, what string) error {
	return &Error{Op: op, What: what, Code: errcode.UnknownServerError, Message: "the broker's answer leaves it out"}
}
