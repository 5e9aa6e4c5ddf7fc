package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// producersCmd are the commands about producers.
type producersCmd struct {
	Describe producersDescribeCmd `cmd:"" help:"Show the idempotent and transactional producers that partitions know."`
}

// producersDescribeCmd prints a row for each producer of a partition.
type producersDescribeCmd struct {
	connection
	output
	Topics []string `arg:"" name:"topic" placeholder:"NAME[:P,P...]" help:"Topics, or NAME:P,P... for some partitions of one."`
	Broker *int32   `name:"broker-id" placeholder:"ID" help:"Ask this replica instead of the leaders."`
	Open   bool     `help:"Only those with an open transaction."`
}

// Run prints producers by partition and id.
func (c *producersDescribeCmd) Run(ctx context.Context, io streams) error {
	for _, arg := range c.Topics {
		if _, _, err := topicOrPartitions(arg); err != nil {
			return &exitError{exitUsage, fmt.Errorf("producers describe: %s: %w", arg, err)}
		}
	}
	return c.on(ctx, io, func(s *session) error {
		partitions, failed := c.partitions(ctx, s)
		rows, err := s.producers(ctx, c.Broker, partitions)
		t := newTable("topic", "partition", "producer_id", "epoch", "coordinator_epoch", "last_sequence", "last_write", "txn_start_offset")
		for _, r := range rows {
			for _, p := range r.Producers {
				if c.Open && !p.Open() {
					continue
				}
				t.add(r.Topic, r.Partition, p.ID, int32(p.Epoch), known(p.CoordinatorEpoch), known(p.LastSequence), instant(p.LastTimestamp), known(p.TxnStart))
			}
		}
		return printed(t.print(io.out, c.Output), joinLines([]error{failed, err}))
	})
}

// partitions are those of the command line.
func (c *producersDescribeCmd) partitions(ctx context.Context, s *session) (list []admin.TopicPartition, err error) {
	var errs []error
	for _, arg := range c.Topics {
		some, whole, _ := topicOrPartitions(arg)
		if list = append(list, some...); whole == "" {
			continue
		}
		topics, _ := s.adm.DescribeTopics(ctx, whole) // errors are in the rows
		errs = append(errs, s.topicErrors(ctx, topics))
		for _, p := range topics[0].Partitions {
			list = append(list, admin.TopicPartition{Topic: whole, Partition: p.ID})
		}
	}
	return list, joinLines(errs)
}

// producers asks; partitions that failed are in the error, the others in the rows.
func (s *session) producers(ctx context.Context, broker *int32, partitions []admin.TopicPartition) ([]admin.PartitionProducers, error) {
	var rows []admin.PartitionProducers
	if broker != nil {
		rows, _ = s.adm.DescribeProducersOn(ctx, *broker, partitions...) // errors are in the rows
	} else {
		rows, _ = s.adm.DescribeProducers(ctx, partitions...)
	}
	var errs []error
	for _, r := range rows {
		if errors.Is(r.Err, errcode.UnknownTopicOrPartition) {
			r.Err = s.topicError(ctx, r.Topic, r.Err)
		}
		errs = append(errs, r.Err)
	}
	return rows, joinLines(unique(errs))
}
