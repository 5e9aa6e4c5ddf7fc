package txn

import (
	"context"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/txn/machine"
)

// SendOffsets makes the offsets of a consumer group part of the transaction: they are committed if it is. The
// generation fences: when the group has moved on, the transaction can only be aborted (KIP-447, brokers 2.5 and later).
// The zero Generation commits without that check, for consumers that are in no group. Offsets are the next ones to read.
// All of a call go in one request. After an error the transaction can only be aborted.
func (tx *Tx) SendOffsets(ctx context.Context, group string, g groupmember.Generation, offsets map[groupmember.TopicPartition]groupmember.Offset) error {
	return tx.sendOffsets(ctx, func() (string, groupmember.Generation, map[groupmember.TopicPartition]groupmember.Offset, error) {
		return group, g, offsets, nil
	})
}

// staleTries is how often a generation that the group does not know is offered again, in case that the member has not
// heard yet of a newer one.
const staleTries = 3

// offsetSource says what to commit, and as which member of the group.
type offsetSource = func() (group string, g groupmember.Generation, at map[groupmember.TopicPartition]groupmember.Offset, err error)

// sendOffsets is SendOffsets with offsets that are asked for again when the group has moved on from their generation: with
// KIP-848 a member's epoch may move while a request is on its way and its partitions are still its own. An error of source
// dooms the transaction.
func (tx *Tx) sendOffsets(ctx context.Context, source offsetSource) error {
	s := tx.s
	if ctx.Err() != nil {
		err := s.fail("SendOffsets", Abortable, context.Cause(ctx))
		s.step(machine.Spoiled{Err: err})
		return err
	}
	for tries, before := 1, (groupmember.Generation{}); ; tries++ {
		group, g, at, err := source()
		if err != nil {
			err = s.failed("SendOffsets", Abortable, err)
			s.step(machine.Spoiled{Err: err})
			return err
		}
		if len(at) == 0 {
			return tx.Err()
		}
		if g != before {
			tries, before = 1, g
		}
		job := offsetJob(group, g, at)
		if err := tx.runJob(ctx, job); err == nil || !job.Stale {
			return err
		}
		if tries == staleTries {
			err := s.wrap("SendOffsets", Abortable, job.Err)
			s.step(machine.Spoiled{Err: err})
			return err
		}
		if err := s.pause(ctx); err != nil {
			err = s.failed("SendOffsets", Abortable, err)
			s.step(machine.Spoiled{Err: err})
			return err
		}
	}
}

func offsetJob(group string, g groupmember.Generation, at map[groupmember.TopicPartition]groupmember.Offset) *machine.OffsetJob {
	job := &machine.OffsetJob{Group: group, MemberID: g.MemberID, InstanceID: g.InstanceID, Generation: g.ID, Owner: make(chan struct{})}
	for tp, o := range at {
		job.Offsets = append(job.Offsets, machine.PartitionOffset{TopicPartition: tp, Offset: o.At, Epoch: o.Epoch(), Metadata: o.Metadata})
	}
	return job
}

// runJob waits for a job. When ctx ends first nobody knows whether the offsets are part of the transaction.
func (tx *Tx) runJob(ctx context.Context, job *machine.OffsetJob) error {
	s := tx.s
	s.mu.Lock()
	if out := tx.Outcome(); s.tx != tx || out != Open {
		s.unlock()
		return s.fail("SendOffsets", Abortable, fmt.Errorf("%w: it is %s", ErrOver, out))
	}
	s.stepLocked(machine.OffsetsGiven{Job: job})
	s.unlock()
	done := job.Owner.(chan struct{})
	select {
	case <-done:
	case <-ctx.Done():
		s.step(machine.OffsetsRecalled{Job: job, Err: s.failed("SendOffsets", Abortable, s.interrupted(ctx))})
		<-done // at once
	}
	if job.Err == nil {
		return nil
	}
	if over := s.overErr("SendOffsets"); over != nil {
		return over
	}
	return s.wrap("SendOffsets", Abortable, job.Err)
}

// pause waits for a back-off.
func (s *Session) pause(ctx context.Context) error {
	timer := time.NewTimer(s.cl.Config().RetryBackoff)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the group has moved on: %w", context.Cause(ctx))
	}
}
