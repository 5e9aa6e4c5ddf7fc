package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// GroupOffset is a row of ListGroupOffsets: what a group has committed of a partition.
type GroupOffset struct {
	TopicPartition
	Offset      int64 // the next offset that the group reads; -1 when it has committed none
	LeaderEpoch int32 // of the record before it; -1 when unknown
	Metadata    string
	Err         error
}

// String is the partition, the offset and what went wrong.
func (o GroupOffset) String() string {
	if o.Err != nil {
		return fmt.Sprintf("%v: %v", o.TopicPartition, o.Err)
	}
	return fmt.Sprintf("%v@%d", o.TopicPartition, o.Offset)
}

// ListGroupOffsets gives what a group has committed, of the partitions named in their order, or of all that it has
// committed, by topic and partition. A group that does not exist has committed nothing.
func (a *Admin) ListGroupOffsets(ctx context.Context, group string, partitions ...TopicPartition) ([]GroupOffset, error) {
	partitions = unique(partitions)
	req := message.NewOffsetFetchRequest()
	req.GroupId, req.Topics = group, nil // null, in the one form as in the other, asks for all
	asked := message.OffsetFetchRequestGroup{GroupId: group, MemberEpoch: -1}
	for _, t := range byTopic(partitions) {
		req.Topics = append(req.Topics, message.OffsetFetchRequestTopic{Name: t.name, PartitionIndexes: t.partitions})
		asked.Topics = append(asked.Topics, message.OffsetFetchRequestTopics{Name: t.name, PartitionIndexes: t.partitions})
	}
	req.Groups = []message.OffsetFetchRequestGroup{asked}
	found, err := a.fetchOffsets(ctx, group, req)
	rows := make([]GroupOffset, 0, len(partitions))
	if len(partitions) == 0 {
		if err != nil {
			return nil, err
		}
		rows = slices.SortedFunc(maps.Values(found), func(x, y GroupOffset) int { return comparePartitions(x.TopicPartition, y.TopicPartition) })
		rows = slices.DeleteFunc(rows, func(o GroupOffset) bool { return o.Offset < 0 && o.Err == nil })
	}
	for _, tp := range partitions {
		row, ok := found[tp]
		if !ok {
			row = GroupOffset{TopicPartition: tp, Offset: -1, LeaderEpoch: -1, Err: err}
			if err == nil {
				row.Err = leftOut("list offsets of group "+group+" for", tp.String())
			}
		}
		rows = append(rows, row)
	}
	errs := make([]error, len(rows))
	for i := range rows {
		errs[i] = rows[i].Err
	}
	return rows, joinErrors(errs)
}

// fetchOffsets sends the request and gives the answer of any version in one form.
func (a *Admin) fetchOffsets(ctx context.Context, group string, req *message.OffsetFetchRequest) (map[TopicPartition]GroupOffset, error) {
	resp, err := request[*message.OffsetFetchResponse](ctx, a, coordinatorOf(group).Versions(0, 9), offsetFetch{req})
	if err != nil {
		return nil, err
	}
	found := map[TopicPartition]GroupOffset{}
	add := func(topic string, p message.OffsetFetchResponsePartitions) {
		tp := TopicPartition{Topic: topic, Partition: p.PartitionIndex}
		found[tp] = GroupOffset{tp, p.CommittedOffset, p.CommittedLeaderEpoch, text(p.Metadata),
			rowError("list offsets of group "+group+" for", tp.String(), p.ErrorCode, nil)}
	}
	for _, g := range resp.Groups {
		if err := rowError("list offsets of group", group, g.ErrorCode, nil); err != nil {
			return nil, err
		}
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				add(t.Name, p)
			}
		}
	}
	for _, t := range resp.Topics { // before version 8
		for _, p := range t.Partitions {
			add(t.Name, message.OffsetFetchResponsePartitions{PartitionIndex: p.PartitionIndex, CommittedOffset: p.CommittedOffset,
				CommittedLeaderEpoch: p.CommittedLeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode})
		}
	}
	return found, nil
}

// NewOffset is what AlterGroupOffsets commits for a partition.
type NewOffset struct {
	Offset int64 // the next one to read
	// LeaderEpoch of the record before Offset lets consumers notice that the log was truncated since. nil commits none.
	LeaderEpoch *int32
	Metadata    string
}

// AlteredOffset is a row of AlterGroupOffsets and DeleteGroupOffsets.
type AlteredOffset struct {
	TopicPartition
	Err error
}

// String is the partition and what went wrong.
func (o AlteredOffset) String() string {
	if o.Err != nil {
		return fmt.Sprintf("%v: %v", o.TopicPartition, o.Err)
	}
	return o.TopicPartition.String()
}

// AlterGroupOffsets commits offsets for a group, as if it had done so itself, and creates the group if there is none. Rows
// are by topic and partition. A group with members is refused (UNKNOWN_MEMBER_ID): they would not notice, and commit theirs.
func (a *Admin) AlterGroupOffsets(ctx context.Context, group string, offsets map[TopicPartition]NewOffset) ([]AlteredOffset, error) {
	partitions := slices.SortedFunc(maps.Keys(offsets), comparePartitions)
	errs := a.rounds(ctx, len(partitions), commitPasses, func(ctx context.Context, left []int, errs []error) {
		req := message.NewOffsetCommitRequest()
		req.GroupId = group
		for _, t := range byTopic(at(partitions, left)) {
			topic := message.OffsetCommitRequestTopic{Name: t.name}
			for _, p := range t.partitions {
				topic.Partitions = append(topic.Partitions, offsets[TopicPartition{Topic: t.name, Partition: p}].committable(p))
			}
			req.Topics = append(req.Topics, topic)
		}
		resp, err := request[*message.OffsetCommitResponse](ctx, a, coordinatorOf(group).Versions(0, 9), offsetCommit{req})
		if err != nil {
			setAll(errs, left, err)
			return
		}
		codes := map[TopicPartition]int16{}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				codes[TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}] = p.ErrorCode
			}
		}
		setCodes("alter offset of group "+group+" for", partitions, left, codes, errs)
	})
	return alteredOffsets(ctx, partitions, errs)
}

