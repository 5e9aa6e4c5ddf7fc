package main

import (
	"context"
	"time"

	"github.com/ottla-kafka/ottla/admin"
)

// txnsDescribeCmd prints a row for each transactional id.
type txnsDescribeCmd struct {
	connection
	output
	IDs []string `arg:"" optional:"" name:"transactional-id" help:"Ids; without any, all."`
}

// Run prints what the coordinators know of the ids.
func (c *txnsDescribeCmd) Run(ctx context.Context, io streams) error {
	return c.on(ctx, io, func(s *session) error {
		ids, failed := c.IDs, error(nil)
		if len(ids) == 0 {
			var listed []admin.ListedTransaction
			listed, failed = s.adm.ListTransactions(ctx, admin.TransactionFilter{})
			for _, l := range listed {
				ids = append(ids, l.ID)
			}
		}
		rows, err := s.describeTxns(ctx, ids)
		t, now := newTable("transactional_id", "state", "producer_id", "epoch", "timeout_ms", "started", "open_ms", "partitions", "coordinator"), time.Now()
		for _, r := range rows {
			open := any(nil)
			if !r.Start.IsZero() {
				open = r.Age(now).Milliseconds()
			}
			t.add(r.ID, string(r.State), known(r.ProducerID), known(int32(r.ProducerEpoch)), r.Timeout.Milliseconds(), instant(r.Start), open, assignment(r.Partitions), r.Coordinator.Addr())
		}
		return printed(t.print(io.out, c.Output), joinLines([]error{failed, err}))
	})
}
