package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// DefaultTimeout is how long a broker may take for a change (timeout.ms in the requests) when ctx has no deadline.
const DefaultTimeout = 30 * time.Second

// Admin administers the cluster of its client. Make it with New.
type Admin struct{ cl *client.Client }

// New makes an Admin on a client, which stays the caller's to close. It does no I/O.
func New(cl *client.Client) *Admin { return &Admin{cl} }

// Error is what a broker said about one thing: a topic, a partition, a configuration. Unwrap gives the code, so
// errors.Is(err, errcode.UnknownTopicOrPartition) works, through joined errors too.
type Error struct {
	Op      string // what was asked, such as "create topic"
	What    string // about what, such as "orders" or "orders-3"
	Code    errcode.Code
	Message string // the broker's own text; empty when it sent none
}

// Error is the operation, its object, Kafka's name of the code, and the broker's text.
func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("%s %s: %v", e.Op, e.What, e.Code)
	}
	return fmt.Sprintf("%s %s: %s: %s", e.Op, e.What, e.Code.Name(), e.Message)
}

// Unwrap is the code.
func (e *Error) Unwrap() error { return e.Code }

// rowError is nil for code None.
func rowError(op, what string, code int16, text *string) error {
	if code == 0 {
		return nil
	}
	e := &Error{Op: op, What: what, Code: errcode.Code(code)}
	if text != nil {
		e.Message = *text
	}
	return e
}

// joinRows is the error of a whole call: the errors of its rows.
func joinRows[R any](rows []R, err func(R) error) error {
	var all []error
	for _, r := range rows {
		if e := err(r); e != nil {
			all = append(all, e)
		}
	}
	return errors.Join(all...)
}

// request sends one request and gives its answer in its own type.
func request[R message.Response](ctx context.Context, a *Admin, to client.Target, req message.Request) (R, error) {
	var none R
	resp, err := a.cl.Request(ctx, to, req)
	if err != nil {
		return none, err
	}
	r, ok := resp.(R)
	if !ok {
		return none, fmt.Errorf("%v: the client answered with %T", req.Key(), resp)
	}
	return r, nil
}

// timeoutMs is the time that the broker may take: what is left of ctx.
func timeoutMs(ctx context.Context) int32 {
	left := DefaultTimeout
	if end, ok := ctx.Deadline(); ok {
		left = max(min(time.Until(end), 24*time.Hour), time.Millisecond)
	}
	return int32(left.Milliseconds())
}

// TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the name of the partition's folder and of Kafka's logs: topic-partition.
func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }
