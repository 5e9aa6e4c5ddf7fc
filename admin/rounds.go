package admin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// rounds asks about n things until none is left: first about all, then about those whose error passes, with
// retry.backoff.ms between, as long as ctx and default.api.timeout.ms allow. ask writes the outcome of each index of left
// to errs and leaves the other indexes alone. The result has the last error of each. Nothing is asked under a ctx that has
// ended already.
func (a *Admin) rounds(ctx context.Context, n int, passes func(err error, round int) bool, ask func(ctx context.Context, left []int, errs []error)) []error {
	cfg := a.cl.Config()
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.APITimeout, fmt.Errorf("%w within default.api.timeout.ms (%s)", client.ErrTimeout, cfg.APITimeout))
	defer cancel()
	backoff := machine.Backoff{First: cfg.RetryBackoff, Most: cfg.RetryBackoffMax}
	random := machine.NewRand(rand.Uint64())
	errs, left := make([]error, n), make([]int, n)
	for i := range left {
		left[i] = i
	}
	if ctx.Err() != nil {
		setAll(errs, left, fmt.Errorf("nothing was sent: %w", context.Cause(ctx)))
		return errs
	}
	for round := 1; len(left) > 0; round++ {
		before := slices.Clone(errs)
		ask(ctx, left, errs)
		over := ctx.Err() != nil
		left = slices.DeleteFunc(left, func(i int) bool {
			return errs[i] == nil || !passes(errs[i], round) && !(over && errors.Is(errs[i], context.Cause(ctx)))
		})
		if len(left) == 0 {
			break
		}
		if over {
			interrupted(context.Cause(ctx), left, errs, before)
			break
		}
		a.cl.RefreshMetadata() // the client's own picture may be as old as what has just failed
		if !sleep(ctx, backoff.After(round, &random)) {
			interrupted(context.Cause(ctx), left, errs, errs)
			break
		}
	}
	return errs
}

// interrupted words the end of ctx for the rows that would have been asked for again, with what was the matter before.
func interrupted(cause error, left []int, errs, before []error) {
	for _, i := range left {
		switch {
		case before[i] != nil && !errors.Is(before[i], cause):
			errs[i] = fmt.Errorf("%w; the last attempt said: %w", cause, before[i])
		case !errors.Is(errs[i], cause):
			errs[i] = fmt.Errorf("%w; the last attempt said: %w", cause, errs[i])
		}
	}
}

// sleep waits unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// throttled tells that a row may get through later: its broker's quota of changes is used up (KIP-599). Whatever else
// stands in a row of a controller's answer is final; what concerns the whole request the client has tried again itself.
func throttled(err error, _ int) bool {
	var row *Error
	return errors.As(err, &row) && row.Code == errcode.ThrottlingQuotaExceeded
}

// unknownRounds is in how many rounds a topic or partition may be unknown before that is believed: one that was created a
// moment ago reaches the other brokers within that time (0.7 s with Kafka's back-off).
const unknownRounds = 4

// passing tells that a partition's leader may say something else later.
func passing(err error, round int) bool {
	if errors.Is(err, errcode.UnknownTopicOrPartition) && round >= unknownRounds {
		return false
	}
	return client.Retriable(err)
}
