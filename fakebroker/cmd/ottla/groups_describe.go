package main

import "context"

// groupsDescribeCmd prints a row for each group.
type groupsDescribeCmd struct {
	connection
	output
	groupNames
}

// Run prints what a group as a whole is like.
func (c *groupsDescribeCmd) Run(ctx context.Context, io streams) error {
	return c.on(ctx, io, func(s *session) error {
		groups, err := s.lag(ctx, c.Groups)
		t := newTable("group", "type", "state", "assignor", "epoch", "members", "partitions", "lag", "coordinator")
		for _, row := range groups {
			g := row.Group
			t.add(g.ID, named(g.Type), named(g.State), named(g.Assignor), known(g.Epoch), len(g.Members), len(row.Partitions), row.Total(), g.Coordinator.Addr())
		}
		return printed(t.print(io.out, c.Output), err)
	})
}
