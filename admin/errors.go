package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

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
	e := &Error{Op: op, What: what, Code: errcode.FromCode(code)}
	if text != nil {
		e.Message = *text
	}
	return e
}

// topError is the error of a whole request: what the client says, with the broker's text where it sent one.
func topError(err error, op, what string, code int16, text *string) error {
	if err != nil && code != 0 && text != nil && *text != "" {
		return rowError(op, what, code, text)
	}
	return err
}

// joinErrors is the error of a call, from those of its rows. The error of a request that several rows share is there once.
func joinErrors(errs []error) error {
	var all []error
	seen := map[error]bool{}
	for _, err := range errs {
		if err != nil && !seen[err] {
			seen[err] = true
			all = append(all, err)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// outcome is the error of a call whose rows have these. A call about nothing fails only when ctx has ended.
func outcome(ctx context.Context, errs []error) error {
	if len(errs) == 0 {
		return context.Cause(ctx)
	}
	return joinErrors(errs)
}
