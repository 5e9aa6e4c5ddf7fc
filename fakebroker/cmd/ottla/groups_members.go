package main

import "context"

// groupsMembersCmd prints a row for each member.
type groupsMembersCmd struct {
	connection
	output
	groupNames
}

// Run prints the members by group and client.
func (c *groupsMembersCmd) Run(ctx context.Context, io streams) error {
	return c.on(ctx, io, func(s *session) error {
		groups, err := s.describe(ctx, c.Groups)
		t := newTable("group", "client_id", "host", "instance_id", "member_id", "epoch", "topics", "assigned", "target")
		for _, g := range groups {
			for _, m := range g.Members {
				topics := m.Topics
				if m.Pattern != "" {
					topics = append(topics[:len(topics):len(topics)], "/"+m.Pattern+"/")
				}
				var target any // only a consumer group has one that may differ
				if m.Target != nil {
					target = assignment(m.Target)
				}
				t.add(g.ID, m.ClientID, m.Host, named(m.InstanceID), m.ID, known(m.Epoch), topics, assignment(m.Assigned), target)
			}
		}
		return printed(t.print(io.out, c.Output), err)
	})
}
