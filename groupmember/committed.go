package groupmember

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Committed asks for committed offsets of any partitions; those without one are not in the answer. While an open
// transaction may change an offset it waits for its end (KIP-447), until ctx ends or default.api.timeout.ms has passed.
func (m *Member) Committed(ctx context.Context, parts ...TopicPartition) (map[TopicPartition]Offset, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("groupmember: group %q: the offsets of %d partitions were not asked for: %w", m.cfg.GroupID, len(parts), context.Cause(ctx))
	}
	limit := m.cl.Config().APITimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w within default.api.timeout.ms (%s)", client.ErrTimeout, limit))
	defer cancel()
	out := make(map[TopicPartition]Offset, len(parts))
	if len(parts) == 0 {
		return out, nil
	}
	for attempt := 1; ; attempt++ {
		unstable, err := m.committedOnce(ctx, parts, out)
		if err != nil {
			return nil, err
		}
		if len(unstable) == 0 {
			return out, nil
		}
		parts = unstable
		timer := time.NewTimer(m.cl.Config().RetryBackoff)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, &client.OpError{Op: "OffsetFetch", Topic: parts[0].Topic, Partition: parts[0].Partition, Attempts: attempt,
				Err: fmt.Errorf("%w: %w", errcode.UnstableOffsetCommit, context.Cause(ctx))}
		}
	}
}

// committedOnce asks once and puts what it gets into out; unstable are those to be asked for again.
func (m *Member) committedOnce(ctx context.Context, parts []TopicPartition, out map[TopicPartition]Offset) (unstable []TopicPartition, err error) {
	req, byID := m.fetchRequest(parts)
	most := int16(0)
	if byID == nil {
		most = 9
	}
	target := client.Coordinator(client.GroupCoordinator, m.cfg.GroupID)
	resp, err := m.cl.Request(ctx, target.Versions(1, most), req)
	if err != nil {
		return nil, err
	}
	answer := resp.(*message.OffsetFetchResponse)
	take := func(topic string, partition int32, offset int64, epoch int32, metadata *string, code int16) {
		tp := TopicPartition{Topic: topic, Partition: partition}
		switch code := errcode.Code(code); {
		case code == errcode.UnstableOffsetCommit:
			unstable = append(unstable, tp)
		case code != errcode.None && err == nil:
			err = &client.OpError{Op: "OffsetFetch", Topic: topic, Partition: partition, Attempts: 1, Err: code}
		case code == errcode.None && offset >= 0:
			o := OffsetAt(offset).WithEpoch(epoch)
			if metadata != nil {
				o.Metadata = *metadata
			}
			out[tp] = o
		}
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			take(t.Name, p.PartitionIndex, p.CommittedOffset, p.CommittedLeaderEpoch, p.Metadata, p.ErrorCode)
		}
	}
	for _, g := range answer.Groups {
		if code := errcode.Code(g.ErrorCode); code != errcode.None {
			return nil, &client.OpError{Op: "OffsetFetch", Partition: -1, Attempts: 1, Err: fmt.Errorf("group %q: %w", g.GroupId, code)}
		}
		for _, t := range g.Topics {
			name := t.Name
			if name == "" {
				name = byID[t.TopicId]
			}
			for _, p := range t.Partitions {
				take(name, p.PartitionIndex, p.CommittedOffset, p.CommittedLeaderEpoch, p.Metadata, p.ErrorCode)
			}
		}
	}
	return unstable, err
}

// fetchRequest makes the request in the shape of version 8 and later, with topic ids if all topics have one.
func (m *Member) fetchRequest(parts []TopicPartition) (*offsetFetch, map[wire.UUID]string) {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, machine.ComparePartitions)
	parts = slices.Compact(parts)
	g := message.OffsetFetchRequestGroup{GroupId: m.cfg.GroupID, MemberEpoch: machine.NoGeneration}
	byID, topology := map[wire.UUID]string{}, m.cl.Topology()
	for i, tp := range parts {
		if i == 0 || parts[i-1].Topic != tp.Topic {
			t := message.OffsetFetchRequestTopics{Name: tp.Topic}
			if known := topology.Topic(tp.Topic); known != nil && !known.ID.IsZero() && byID != nil {
				t.TopicId, byID[known.ID] = known.ID, tp.Topic
			} else {
				byID = nil
			}
			g.Topics = append(g.Topics, t)
		}
		t := &g.Topics[len(g.Topics)-1]
		t.PartitionIndexes = append(t.PartitionIndexes, tp.Partition)
	}
	req := &offsetFetch{OffsetFetchRequest: message.NewOffsetFetchRequest()}
	req.Groups, req.RequireStable = []message.OffsetFetchRequestGroup{g}, true
	return req, byID
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
