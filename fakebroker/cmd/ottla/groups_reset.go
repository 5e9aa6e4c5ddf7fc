package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/admin"
)

// groupsResetCmd moves the committed offsets of a group.
type groupsResetCmd struct {
	connection
	output
	Group      string   `arg:"" help:"Name; a group that does not exist is created."`
	Topic      []string `placeholder:"NAME[:P,P...]" sep:"none" help:"Topics, or some partitions of them (may be repeated); without any, all that the group has committed."`
	ToEarliest bool     `xor:"to" help:"To the first record that is there."`
	ToLatest   bool     `xor:"to" help:"To the end of the log."`
	ToCurrent  bool     `xor:"to" help:"To what is committed, and to the end where nothing is."`
	ToDatetime string   `xor:"to" placeholder:"TIME" help:"To the first record not older than TIME, such as 2026-01-31T09:00:00 (UTC unless it has a zone)."`
	ByDuration string   `xor:"to" placeholder:"DURATION" help:"To the first record not older than now minus DURATION, such as 90m, 36h or P1DT2H."`
	ShiftBy    *int64   `xor:"to" placeholder:"N" help:"N records on, or back when N is negative."`
	ToOffset   *int64   `xor:"to" placeholder:"OFFSET" help:"To OFFSET, or the end of the log that is nearer."`
	Execute    bool     `help:"Do it, instead of showing what would be done."`
}

// Run prints the plan and executes it if told to. It exits with 1 when the plan cannot be executed, also without --execute.
func (c *groupsResetCmd) Run(ctx context.Context, io streams) error {
	to, err := c.place(time.Now())
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("groups reset-offsets: %w", err)}
	}
	return c.on(ctx, io, func(s *session) error {
		partitions, err := c.partitions(ctx, s)
		if err != nil {
			return err
		}
		plan, planErr := s.adm.PlanReset(ctx, c.Group, to, partitions...)
		executed := false
		if c.Execute && planErr == nil {
			_, planErr = plan.Execute(ctx, s.adm)
			executed = planErr == nil
		}
		t := newTable("group", "topic", "partition", "committed", "new_offset", "lag", "executed")
		for _, r := range plan.Rows {
			t.add(plan.Group, r.Topic, r.Partition, known(r.Committed), known(r.Offset), known(r.Lag()), executed)
			if r.Clamped {
				fmt.Fprintf(io.err, "ottla: %v has offsets %d to %d: %d is the nearest\n", r.TopicPartition, r.Start, r.End, r.Offset)
			}
		}
		if len(plan.Rows) > 0 {
			err = t.print(io.out, c.Output)
		}
		if !c.Execute && planErr == nil {
			fmt.Fprintln(io.err, "ottla: nothing was changed; add --execute to commit these offsets")
		}
		return printed(err, planErr)
	})
}

// place is the one that the flags name.
func (c *groupsResetCmd) place(now time.Time) (admin.ResetTo, error) {
	switch {
	case c.ToEarliest:
		return admin.ResetToEarliest, nil
	case c.ToLatest:
		return admin.ResetToLatest, nil
	case c.ToCurrent:
		return admin.ResetToCurrent, nil
	case c.ToDatetime != "":
		at, err := parseTime(c.ToDatetime, now)
		return admin.ResetToTime(at), err
	case c.ByDuration != "":
		d, err := parseDuration(c.ByDuration)
		return admin.ResetByDuration(d), err
	case c.ShiftBy != nil:
		return admin.ResetByShift(*c.ShiftBy), nil
	case c.ToOffset != nil:
		return admin.ResetToOffset(*c.ToOffset), nil
	}
	return admin.ResetTo{}, errors.New("say where to: --to-earliest, --to-latest, --to-current, --to-datetime, --by-duration, --shift-by or --to-offset")
}

// partitions are those of --topic: all of a topic unless it names some.
func (c *groupsResetCmd) partitions(ctx context.Context, s *session) (list []admin.TopicPartition, err error) {
	for _, arg := range c.Topic {
		some, name, err := topicOrPartitions(arg)
		if err != nil {
			return nil, &exitError{exitUsage, fmt.Errorf("--topic %s: %w", arg, err)}
		}
		if list = append(list, some...); name == "" {
			continue
		}
		topics, _ := s.adm.DescribeTopics(ctx, name) // errors are in the rows
		if err := s.topicErrors(ctx, topics); err != nil {
			return nil, err
		}
		for _, p := range topics[0].Partitions {
			list = append(list, admin.TopicPartition{Topic: name, Partition: p.ID})
		}
	}
	return list, nil
}
