package main

import (
	"context"
	"fmt"

	"github.com/ottla-kafka/ottla/admin"
)

// txnsHangingCmd prints a row for each hanging transaction on a partition.
type txnsHangingCmd struct {
	connection
	output
	searchFlags
}

// Run searches. That nothing hangs is no failure.
func (c *txnsHangingCmd) Run(ctx context.Context, io streams) error {
	search, err := c.search()
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("txns hanging: %w", err)}
	}
	return c.on(ctx, io, func(s *session) error {
		rows, err := s.hanging(ctx, search)
		t := hangingTable()
		for _, h := range rows {
			t.add(hangingCells(h)...)
		}
		if len(rows) > 0 {
			fmt.Fprintln(io.err, "ottla: consumers with isolation.level=read_committed stop at these offsets; end them with 'ottla txns abort --hanging'")
		}
		return printed(t.print(io.out, c.Output), err)
	})
}

func hangingTable(more ...string) *table {
	return newTable(append([]string{"topic", "partition", "start_offset", "producer_id", "epoch", "coordinator_epoch", "transactional_id", "last_write", "idle_ms"}, more...)...)
}

func hangingCells(h admin.HangingTransaction, more ...any) []any {
	p := h.Producer
	return append([]any{h.Topic, h.Partition, p.TxnStart, p.ID, int32(p.Epoch), known(p.CoordinatorEpoch), named(h.TransactionalID), instant(p.LastTimestamp), h.Idle.Milliseconds()}, more...)
}
