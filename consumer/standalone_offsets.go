package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// unmanaged is the generation in commits of those who are no members.
const unmanaged = -1

// limited bounds a call by default.api.timeout.ms.
func (s *standalone) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := s.g.c.cfg.APITimeout
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w within default.api.timeout.ms (%s)", client.ErrTimeout, limit))
}

// coordinator is where offsets are kept. Versions that name topics by id are of use only if all ids are known.
func (s *standalone) coordinator(least, most int16) client.Target {
	return client.Coordinator(client.GroupCoordinator, s.g.cfg.ID).Versions(least, most)
}

// commit stores offsets, trying again what passes.
func (s *standalone) commit(offsets map[TopicPartition]Offset) error {
	ctx, cancel := s.limited(s.g.ctx)
	defer cancel()
	rest, failed := maps.Clone(offsets), map[TopicPartition]error{}
	began := time.Now()
	for attempt := 1; len(rest) > 0; attempt++ {
		again, err := s.commitOnce(ctx, rest, failed)
		if err != nil {
			return err
		}
		if len(rest) > 0 && pause(ctx, s.g.c.cl.Config().RetryBackoff) != nil {
			tp := slices.SortedFunc(maps.Keys(rest), compare)[0]
			return &client.OpError{Op: "OffsetCommit", Topic: tp.Topic, Partition: tp.Partition, Attempts: attempt, Elapsed: time.Since(began),
				Err: fmt.Errorf("%w: %w", context.Cause(ctx), again)}
		}
	}
	var errs []error
	for _, tp := range slices.SortedFunc(maps.Keys(failed), compare) {
		errs = append(errs, failed[tp])
		if errors.Is(failed[tp], ErrGroupInUse) {
			break // the others say the same
		}
	}
	return errors.Join(errs...)
}

// commitOnce asks the coordinator once. What was stored or can never be is taken out of rest; again is why the others are
// still in it.
func (s *standalone) commitOnce(ctx context.Context, rest map[TopicPartition]Offset, failed map[TopicPartition]error) (again, err error) {
	ids := s.topicIDs(rest, failed)
	if len(rest) == 0 {
		return nil, nil
	}
	req := message.NewOffsetCommitRequest()
	req.GroupId, req.GenerationIdOrMemberEpoch = s.g.cfg.ID, unmanaged
	names, most := map[wire.UUID]string{}, int16(0)
	for _, tp := range slices.SortedFunc(maps.Keys(rest), compare) {
		n := len(req.Topics)
		if n == 0 || req.Topics[n-1].Name != tp.Topic {
			id := ids[tp.Topic]
			if names[id] = tp.Topic; id.IsZero() {
				most = 9 // the last that names topics
			}
			req.Topics = append(req.Topics, message.OffsetCommitRequestTopic{Name: tp.Topic, TopicId: id})
			n++
		}
		o, t := rest[tp], &req.Topics[n-1]
		t.Partitions = append(t.Partitions, message.OffsetCommitRequestPartition{PartitionIndex: tp.Partition, CommittedOffset: o.At,
			CommittedLeaderEpoch: o.Epoch(), CommittedMetadata: &o.Metadata})
	}
	resp, err := s.g.c.cl.Request(ctx, s.coordinator(2, most), req)
	answer, ok := resp.(*message.OffsetCommitResponse)
	if !ok {
		return nil, err
	}
	codes := map[TopicPartition]errcode.Code{}
	for _, t := range answer.Topics {
		if t.Name == "" {
			t.Name = names[t.TopicId]
		}
		for _, p := range t.Partitions {
			codes[TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}] = errcode.Code(p.ErrorCode)
		}
	}
	for tp := range rest {
		code, answered := codes[tp]
		passes := code.Retriable() && code != errcode.UnknownTopicOrPartition && code != errcode.UnknownTopicId
		switch {
		case !answered:
			failed[tp] = s.refused("OffsetCommit", tp, fmt.Errorf("%w: the answer does not name the partition", client.ErrProtocol))
		case passes || code == errcode.RebalanceInProgress:
			again = code
			continue
		case code != errcode.None:
			failed[tp] = s.refused("OffsetCommit", tp, code)
		}
		delete(rest, tp)
	}
	return again, nil
}

// topicIDs are the ids of the topics that were read, else of those that have the names at present. Offsets of a topic that was
// created anew since they were reached are taken out of rest.
func (s *standalone) topicIDs(rest map[TopicPartition]Offset, failed map[TopicPartition]error) map[string]wire.UUID {
	topology, ids := s.g.c.cl.Topology(), map[string]wire.UUID{}
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	for tp := range rest {
		var now, read wire.UUID
		if t := topology.Topic(tp.Topic); t != nil {
			now = t.ID
		}
		if c := s.g.claims[tp]; c != nil && c.cell != nil {
			read = c.cell.TopicID()
		}
		if !now.IsZero() && !read.IsZero() && now != read {
			failed[tp] = s.refused("OffsetCommit", tp, fmt.Errorf("%w: the topic was deleted and created again since the offset was reached", errcode.UnknownTopicId))
			delete(rest, tp)
			continue
		}
		if id := cmp.Or(now, read); !id.IsZero() {
			ids[tp.Topic] = id
		}
	}
	return ids
}

