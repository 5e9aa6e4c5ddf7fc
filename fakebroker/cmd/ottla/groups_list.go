package main

import (
	"context"

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

// Run lists groups by name.
func (c *groupsListCmd) Run(ctx context.Context, io streams) error {
	filter := admin.GroupFilter{Protocols: c.Protocol}
	for _, s := range c.State {
		filter.States = append(filter.States, admin.GroupState(s))
	}
	for _, t := range c.Type {
		filter.Types = append(filter.Types, admin.GroupType(t))
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
