package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Request sends a request to the broker the target stands for and gives its answer. It finds that broker, tries
// again after retriable errors (connection, leader, coordinator or controller moved, broker loading) with
// retry.backoff.ms, and ends at the end of ctx or after default.api.timeout.ms. An error code at the top of the
// answer, or one inside that says the wrong broker was asked, is looked at for that; one that remains is returned
// beside the answer. A ctx that has ended already sends nothing.
func (c *Client) Request(ctx context.Context, to Target, req message.Request) (message.Response, error) {
	if err := c.refusal(ctx); err != nil {
		return nil, c.requestError(ctx, to, req, err, 0, 0)
	}
	ctx, cancel := c.within(ctx, max(c.cfg.APITimeout, to.timeout))
	defer cancel()
	began, backoff := time.Now(), machine.Backoff{First: c.cfg.RetryBackoff, Most: c.cfg.RetryBackoffMax}
	var resp message.Response
	for attempt := 1; ; attempt++ {
		broker, err := c.resolve(ctx, to)
		if err == nil {
			resp, err = c.attempt(ctx, broker, to, req)
		}
		if err == nil {
			return resp, nil
		}
		if !Retriable(err) || ctx.Err() != nil {
			return resp, c.requestError(ctx, to, req, err, attempt, time.Since(began))
		}
		c.learnFrom(to, broker, err)
		c.meter.requestRetries.Add(1)
		c.log.Debug("kafka: trying again", "request", req.Key().String(), "to", to.String(), "attempt", attempt, "error", err)
		if !c.sleep(ctx, c.jittered(backoff, attempt)) {
			return resp, c.requestError(ctx, to, req, err, attempt, time.Since(began))
		}
	}
}

// refusal is why a call is not begun at all: the client is closed, or ctx has ended before.
func (c *Client) refusal(ctx context.Context) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return context.Cause(ctx)
}

// within bounds a call by default.api.timeout.ms, or by as much as its target may take.
func (c *Client) within(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, bound, fmt.Errorf("%w within default.api.timeout.ms (%s)", ErrTimeout, bound))
}

// sleep waits unless ctx or the client ends first.
func (c *Client) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-c.closing():
	}
	return false
}

// requestError puts attempts and time into the error, and beside a cause that would have been tried again what ended the
// attempts.
func (c *Client) requestError(ctx context.Context, to Target, req message.Request, err error, attempts int, elapsed time.Duration) error {
	out := &OpError{Op: req.Key().String(), Topic: to.topic, Partition: -1, Attempts: attempts, Elapsed: elapsed, Err: err, Hint: hintOf(err)}
	if to.kind == toLeader {
		out.Partition = to.partition
	}
	var inner *OpError
	if errors.As(err, &inner) {
		out.Broker = inner.Broker
		if inner.Op == out.Op {
			out.Err = inner.Err
		}
	}
	if !Retriable(err) {
		return out // it says everything: what a broker decided stands, whatever ended meanwhile
	}
	if c.ctx.Err() != nil {
		out.Err = ErrClosed
		return out
	}
	out.Err = endedBy(context.Cause(ctx), out.Err)
	return out
}

// endedBy puts what ended the attempts, nil for nothing, in front of what the last one said.
func endedBy(cause, last error) error {
	if cause == nil || errors.Is(last, cause) {
		return last
	}
	return fmt.Errorf("%w; the last attempt said: %w", cause, last)
}

// attempt is one try at one broker.
func (c *Client) attempt(ctx context.Context, broker int32, to Target, req message.Request) (message.Response, error) {
	timeout := to.timeout
	if timeout <= 0 {
		timeout = c.cfg.RequestTimeout
	}
	if d, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(d)), time.Millisecond)
	}
	reply, err := c.ask(ctx, broker, to.purpose, &Call{Key: req.Key(), MinVersion: to.minVersion, MaxVersion: to.maxVersion,
		Append: req.AppendTo, Timeout: timeout})
	if err != nil {
		return nil, err
	}
	resp := req.NewResponse()
	if err := resp.ReadFrom(wire.NewReader(reply.Body), reply.Version); err != nil {
		return nil, &OpError{Op: req.Key().String(), Broker: c.BrokerName(broker), Partition: -1, Attempts: 1, Err: fmt.Errorf("%w: %w", ErrProtocol, err)}
	}
	if code := answerCode(resp); code != errcode.None {
		return resp, &OpError{Op: req.Key().String(), Broker: c.BrokerName(broker), Partition: -1, Attempts: 1, Err: code}
	}
	return resp, nil
}

