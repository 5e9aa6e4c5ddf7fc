package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ottla-kafka/ottla/admin"
)

// groupsListCmd prints a row for each group.
type groupsListCmd struct {
	connection
	output
	State    []string `placeholder:"STATE" help:"Only groups in one of these states, such as Stable or Empty."`
	Type     []string `placeholder:"TYPE" help:"Only groups of these types: Classic, Consumer, Share, Streams."`
	Protocol []string `placeholder:"NAME" help:"Only groups of these protocol types, such as consumer or connect."`
}

// What Apache Kafka calls states and types of groups. Brokers leave out what they do not know, so a misspelt one would find
// nothing.
var (
	groupStates = []string{"PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling", "NotReady"}
	groupTypes  = []string{"Classic", "Consumer", "Share", "Streams"}
)

// oneOf is the word as it is in the list, whatever its case.
func oneOf(flag, word string, list []string) (string, error) {
	for _, known := range list {
		if strings.EqualFold(word, known) {
			return known, nil
		}
	}
	return "", fmt.Errorf("%s %s: want one of %s", flag, word, strings.Join(list, ", "))
}

// Run lists groups by name.
func (c *groupsListCmd) Run(ctx context.Context, io streams) error {
	filter := admin.GroupFilter{Protocols: c.Protocol}
	for _, s := range c.State {
		state, err := oneOf("--state", s, groupStates)
		if err != nil {
			return &exitError{exitUsage, fmt.Errorf("groups list: %w", err)}
		}
		filter.States = append(filter.States, admin.GroupState(state))
	}
	for _, t := range c.Type {
		kind, err := oneOf("--type", t, groupTypes)
		if err != nil {
			return &exitError{exitUsage, fmt.Errorf("groups list: %w", err)}
		}
		filter.Types = append(filter.Types, admin.GroupType(kind))
	}
	return c.on(ctx, io, func(s *session) error {
		groups, err := s.adm.ListGroups(ctx, filter)
		t := newTable("group", "type", "protocol", "state", "coordinator")
		for _, g := range groups {
			t.add(g.ID, named(g.Type), named(g.ProtocolType), named(g.State), g.Coordinator)
		}
		return printed(t.print(io.out, c.Output), err)
	})
}
