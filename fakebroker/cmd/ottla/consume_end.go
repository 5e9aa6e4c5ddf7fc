package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/groupmember"
)

// emptyHanded is how long a member of a group waits for partitions before it believes that others have them all. With the
// consumer protocol a member may be in its group without any, and hear of its part with its next heartbeat (every 5 s, as
// brokers say).
func emptyHanded(protocol string) time.Duration {
	if protocol != "classic" {
		return 7 * time.Second
	}
	return 2 * time.Second
}

// ends are what -e goes by: the ends of the partitions when the command began.
type ends struct {
	at    map[consumer.TopicPartition]int64
	group bool // which partitions count is up to the group
	empty time.Time
}

func endsOf(span []partSpan, group bool) *ends {
	e := &ends{at: map[consumer.TopicPartition]int64{}, group: group}
	for _, p := range span {
		if group || p.start < p.end {
			e.at[p.tp] = p.end
		}
	}
	return e
}

// want tells whether a record was there when the command began. A member of a group prints later ones, too: it commits them.
func (e *ends) want(rec *consumer.Record) bool {
	end, bounded := e.at[rec.TopicPartition()]
	return e.group || bounded && rec.Offset < end
}

// reached tells whether everything that was there has been handed out.
func (e *ends) reached(r *consumer.Consumer) bool {
	if e.group {
		return e.reachedByMember(r)
	}
	for tp, end := range e.at {
		if at, ok := r.Position(tp); ok && at.Offset >= end {
			delete(e.at, tp)
		}
	}
	return len(e.at) == 0
}

// reachedByMember looks at the partitions that the group has given to this member.
func (e *ends) reachedByMember(r *consumer.Consumer) bool {
	m := r.Membership()
	if m.State != groupmember.Stable || len(m.Claims) > 0 {
		e.empty = time.Time{}
	} else if e.empty.IsZero() {
		e.empty = time.Now()
	}
	if m.State != groupmember.Stable || len(m.Claims) == 0 {
		return !e.empty.IsZero() && time.Since(e.empty) >= emptyHanded(r.Config().Group.Protocol)
	}
	for _, claim := range m.Claims {
		if at, ok := r.Position(claim.TopicPartition); !ok || at.Offset < e.at[claim.TopicPartition] {
			return false
		}
	}
	return true
}

// subscribe makes the consumer a member of the group. The places are for partitions of which it has committed nothing.
func (c *consumeCmd) subscribe(ctx context.Context, s *session, cfg *consumer.Config, where places) ([]partSpan, error) {
	cfg.Group.ID, cfg.Group.Topics = c.Group, c.Topics
	switch {
	case len(c.Partition) > 0:
		return nil, &exitError{exitUsage, errors.New("consume: -p does not go with -g: the group gives out the partitions")}
	case where.single != nil || where.kind == atOffset || where.kind == atLast:
		return nil, &exitError{exitUsage, fmt.Errorf("consume: with -g there can only be -o start, end or @TIME, for partitions without a committed offset: move the others with 'ottla groups reset-offsets %s'", c.Group)}
	case where.kind == atStart:
		cfg.Reset = consumer.Earliest
	case where.kind == atTime:
		cfg.Reset = consumer.At(where.at)
	default:
		cfg.Reset = consumer.Latest
	}
	topics, _ := s.adm.DescribeTopics(ctx, c.Topics...) // errors are in the rows
	if err := s.topicErrors(ctx, topics); err != nil {
		return nil, err
	}
	if !c.Exit {
		return nil, nil
	}
	return s.span(ctx, c.Topics, nil, places{kind: atEnd}, cfg.Isolation)
}

// leave commits what a member has printed, unless that is switched off or the printing failed, and closes the consumer.
func (c *consumeCmd) leave(ctx context.Context, r *consumer.Consumer, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	var err error
	if c.Group != "" && r.Config().Group.AutoCommit && (failed == nil || errors.Is(failed, context.Canceled)) {
		err = r.Commit(ctx)
	}
	if closed := r.Close(ctx); err == nil {
		err = closed
	}
	return err
}

// leaveTimeout bounds the end of a command that reads.
const leaveTimeout = 10 * time.Second