// ask is Issue that waits for the outcome, or for ctx to end: then the link drops the answer, if one comes.
func (c *Client) ask(ctx context.Context, broker int32, p Purpose, call *Call) (Reply, error) {
	done := make(chan Reply, 1)
	call.Done = func(r Reply) { done <- r }
	c.Issue(broker, p, call)
	select {
	case r := <-done:
		return r, r.Err
	case <-ctx.Done():
	}
	select {
	case r := <-done: // it was there
		return r, r.Err
	default:
		return Reply{}, context.Cause(ctx)
	}
}

// learnFrom gives up what an error shows to be out of date.
func (c *Client) learnFrom(to Target, broker int32, err error) {
	var code errcode.Code
	isCode := errors.As(err, &code)
	if to.kind == toCoordinator && (!isCode || code == errcode.NotCoordinator || code == errcode.CoordinatorNotAvailable) {
		c.ForgetCoordinator(to.coord, to.key)
	}
	if !isCode || code.InvalidMetadata() || code == errcode.NotController || code == errcode.RebootstrapRequired {
		c.RefreshMetadata()
	}
}

// resolve finds the broker a target stands for at present.
func (c *Client) resolve(ctx context.Context, to Target) (int32, error) {
	switch to.kind {
	case toController:
		top, err := c.awaitMetadata(ctx, func(t *Topology) bool { _, ok := t.Brokers[t.Controller]; return ok }, "no controller is known")
		if err != nil {
			return -1, err
		}
		return top.Controller, nil
	case toBroker:
		return c.brokerByID(ctx, to.broker)
	case toLeader:
		return c.leader(ctx, to)
	case toCoordinator:
		return c.coordinator(ctx, to.coord, to.key)
	}
	return c.anyBroker(ctx)
}

// brokerByID waits for one new answer of metadata when the broker is not in the present one. A broker that answer
// does not name either does not exist, and waiting longer would help nobody; one that was there before is down or
// moving, and comes back.
func (c *Client) brokerByID(ctx context.Context, id int32) (int32, error) {
	before := c.Topology()
	top, err := c.awaitMetadata(ctx, func(t *Topology) bool {
		_, ok := t.Brokers[id]
		return ok || !t.At.Equal(before.At)
	}, "no broker has answered")
	if err != nil {
		return -1, err
	}
	if _, ok := top.Brokers[id]; ok {
		return id, nil
	}
	if c.meta.hasSeen(id) {
		return -1, fmt.Errorf("%w: %d was there before", ErrUnknownBroker, id)
	}
	return -1, &noBrokerError{id: id, nodes: top.Nodes()}
}

func (c *Client) leader(ctx context.Context, to Target) (int32, error) {
	if leader, _, ok := c.Topology().Leader(to.topic, to.partition); ok {
		return leader, nil
	}
	top, err := c.AwaitTopics(ctx, to.topic)
	if err != nil && top == nil {
		return -1, err
	}
	leader, _, ok := top.Leader(to.topic, to.partition)
	if !ok {
		n := 0
		if t := top.Topic(to.topic); t != nil {
			n = len(t.Partitions)
		}
		return -1, fmt.Errorf("%w: topic %q has %d partitions, there is no partition %d", errcode.UnknownTopicOrPartition, to.topic, n, to.partition)
	}
	return leader, nil
}

// anyBroker prefers a broker a metadata connection is open to, the one with the least under way, then any known
// one that is not in its back-off. A seed is not among them: its link gets a broker's id, or is given up, with the first
// answer of metadata, and a call issued behind that by the seed's id would open a second connection.
func (c *Client) anyBroker(ctx context.Context) (int32, error) {
	top, err := c.awaitMetadata(ctx, func(t *Topology) bool { return !t.At.IsZero() }, "no broker has answered")
	if err != nil {
		return -1, err
	}
	best, load := int32(-1), -1
	for _, id := range c.metadataConnections() {
		if l := c.existing(id, Metadata); l != nil && id >= 0 {
			if up, n := l.connected(); up && (load < 0 || n < load) {
				best, load = id, n
			}
		}
	}
	if load >= 0 {
		return best, nil
	}
	nodes := top.Nodes()
	c.randMu.Lock()
	first := c.rand.Intn(len(nodes))
	c.randMu.Unlock()
	for i := range nodes {
		id := nodes[(first+i)%len(nodes)].ID
		if l := c.existing(id, Metadata); l == nil || !l.resting(time.Now()) {
			return id, nil
		}
	}
	return nodes[first].ID, nil
}
