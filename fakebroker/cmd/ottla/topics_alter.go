package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// topicsAlterCmd changes one topic.
type topicsAlterCmd struct {
	connection
	Topic        string            `arg:"" help:"Name."`
	Partitions   int               `short:"p" help:"Have so many partitions in all; keys hash to other partitions afterwards."`
	Config       map[string]string `placeholder:"KEY=VALUE" mapsep:"none" help:"Set a configuration (may be repeated)."`
	DeleteConfig []string          `placeholder:"KEY" help:"Take a configuration back to its default (may be repeated)."`
	DryRun       bool              `help:"Only check whether it would succeed."`
}

// Run changes configurations first, since those can be taken back.
func (c *topicsAlterCmd) Run(ctx context.Context, io streams) error {
	if c.Partitions == 0 && len(c.Config) == 0 && len(c.DeleteConfig) == 0 {
		return &exitError{exitUsage, errors.New("topics alter: nothing to change: give --partitions, --config or --delete-config")}
	}
	var changes []admin.ConfigChange
	for _, k := range sortedKeys(c.Config) {
		changes = append(changes, admin.ConfigChange{Resource: admin.TopicConfigs(c.Topic), Name: k, Value: c.Config[k]})
	}
	for _, k := range c.DeleteConfig {
		changes = append(changes, admin.ConfigChange{Resource: admin.TopicConfigs(c.Topic), Op: admin.DeleteConfig, Name: k})
	}
	return c.on(ctx, io, func(s *session) error {
		if err := c.known(ctx, s); err != nil {
			return err
		}
		alter, grow, done := s.adm.AlterConfigs, s.adm.CreatePartitions, "altered"
		if c.DryRun {
			alter, grow, done = s.adm.ValidateConfigs, s.adm.ValidatePartitions, "would be altered"
		}
		if len(changes) > 0 {
			if _, err := alter(ctx, changes...); err != nil {
				return s.topicError(ctx, c.Topic, err)
			}
		}
		if c.Partitions != 0 {
			if _, err := grow(ctx, admin.MorePartitions{Topic: c.Topic, Total: c.Partitions}); err != nil {
				return s.topicError(ctx, c.Topic, err)
			}
		}
		fmt.Fprintf(io.err, "ottla: topic '%s' %s\n", c.Topic, done)
		return nil
	})
}

// known tells of configurations to be taken back that the topic cannot have: brokers think nothing of that.
func (c *topicsAlterCmd) known(ctx context.Context, s *session) error {
	if len(c.DeleteConfig) == 0 {
		return nil
	}
	rows, err := s.adm.DescribeConfigs(ctx, admin.TopicConfigs(c.Topic))
	if err != nil {
		return s.topicError(ctx, c.Topic, err)
	}
	var names []string
	for _, e := range rows[0].Entries {
		names = append(names, e.Name)
	}
	for _, k := range c.DeleteConfig {
		if !slices.Contains(names, k) {
			return &unknownName{"topic configuration", k, nearest(k, names), "", errcode.InvalidConfig}
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
