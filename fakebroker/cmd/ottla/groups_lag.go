package main

import "context"

// groupsLagCmd prints a row for each partition that a group has committed or is assigned.
type groupsLagCmd struct {
	connection
	output
	groupNames
	Topic []string `placeholder:"NAME" help:"Only partitions of these topics."`
}

// Run prints the columns of Kafka's own tool under shorter names.
func (c *groupsLagCmd) Run(ctx context.Context, io streams) error {
	wanted := map[string]bool{}
	for _, t := range c.Topic {
		wanted[t] = true
	}
	return c.on(ctx, io, func(s *session) error {
		groups, err := s.lag(ctx, c.Groups)
		t := newTable("group", "topic", "partition", "committed", "end", "lag", "client_id", "host", "member_id")
		for _, g := range groups {
			for _, p := range g.Partitions {
				if len(wanted) > 0 && !wanted[p.Topic] {
					continue
				}
				row := []any{g.Group.ID, p.Topic, p.Partition, known(p.Committed), known(p.End), known(p.Lag), nil, nil, nil}
				if m := p.Member; m != nil {
					row[6], row[7], row[8] = m.ClientID, m.Host, m.ID
				}
				t.add(row...)
			}
		}
		return printed(t.print(io.out, c.Output), err)
	})
}
