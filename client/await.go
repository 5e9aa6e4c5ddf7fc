package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// AwaitTopics adds the topics to those the client keeps track of and waits until metadata knows each with all
// its leaders. They stay tracked, whatever the outcome, until RemoveTopics: every refresh asks for them. Without
// names it waits for the brokers alone. A topic that still lacks some leaders after retry.backoff.max.ms is taken
// as it is, so that one offline partition does not stop the others.
//
// It ends early with the error of a topic that waiting cannot help (not authorized, invalid name) or of a cluster
// that waiting cannot help (login refused, not Kafka), and at ctx's end, or after default.api.timeout.ms when ctx
// has no deadline, with an *OpError that names a topic that is still missing and why. A ctx that has ended already tracks nothing.
func (c *Client) AwaitTopics(ctx context.Context, names ...string) (*Topology, error) {
	if err := c.refusal(ctx); err != nil {
		return nil, &OpError{Op: "Metadata", Partition: -1, Err: err}
	}
	m := &c.meta
	m.mu.Lock()
	top := m.top.Load()
	for _, name := range names {
		if top.Topic(name) == nil {
			m.track(name)
		}
		if m.tracked[name] == 0 {
			m.tracked[name] = 1
		}
	}
	if top.At.IsZero() {
		m.refresh.WantFirst()
	}
	before := m.failed
	m.mu.Unlock()
	if missing, _, _ := firstMissing(top, names); missing == "" && !top.At.IsZero() {
		return top, nil
	}
	m.kick()
	var result *Topology
	began := time.Now()
	err := c.awaitTopology(ctx, before, func(top *Topology) (bool, error) {
		missing, code, waitable := firstMissing(top, names)
		if code == errcode.LeaderNotAvailable && time.Since(began) >= c.cfg.RetryBackoffMax {
			missing, code, waitable = firstMissing(top, slices.DeleteFunc(slices.Clone(names), top.HasLeader))
		}
		if missing != "" && !waitable {
			return false, c.topicError(missing, code, 0, nil)
		}
		result = top
		return missing == "" && !top.At.IsZero(), nil
	}, func(elapsed time.Duration, cause error) error {
		missing, code, _ := firstMissing(c.Topology(), names)
		return c.topicError(missing, code, elapsed, cause)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

func firstMissing(top *Topology, names []string) (name string, code errcode.Code, waitable bool) {
	for _, name := range names {
		if code, waitable := top.Missing(name); code != errcode.None {
			return name, code, waitable
		}
	}
	return "", errcode.None, false
}

// awaitTopology waits until ready says so, ready fails, metadata fails for good, the client is closed or ctx
// ends; the last case gives what late makes of the cause. before is how often metadata had failed when the caller made
// his wish, before anybody could see to it: an older failure says nothing of now, a password may have been corrected.
func (c *Client) awaitTopology(ctx context.Context, before int, ready func(*Topology) (bool, error), late func(time.Duration, error) error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = c.within(ctx, c.cfg.APITimeout)
		defer cancel()
	}
	began := time.Now()
	m := &c.meta
	for {
		m.mu.Lock()
		changed, lastErr, failed := m.changed, m.lastErr, m.failed
		m.mu.Unlock()
		if c.ctx.Err() != nil {
			return ErrClosed
		}
		ok, err := ready(c.Topology())
		if ok || err != nil {
			return err
		}
		if failed > before && lastErr != nil && !Retriable(lastErr) {
			return lastErr
		}
		select {
		case <-changed:
		case <-c.closing():
		case <-ctx.Done():
			if ok, err := ready(c.Topology()); ok || err != nil { // it came at the same moment
				return err
			}
			cause := context.Cause(ctx)
			if lastErr != nil {
				cause = fmt.Errorf("%w; the last attempt said: %w", cause, lastErr)
			}
			return late(time.Since(began), cause)
		}
	}
}

// topicError words what is wrong with a topic. name is empty when the cluster did not answer at all.
func (c *Client) topicError(name string, code errcode.Code, elapsed time.Duration, cause error) error {
	e := &OpError{Op: "Metadata", Topic: name, Partition: -1, Attempts: 1, Elapsed: elapsed}
	answered := !c.Topology().At.IsZero()
	switch {
	case !answered || name == "":
		e.Err = cause
		e.Hint = hintOf(cause)
		if e.Err == nil {
			e.Err = errcode.BrokerNotAvailable
		}
		return e
	case code == errcode.UnknownTopicOrPartition:
		e.Err = fmt.Errorf("%w %q: %w", ErrUnknownTopic, name, code)
		if c.cfg.AutoCreateTopics {
			e.Hint = "the broker has not created it: auto.create.topics.enable may be off, or creating it is not authorized; create the topic, or check its name"
		} else {
			e.Hint = "it does not exist and this client does not ask for its creation (allow.auto.create.topics=false); create the topic, or check its name"
		}
	case code == errcode.LeaderNotAvailable:
		e.Err = fmt.Errorf("topic %q has partitions without a leader: %w", name, code)
		e.Hint = "brokers that hold its replicas are down, or the topic has just been created"
	case code == errcode.TopicAuthorizationFailed:
		e.Err = fmt.Errorf("topic %q: %w", name, code)
		e.Hint = "the principal of this client needs Describe on the topic"
	default:
		e.Err = fmt.Errorf("topic %q: %w", name, code)
	}
	if cause != nil {
		e.Err = errors.Join(e.Err, cause)
	}
	return e
}

// await turns a wait of Client.Request for metadata into one with the last error in it.
func (c *Client) awaitMetadata(ctx context.Context, ready func(*Topology) bool, what string) (*Topology, error) {
	if top := c.Topology(); ready(top) {
		return top, nil
	}
	m := &c.meta
	m.mu.Lock()
	m.full = true
	if m.top.Load().At.IsZero() {
		m.refresh.WantFirst()
	} else {
		m.refresh.Want()
	}
	before := m.failed
	m.mu.Unlock()
	m.kick()
	var result *machine.Topology
	err := c.awaitTopology(ctx, before, func(top *Topology) (bool, error) {
		result = top
		return ready(top), nil
	}, func(elapsed time.Duration, cause error) error {
		return &OpError{Op: "Metadata", Partition: -1, Attempts: 1, Elapsed: elapsed, Hint: hintOf(cause), Err: fmt.Errorf("%s: %w", what, cause)}
	})
	return result, err
}
