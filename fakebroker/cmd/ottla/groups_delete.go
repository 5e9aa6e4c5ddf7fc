package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// groupsDeleteCmd deletes groups, after it has shown what goes with them.
type groupsDeleteCmd struct {
	connection
	output
	Groups []string `arg:"" name:"group" help:"Names."`
	Yes    bool     `short:"y" aliases:"execute" help:"Delete, instead of showing what would be deleted."`
}

// Run prints state and offsets of the groups, and deletes them if told to. Those that fail do not keep the others.
func (c *groupsDeleteCmd) Run(ctx context.Context, io streams) error {
	return c.on(ctx, io, func(s *session) error {
		groups, failed := s.describe(ctx, c.Groups)
		errs, names := []error{failed}, []string{}
		for _, g := range groups {
			names = append(names, g.ID)
		}
		offsets := map[string]int{}
		for _, name := range names {
			rows, err := s.adm.ListGroupOffsets(ctx, name)
			offsets[name] = len(rows)
			errs = append(errs, err)
		}
		deleted := map[string]bool{}
		if c.Yes && len(names) > 0 {
			rows, _ := s.adm.DeleteGroups(ctx, names...) // errors are in the rows
			for _, r := range rows {
				deleted[r.ID] = r.Err == nil
				if errors.Is(r.Err, errcode.NonEmptyGroup) {
					r.Err = fmt.Errorf("%w\nottla: stop its consumers first; 'ottla groups members %s' shows them", r.Err, r.ID)
				}
				errs = append(errs, r.Err)
			}
		}
		t := newTable("group", "state", "members", "offsets", "deleted")
		for _, g := range groups {
			t.add(g.ID, named(g.State), len(g.Members), offsets[g.ID], deleted[g.ID])
		}
		err := t.print(io.out, c.Output)
		if !c.Yes && len(names) > 0 {
			fmt.Fprintln(io.err, "ottla: nothing was deleted; add --yes to delete these groups with their committed offsets")
		}
		return printed(err, joinLines(errs))
	})
}
