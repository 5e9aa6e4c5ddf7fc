package groupmember

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// commit is one call of Commit or CommitAsync.
type commit struct {
	offsets map[TopicPartition]Offset
	claims  map[TopicPartition]*claim // under which it was called; nil where there was none
	done    func(error)
}

// Commit stores offsets of held partitions with this member's generation, retrying what passes, until ctx ends or
// default.api.timeout.ms has passed. The commits of one member are carried out in the order of the calls. A commit that a
// rebalance overtakes is repeated under the new generation for what is still held; the rest fails with ErrNotOwned. When
// ctx ends first the commit may still be carried out; when it has ended already nothing is. It may be called by the
// Listener.
func (m *Member) Commit(ctx context.Context, offsets map[TopicPartition]Offset) error {
	if ctx.Err() != nil {
		return fmt.Errorf("groupmember: group %q: the commit of %d partitions was not sent: %w", m.cfg.GroupID, len(offsets), context.Cause(ctx))
	}
	outcome := make(chan error, 1)
	m.CommitAsync(offsets, func(err error) { outcome <- err })
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		select {
		case err := <-outcome: // both at once: who asks wants to know
			return err
		default:
		}
		return fmt.Errorf("groupmember: group %q: the commit of %d partitions has no outcome yet: %w", m.cfg.GroupID, len(offsets), context.Cause(ctx))
	}
}

// CommitAsync is Commit without waiting; done, which may be nil, gets the outcome from the member's goroutine and must
// not block. Commits that wait behind each other are sent together. A revocation waits for commits of its partitions.
func (m *Member) CommitAsync(offsets map[TopicPartition]Offset, done func(error)) {
	if done == nil {
		done = func(error) {}
	}
	c := &commit{offsets: maps.Clone(offsets), claims: make(map[TopicPartition]*claim, len(offsets)), done: done}
	topology := m.cl.Topology()
	for tp, o := range c.offsets {
		if known := topology.Topic(tp.Topic); known != nil && o.topic.IsZero() {
			c.offsets[tp] = o.WithTopicID(known.ID)
		}
	}
	m.mu.Lock()
	for tp := range offsets {
		if held := m.claims[tp]; held != nil {
			c.claims[tp] = held
			m.hold(held)
		}
	}
	m.pending = append(m.pending, c)
	m.mu.Unlock()
	if !m.commits.add(m.commitPending) {
		m.commitPending() // ended: nothing is held, so this only words the outcome
	}
}

// commitPending carries out all commits that wait.
func (m *Member) commitPending() {
	m.mu.Lock()
	list := m.pending
	m.pending = nil
	m.mu.Unlock()
	if len(list) == 0 {
		return
	}
	began := time.Now()
	failed := m.commitTogether(list)
	for _, c := range list {
		var errs []error
		for _, tp := range slices.SortedFunc(maps.Keys(c.offsets), machine.ComparePartitions) {
			switch {
			case c.claims[tp] == nil:
				errs = append(errs, m.commitError(tp, 0, ErrNotOwned))
			case failed[c.claims[tp]] != nil:
				errs = append(errs, failed[c.claims[tp]])
			}
		}
		err := errors.Join(errs...)
		if meter := m.cl.Meter(); err != nil {
			meter.CommitErrors.Add(1)
		} else {
			meter.Commits.Add(1)
			meter.CommitLatency.Add(time.Since(began))
		}
		c.done(err)
		for _, held := range c.claims {
			m.release(held)
		}
	}
}

// commitTogether stores the newest offset that the list has for each partition, and gives the errors of those that
// could not be stored.
func (m *Member) commitTogether(list []*commit) map[*claim]error {
	rest, failed := map[*claim]Offset{}, map[*claim]error{}
	for _, c := range list {
		for tp, held := range c.claims {
			rest[held] = c.offsets[tp]
		}
	}
	limit := m.cl.Config().APITimeout
	ctx, cancel := context.WithTimeoutCause(m.ctx, limit, fmt.Errorf("%w within default.api.timeout.ms (%s)", client.ErrTimeout, limit))
	defer cancel()
	var last error // why what is left is tried again
	for attempt := 1; len(rest) > 0; attempt++ {
		m.mu.Lock()
		generation, changed := m.machine.Generation(), m.changed
		for held := range rest {
			switch {
			case m.claims[held.TopicPartition] != held:
				failed[held] = m.commitError(held.TopicPartition, attempt, m.whyNot(last))
				delete(rest, held)
			case m.replaced(held.Topic, rest[held].topic):
				failed[held] = m.commitError(held.TopicPartition, attempt, fmt.Errorf("%w: the topic was deleted and created again since the offset was reached", errcode.UnknownTopicId))
				delete(rest, held)
			}
		}
		m.mu.Unlock()
		if len(rest) == 0 {
			break
		}
		again, err := m.commitOnce(ctx, generation, rest, failed, attempt)
		if err != nil {
			for held := range rest {
				failed[held] = m.commitError(held.TopicPartition, attempt, err)
			}
			break
		}
		if last = again; len(rest) > 0 {
			m.step(machine.Suspected{})
			m.pause(ctx, changed)
		}
	}
	return failed
}

