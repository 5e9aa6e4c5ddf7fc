package main

import (
	"context"
	"fmt"

	"github.com/ottla-kafka/ottla/admin"
)

// txnsListCmd prints a row for each transactional id.
type txnsListCmd struct {
	connection
	output
	State      []string `placeholder:"STATE" help:"Only ids in one of these states, such as Ongoing or PrepareCommit."`
	ProducerID []int64  `name:"producer-id" placeholder:"N" help:"Only those of these producer ids."`
	LongerThan string   `aliases:"duration-filter" placeholder:"DURATION" help:"Only transactions that have been open for longer, such as 90s or PT5M."`
	Pattern    string   `aliases:"transactional-id-pattern" placeholder:"REGEXP" help:"Only ids that match as a whole."`
}

// Run lists transactional ids by name.
func (c *txnsListCmd) Run(ctx context.Context, io streams) error {
	filter := admin.TransactionFilter{ProducerIDs: c.ProducerID, Pattern: c.Pattern}
	for _, s := range c.State {
		filter.States = append(filter.States, admin.TransactionState(s))
	}
	if c.LongerThan != "" {
		d, err := parseDuration(c.LongerThan)
		if err != nil {
			return &exitError{exitUsage, fmt.Errorf("txns list: --longer-than: %w", err)}
		}
		filter.LongerThan = d
	}
	return c.on(ctx, io, func(s *session) error {
		rows, err := s.adm.ListTransactions(ctx, filter)
		t := newTable("transactional_id", "state", "producer_id", "coordinator")
		for _, r := range rows {
			t.add(r.ID, string(r.State), known(r.ProducerID), r.Coordinator)
		}
		return printed(t.print(io.out, c.Output), err)
	})
}
