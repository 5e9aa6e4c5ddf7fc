package main

import (
	"context"
	"fmt"

	"github.com/ottla-kafka/ottla/admin"
)

// topicsDeleteCmd deletes topics, after it has shown what goes with them.
type topicsDeleteCmd struct {
	connection
	output
	Topics []string `arg:"" name:"topic" help:"Names."`
	Yes    bool     `short:"y" aliases:"execute" help:"Delete, instead of showing what would be deleted."`
}

// Run prints partitions and offsets of the topics, and deletes them if told to. Missing topics are errors, and do not keep
// the others.
func (c *topicsDeleteCmd) Run(ctx context.Context, io streams) error {
	return c.on(ctx, io, func(s *session) error {
		topics, _ := s.adm.DescribeTopics(ctx, c.Topics...) // errors are in the rows
		failed := []error{s.topicErrors(ctx, topics)}
		var partitions []admin.TopicPartition
		var names []string
		for _, t := range topics {
			if t.Err == nil {
				names = append(names, t.Name)
			}
			for _, p := range t.Partitions {
				partitions = append(partitions, admin.TopicPartition{Topic: t.Name, Partition: p.ID})
			}
		}
		starts, _ := s.adm.ListOffsets(ctx, admin.Earliest, partitions...) // a partition without a leader can be deleted, too
		ends, _ := s.adm.ListOffsets(ctx, admin.Latest, partitions...)
		count := map[string]int64{}
		for i := range ends {
			if ends[i].Err == nil && starts[i].Err == nil {
				count[ends[i].Topic] += ends[i].Offset - starts[i].Offset
			}
		}
		t := newTable("name", "partitions", "offsets", "deleted")
		deleted := map[string]bool{}
		if c.Yes && len(names) > 0 {
			rows, _ := s.adm.DeleteTopics(ctx, names...) // errors are in the rows
			for _, r := range rows {
				deleted[r.Name] = r.Err == nil
				failed = append(failed, r.Err)
			}
		}
		for _, topic := range topics {
			if topic.Err == nil {
				t.add(topic.Name, len(topic.Partitions), count[topic.Name], deleted[topic.Name])
			}
		}
		err := t.print(io.out, c.Output)
		if !c.Yes && len(names) > 0 {
			fmt.Fprintln(io.err, "ottla: nothing was deleted; add --yes to delete these topics with all their records")
		}
		return printed(err, joinLines(failed))
	})
}
