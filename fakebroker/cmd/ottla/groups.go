package main

import (
	"context"
	"errors"

	"github.com/ottla-kafka/ottla/admin"
)

// groupsCmd are the commands about groups; each has a file.
type groupsCmd struct {
	List         groupsListCmd     `cmd:"" aliases:"ls" help:"List groups."`
	Describe     groupsDescribeCmd `cmd:"" help:"Show state, assignor, coordinator and lag of groups."`
	Members      groupsMembersCmd  `cmd:"" help:"Show members of groups and what is assigned to them."`
	Lag          groupsLagCmd      `cmd:"" help:"Show what groups have committed, and how far they are behind, by partition."`
	ResetOffsets groupsResetCmd    `cmd:"" name:"reset-offsets" help:"Move the committed offsets of a group (shows the plan; --execute does it)."`
	Delete       groupsDeleteCmd   `cmd:"" help:"Delete groups with their committed offsets (shows what would go; --yes does it)."`
}

// groupNames are groups on a command line.
type groupNames struct {
	Groups []string `arg:"" optional:"" name:"group" help:"Names; without any, all groups."`
}

// groupsAsked are the groups named, or all.
func (s *session) groupsAsked(ctx context.Context, names []string) ([]string, error) {
	if len(names) > 0 {
		return names, nil
	}
	rows, err := s.adm.ListGroups(ctx, admin.GroupFilter{Types: nil})
	for _, g := range rows {
		if g.Type == "" || g.Type == admin.ClassicGroup || g.Type == admin.ConsumerGroup {
			names = append(names, g.ID) // other kinds have commands of their own
		}
	}
	return names, err
}

// describe describes the groups asked for; those that failed are in the error, the others in the rows.
func (s *session) describe(ctx context.Context, names []string) ([]admin.Group, error) {
	asked, err := s.groupsAsked(ctx, names)
	rows, _ := s.adm.DescribeGroups(ctx, asked...) // errors are in the rows
	errs, good := []error{err}, rows[:0]
	for _, g := range rows {
		if g.Err != nil {
			errs = append(errs, s.groupError(ctx, g.ID, g.Err))
			continue
		}
		good = append(good, g)
	}
	return good, joinLines(errs)
}

// lag is describe with lags. A group whose offsets cannot be read is left out, a partition of which something is not known
// is not.
func (s *session) lag(ctx context.Context, names []string) ([]admin.GroupLag, error) {
	asked, err := s.groupsAsked(ctx, names)
	rows, _ := s.adm.Lag(ctx, asked...) // errors are in the rows
	errs, good := []error{err}, rows[:0]
	for _, g := range rows {
		for _, p := range g.Partitions {
			errs = append(errs, p.Err)
		}
		if g.Err != nil {
			errs = append(errs, s.groupError(ctx, g.Group.ID, g.Err))
			continue
		}
		good = append(good, g)
	}
	return good, joinLines(unique(errs))
}

// unique drops errors that are there already: rows of one request share its error.
func unique(errs []error) (out []error) {
	for _, err := range errs {
		seen := false
		for _, other := range out {
			seen = seen || errors.Is(other, err)
		}
		if !seen {
			out = append(out, err)
		}
	}
	return out
}