// replaced tells that the name belongs to another topic by now. Brokers before 4.1 could not tell: they take commits by
// name alone.
func (m *Member) replaced(name string, id wire.UUID) bool {
	known := m.cl.Topology().Topic(name)
	return known != nil && !id.IsZero() && !known.ID.IsZero() && known.ID != id
}

// whyNot is the error of what is not held any more. m.mu is held.
func (m *Member) whyNot(last error) error {
	err := ErrNotOwned
	if m.ended {
		err = fmt.Errorf("%w: %w", ErrNotOwned, context.Cause(m.ctx))
	}
	if last != nil {
		err = fmt.Errorf("%w; the coordinator said: %w", err, last)
	}
	return err
}

// commitOnce asks the coordinator once (in as many attempts as the client needs). What was stored or can never be is
// taken out of rest; again says why the others are still in it.
func (m *Member) commitOnce(ctx context.Context, g Generation, rest map[*claim]Offset, failed map[*claim]error, attempt int) (again, err error) {
	req, byID := m.commitRequest(g, rest)
	target := client.Coordinator(client.GroupCoordinator, m.cfg.GroupID)
	least, most := int16(2), int16(0)
	if g.Protocol == Consumer {
		least = 9
	}
	if byID == nil {
		most = 9
	}
	resp, err := m.cl.Request(ctx, target.Versions(least, most), req)
	answer, ok := resp.(*message.OffsetCommitResponse)
	if !ok {
		return nil, err
	}
	codes := map[TopicPartition]errcode.Code{}
	for _, t := range answer.Topics {
		name := t.Name
		if name == "" {
			name = byID[t.TopicId]
		}
		for _, p := range t.Partitions {
			codes[TopicPartition{Topic: name, Partition: p.PartitionIndex}] = errcode.Code(p.ErrorCode)
		}
	}
	for held := range rest {
		code, answered := codes[held.TopicPartition]
		switch {
		case !answered:
			failed[held] = m.commitError(held.TopicPartition, attempt, fmt.Errorf("%w: the answer does not name the partition", client.ErrProtocol))
			delete(rest, held)
		case code == errcode.None:
			delete(rest, held)
		case overtaken(code) || code.Retriable() && code != errcode.UnknownTopicOrPartition && code != errcode.UnknownTopicId:
			again = code
		default:
			failed[held] = m.commitError(held.TopicPartition, attempt, code)
			delete(rest, held)
		}
	}
	return again, nil
}

// overtaken tells that a rebalance was faster, so that the commit may succeed under another generation.
func overtaken(code errcode.Code) bool {
	switch code {
	case errcode.IllegalGeneration, errcode.UnknownMemberId, errcode.RebalanceInProgress, errcode.StaleMemberEpoch:
		return true
	}
	return false
}

// commitRequest makes the request, with topic ids if all offsets have one. Those of a topic have the same: others were
// sorted out before.
func (m *Member) commitRequest(g Generation, rest map[*claim]Offset) (*message.OffsetCommitRequest, map[wire.UUID]string) {
	req := message.NewOffsetCommitRequest()
	req.GroupId, req.MemberId, req.GenerationIdOrMemberEpoch = m.cfg.GroupID, g.MemberID, g.ID
	if g.InstanceID != "" {
		req.GroupInstanceId = &g.InstanceID
	}
	order := slices.SortedFunc(maps.Keys(rest), func(a, b *claim) int { return machine.ComparePartitions(a.TopicPartition, b.TopicPartition) })
	byID := map[wire.UUID]string{}
	for i, held := range order {
		if i == 0 || order[i-1].Topic != held.Topic {
			t := message.OffsetCommitRequestTopic{Name: held.Topic}
			if id := rest[held].topic; !id.IsZero() && byID != nil {
				t.TopicId, byID[id] = id, held.Topic
			} else {
				byID = nil
			}
			req.Topics = append(req.Topics, t)
		}
		o := rest[held]
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, message.OffsetCommitRequestPartition{PartitionIndex: held.Partition, CommittedOffset: o.At,
			CommittedLeaderEpoch: o.Epoch(), CommittedMetadata: &o.Metadata})
	}
	return req, byID
}

// pause waits for something to change, at most for a back-off.
func (m *Member) pause(ctx context.Context, changed <-chan struct{}) {
	timer := time.NewTimer(m.cl.Config().RetryBackoff)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (m *Member) commitError(tp TopicPartition, attempts int, err error) error {
	e := &client.OpError{Op: "OffsetCommit", Topic: tp.Topic, Partition: tp.Partition, Attempts: attempts, Err: err}
	if op := (*client.OpError)(nil); errors.As(err, &op) && op.Op == e.Op {
		e.Broker, e.Attempts, e.Elapsed, e.Hint, e.Err = op.Broker, op.Attempts, op.Elapsed, op.Hint, op.Err
	}
	return e
}
