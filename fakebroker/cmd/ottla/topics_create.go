package main

import (
	"context"
	"errors"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// topicsCreateCmd creates topics that are all alike.
type topicsCreateCmd struct {
	connection
	output
	Topics      []string          `arg:"" name:"topic" help:"Names."`
	Partitions  int               `short:"p" help:"Number of partitions (default: the broker's num.partitions)."`
	Replicas    int               `short:"r" name:"replication-factor" aliases:"replicas" help:"Replicas of each partition (default: the broker's default.replication.factor)."`
	Config      map[string]string `placeholder:"KEY=VALUE" mapsep:"none" help:"Topic configuration by Kafka's name (may be repeated)."`
	IfNotExists bool              `help:"Be content with topics that exist, whatever they are like."`
	DryRun      bool              `help:"Only check whether it would succeed."`
}

// Run creates the topics and prints what became of them; those that failed are told on stderr.
func (c *topicsCreateCmd) Run(ctx context.Context, io streams) error {
	return c.on(ctx, io, func(s *session) error {
		var topics []admin.NewTopic
		for _, name := range c.Topics {
			topics = append(topics, admin.NewTopic{Name: name, Partitions: c.Partitions, Replicas: c.Replicas, Configs: c.Config})
		}
		create := s.adm.CreateTopics
		if c.DryRun {
			create = s.adm.ValidateTopics
		}
		rows, _ := create(ctx, topics...) // errors are in the rows
		t := newTable("name", "id", "partitions", "replicas")
		var errs []error
		for _, r := range rows {
			switch {
			case r.Err == nil:
				var id any
				if !r.ID.IsZero() {
					id = r.ID.String()
				}
				t.add(r.Name, id, known(r.Partitions), known(r.Replicas))
			case !c.IfNotExists || !errors.Is(r.Err, errcode.TopicAlreadyExists):
				errs = append(errs, r.Err)
			}
		}
		var err error
		if len(t.rows) > 0 || c.Output != "table" {
			err = t.print(io.out, c.Output)
		}
		return printed(err, joinLines(errs))
	})
}
