package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ottla-kafka/ottla/admin"
)

// topicsDescribeCmd shows topics in full.
type topicsDescribeCmd struct {
	connection
	output
	Topics          []string `arg:"" optional:"" name:"topic" help:"Names; without any, all topics."`
	UnderReplicated bool     `help:"Only partitions with replicas outside the ISR."`
	Unavailable     bool     `help:"Only partitions without a leader."`
}

// Run prints, for people, a line for each topic and a table of its partitions; otherwise an object for each topic.
func (c *topicsDescribeCmd) Run(ctx context.Context, io streams) error {
	return c.on(ctx, io, func(s *session) error {
		topics, err := s.adm.ListTopics(ctx)
		if len(c.Topics) > 0 {
			topics, _ = s.adm.DescribeTopics(ctx, c.Topics...) // errors are in the rows
			err = s.topicErrors(ctx, topics)
		}
		var resources []admin.Resource
		for _, t := range topics {
			if t.Err == nil {
				resources = append(resources, admin.TopicConfigs(t.Name))
			}
		}
		configs, configErr := s.adm.DescribeConfigs(ctx, resources...)
		changed := map[string]map[string]string{}
		for _, r := range configs {
			changed[r.Resource.Name] = setOnTopic(r)
		}
		if err == nil {
			err = configErr
		}
		all := newTable("name", "id", "internal", "replicas", "configs", "partitions")
		for _, t := range topics {
			if t.Err != nil {
				continue
			}
			partitions := c.partitions(t)
			if len(partitions.rows) == 0 && len(t.Partitions) > 0 {
				continue // nothing wrong with it
			}
			if c.Output == "table" {
				printTopic(io, t, changed[t.Name])
				if err := partitions.print(io.out, "table"); err != nil {
					return err
				}
				continue
			}
			list := []rawJSON{}
			for _, row := range partitions.rows {
				list = append(list, partitions.object(row))
			}
			all.add(t.Name, t.ID.String(), t.Internal, t.Replicas(), changed[t.Name], list)
		}
		if c.Output == "table" {
			return err
		}
		return printed(all.print(io.out, c.Output), err)
	})
}

// rawJSON is JSON that is there already.
type rawJSON []byte

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// partitions is the table of a topic's partitions.
func (c *topicsDescribeCmd) partitions(topic admin.Topic) *table {
	t := newTable("partition", "leader", "leader_epoch", "replicas", "isr", "offline")
	for _, p := range topic.Partitions {
		if c.UnderReplicated && !p.UnderReplicated() || c.Unavailable && p.Leader >= 0 {
			continue
		}
		t.add(p.ID, known(p.Leader), known(p.LeaderEpoch), p.Replicas, p.ISR, p.OfflineReplicas)
	}
	return t
}

// printTopic is a topic's head line.
func printTopic(io streams, t admin.Topic, configs map[string]string) {
	var words []string
	for _, k := range sortedKeys(configs) {
		words = append(words, k+"="+configs[k])
	}
	fmt.Fprintf(io.out, "topic %s  id %s  partitions %d  replicas %d  configs %s\n", t.Name, t.ID, len(t.Partitions), t.Replicas(), cellText(strings.Join(words, " ")))
}

// setOnTopic are the configurations that somebody set on a topic itself.
func setOnTopic(r admin.ResourceConfigs) map[string]string {
	set := map[string]string{}
	for _, e := range r.Entries {
		if e.Source == admin.TopicConfig {
			if e.Value != nil {
				set[e.Name] = *e.Value
			} else {
				set[e.Name] = ""
			}
		}
	}
	return set
}