// refused dresses an error about one partition.
func (s *standalone) refused(op string, tp TopicPartition, err error) error {
	e := &client.OpError{Op: op, Topic: tp.Topic, Partition: tp.Partition, Attempts: 1, Err: err}
	if errors.Is(err, errcode.UnknownMemberId) {
		e.Err = fmt.Errorf("%w: %w", ErrGroupInUse, err)
		e.Hint = fmt.Sprintf("members of group %q commit for it; give consumers that are assigned their partitions a group.id of their own, or use Subscribe", s.g.cfg.ID)
	}
	return e
}

// Committed asks for committed offsets; those without one are not in the answer. It waits for open transactions that may
// change one (KIP-447).
func (s *standalone) Committed(ctx context.Context, parts ...TopicPartition) (map[TopicPartition]Offset, error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	parts = slices.Compact(slices.SortedFunc(slices.Values(parts), compare))
	out := make(map[TopicPartition]Offset, len(parts))
	for len(parts) > 0 {
		unstable, err := s.committedOnce(ctx, parts, out)
		if err != nil {
			return nil, err
		}
		if parts = unstable; len(parts) > 0 && pause(ctx, s.g.c.cl.Config().RetryBackoff) != nil {
			return nil, s.refused("OffsetFetch", parts[0], fmt.Errorf("%w: %w", errcode.UnstableOffsetCommit, context.Cause(ctx)))
		}
	}
	return out, nil
}

// committedOnce asks once and puts what it gets into out; unstable are those to be asked for again.
func (s *standalone) committedOnce(ctx context.Context, parts []TopicPartition, out map[TopicPartition]Offset) (unstable []TopicPartition, err error) {
	req := &offsetFetch{message.NewOffsetFetchRequest()}
	req.RequireStable = true
	g := message.OffsetFetchRequestGroup{GroupId: s.g.cfg.ID, MemberEpoch: unmanaged}
	for _, tp := range parts {
		n := len(g.Topics)
		if n == 0 || g.Topics[n-1].Name != tp.Topic {
			g.Topics = append(g.Topics, message.OffsetFetchRequestTopics{Name: tp.Topic})
			n++
		}
		g.Topics[n-1].PartitionIndexes = append(g.Topics[n-1].PartitionIndexes, tp.Partition)
	}
	req.Groups = []message.OffsetFetchRequestGroup{g}
	resp, err := s.g.c.cl.Request(ctx, s.coordinator(1, 9), req) // version 9 is the last that names topics
	if err != nil {
		return nil, err
	}
	for _, p := range req.answers(resp.(*message.OffsetFetchResponse)) {
		switch {
		case p.code == errcode.UnstableOffsetCommit:
			unstable = append(unstable, p.TopicPartition)
		case p.code != errcode.None:
			return nil, s.refused("OffsetFetch", p.TopicPartition, p.code)
		case p.At >= 0:
			out[p.TopicPartition] = p.Offset
		}
	}
	return unstable, nil
}

// offsetFetch is an OffsetFetch that takes the shape of its version when that is known.
type offsetFetch struct{ *message.OffsetFetchRequest }

// AppendTo appends the request; before version 8 it is about one group, before 7 it cannot wait for transactions.
func (r *offsetFetch) AppendTo(dst []byte, version int16) ([]byte, error) {
	if version >= 8 {
		return r.OffsetFetchRequest.AppendTo(dst, version)
	}
	old := message.NewOffsetFetchRequest()
	old.GroupId, old.RequireStable = r.Groups[0].GroupId, version >= 7
	for _, t := range r.Groups[0].Topics {
		old.Topics = append(old.Topics, message.OffsetFetchRequestTopic{Name: t.Name, PartitionIndexes: t.PartitionIndexes})
	}
	return old.AppendTo(dst, version)
}

// fetchedOffset is what an answer says of one partition.
type fetchedOffset struct {
	TopicPartition
	Offset
	code errcode.Code
}

// answers are the answer's partitions in either shape. An error of the whole group is said of the first partition.
func (r *offsetFetch) answers(resp *message.OffsetFetchResponse) (out []fetchedOffset) {
	add := func(topic string, partition int32, at int64, epoch int32, text *string, code int16) {
		o := OffsetAt(at).WithEpoch(epoch)
		if text != nil {
			o.Metadata = *text
		}
		out = append(out, fetchedOffset{TopicPartition{Topic: topic, Partition: partition}, o, errcode.Code(code)})
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			add(t.Name, p.PartitionIndex, p.CommittedOffset, p.CommittedLeaderEpoch, p.Metadata, p.ErrorCode)
		}
	}
	for _, g := range resp.Groups {
		if g.ErrorCode != 0 {
			first := r.Groups[0].Topics[0]
			add(first.Name, first.PartitionIndexes[0], -1, -1, nil, g.ErrorCode)
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				add(t.Name, p.PartitionIndex, p.CommittedOffset, p.CommittedLeaderEpoch, p.Metadata, p.ErrorCode)
			}
		}
	}
	return out
}