// commitPasses tells that a commit may succeed later: as with Kafka's Admin, that includes the end of a rebalance.
func commitPasses(err error, round int) bool {
	return errors.Is(err, errcode.RebalanceInProgress) || passing(err, round)
}

// committable is the wire form.
func (o NewOffset) committable(partition int32) message.OffsetCommitRequestPartition {
	p := message.OffsetCommitRequestPartition{PartitionIndex: partition, CommittedOffset: o.Offset, CommittedLeaderEpoch: -1, CommittedMetadata: new(o.Metadata)}
	if o.LeaderEpoch != nil {
		p.CommittedLeaderEpoch = *o.LeaderEpoch
	}
	return p
}

// DeleteGroupOffsets deletes what a group has committed of partitions, in their order, so that it begins there anew. Topics
// that its members subscribe to are refused (GROUP_SUBSCRIBED_TO_TOPIC). It takes brokers from 2.4 on (KIP-496).
func (a *Admin) DeleteGroupOffsets(ctx context.Context, group string, partitions ...TopicPartition) ([]AlteredOffset, error) {
	partitions = unique(partitions)
	errs := a.rounds(ctx, len(partitions), passing, func(ctx context.Context, left []int, errs []error) {
		req := message.NewOffsetDeleteRequest()
		req.GroupId = group
		for _, t := range byTopic(at(partitions, left)) {
			topic := message.OffsetDeleteRequestTopic{Name: t.name}
			for _, p := range t.partitions {
				topic.Partitions = append(topic.Partitions, message.OffsetDeleteRequestPartition{PartitionIndex: p})
			}
			req.Topics = append(req.Topics, topic)
		}
		resp, err := request[*message.OffsetDeleteResponse](ctx, a, coordinatorOf(group), req)
		if err != nil {
			if resp != nil && resp.ErrorCode != 0 {
				err = rowError("delete offsets of group", group, resp.ErrorCode, nil)
			}
			setAll(errs, left, err)
			return
		}
		codes := map[TopicPartition]int16{}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				codes[TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}] = p.ErrorCode
			}
		}
		setCodes("delete offset of group "+group+" for", partitions, left, codes, errs)
	})
	return alteredOffsets(ctx, partitions, errs)
}

// setCodes writes what an answer says of each partition.
func setCodes(op string, partitions []TopicPartition, left []int, codes map[TopicPartition]int16, errs []error) {
	for _, i := range left {
		code, ok := codes[partitions[i]]
		if !ok {
			errs[i] = leftOut(op, partitions[i].String())
			continue
		}
		hint := ""
		switch errcode.Code(code) {
		case errcode.UnknownMemberId:
			hint = "the group has active members, and only they may commit: stop its consumers first"
		case errcode.OffsetMetadataTooLarge:
			hint = "its Metadata is longer than offset.metadata.max.bytes of the broker (4096 unless configured)"
		case errcode.GroupSubscribedToTopic:
			hint = "members of the group subscribe to the topic: stop its consumers first"
		}
		errs[i] = rowError(op, partitions[i].String(), code, &hint)
	}
}

func alteredOffsets(ctx context.Context, partitions []TopicPartition, errs []error) ([]AlteredOffset, error) {
	rows := make([]AlteredOffset, len(partitions))
	for i, err := range errs {
		rows[i] = AlteredOffset{partitions[i], err}
	}
	return rows, outcome(ctx, errs)
}

// at are the elements of these indexes.
func at[T any](list []T, indexes []int) []T {
	out := make([]T, len(indexes))
	for n, i := range indexes {
		out[n] = list[i]
	}
	return out
}

type topicPartitions struct {
	name       string
	partitions []int32
}

// byTopic puts the partitions of each topic together, in the order of their first ones.
func byTopic(list []TopicPartition) (topics []topicPartitions) {
	index := map[string]int{}
	for _, tp := range list {
		i, known := index[tp.Topic]
		if !known {
			i = len(topics)
			index[tp.Topic] = i
			topics = append(topics, topicPartitions{name: tp.Topic})
		}
		topics[i].partitions = append(topics[i].partitions, tp.Partition)
	}
	return topics
}

// inactive is nil if a group has no members, so that its offsets may be changed by others.
func (a *Admin) inactive(ctx context.Context, group string) error {
	rows, err := a.DescribeGroups(ctx, group)
	switch {
	case errors.Is(err, errcode.GroupIdNotFound):
		return nil // it will be created
	case err != nil:
		return err
	}
	if s := rows[0].State; len(rows[0].Members) > 0 || s != GroupEmpty && s != GroupDead {
		return &ActiveGroupError{Group: group, State: s, Members: len(rows[0].Members)}
	}
	return nil
}

// ActiveGroupError says that a group's offsets cannot be changed because it has members. It matches
// errcode.NonEmptyGroup.
type ActiveGroupError struct {
	Group   string
	State   GroupState
	Members int
}

// Error is what Kafka's own tool says, and what to do.
func (e *ActiveGroupError) Error() string {
	return fmt.Sprintf("offsets of group '%s' can only be reset while it is inactive, but its state is %s with %d members: stop its consumers, or remove its members, and try again",
		e.Group, e.State, e.Members)
}

// Unwrap is errcode.NonEmptyGroup.
func (e *ActiveGroupError) Unwrap() error { return errcode.NonEmptyGroup }
