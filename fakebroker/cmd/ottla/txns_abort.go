package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// txnsAbortCmd ends transactions: through their coordinators by transactional id, or on one partition past any coordinator.
type txnsAbortCmd struct {
	connection
	output
	searchFlags
	IDs              []string `arg:"" optional:"" name:"transactional-id" help:"Ids whose coordinators abort what is open; their producers are fenced."`
	Hanging          bool     `xor:"what" help:"All that 'txns hanging' finds with the same flags."`
	StartOffset      *int64   `xor:"what" placeholder:"OFFSET" help:"The one that is open since OFFSET on the partition of --topic NAME:P."`
	ProducerID       *int64   `name:"producer-id" xor:"what" placeholder:"N" help:"The one of this producer on the partition of --topic NAME:P, without asking what is open there."`
	ProducerEpoch    int16    `default:"0" placeholder:"N" help:"With --producer-id: the producer's epoch."`
	CoordinatorEpoch int32    `default:"0" placeholder:"N" help:"With --producer-id: the epoch of the coordinator."`
	Execute          bool     `help:"Do it, instead of showing what would be done."`
}

// Run prints what there is to abort, and does it if told to. Those that fail do not keep the others.
func (c *txnsAbortCmd) Run(ctx context.Context, io streams) error {
	search, err := c.search()
	if err == nil {
		err = c.check(search)
	}
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("txns abort: %w", err)}
	}
	return c.on(ctx, io, func(s *session) error {
		t, failed := (*table)(nil), error(nil)
		switch {
		case len(c.IDs) > 0:
			t, failed = c.byID(ctx, s)
		case c.ProducerID != nil:
			t, failed = c.blindly(ctx, s, search.Partitions[0])
		default:
			t, failed = c.onPartitions(ctx, s, search)
		}
		err := t.print(io.out, c.Output)
		switch {
		case len(t.rows) == 0 && failed == nil:
			fmt.Fprintln(io.err, "ottla: there is nothing to abort")
		case !c.Execute && len(t.rows) > 0:
			fmt.Fprintln(io.err, "ottla: nothing was aborted; add --execute to abort these transactions")
		}
		return printed(err, failed)
	})
}

// check tells what the flags lack.
func (c *txnsAbortCmd) check(search admin.HangingSearch) error {
	onOne := c.StartOffset != nil || c.ProducerID != nil
	switch {
	case len(c.IDs) > 0 && (c.Hanging || onOne || len(c.Topic) > 0):
		return errors.New("name transactional ids, or --hanging, or --topic NAME:P with --start-offset or --producer-id")
	case len(c.IDs) == 0 && !c.Hanging && !onOne:
		return errors.New("say what: transactional ids, --hanging, or --topic NAME:P with --start-offset or --producer-id")
	case onOne && (len(search.Partitions) != 1 || len(search.Topics) > 0):
		return errors.New("--start-offset and --producer-id want one --topic NAME:P, such as orders:3")
	}
	return nil
}

// byID has coordinators abort what is open under ids. An id without an open transaction stays as it is, and so does one whose
// transaction is at its end.
func (c *txnsAbortCmd) byID(ctx context.Context, s *session) (*table, error) {
	rows, err := s.describeTxns(ctx, c.IDs)
	t, errs := newTable("transactional_id", "state", "producer_id", "epoch", "partitions", "aborted"), []error{err}
	for _, r := range rows {
		if r.State != admin.TransactionOngoing {
			errs = append(errs, fmt.Errorf("transactional id '%s' has nothing to abort: its state is %s", r.ID, r.State))
			continue
		}
		aborted := false
		if c.Execute {
			err := s.adm.ForceTerminateTransaction(ctx, r.ID)
			aborted, errs = err == nil, append(errs, err)
		}
		t.add(r.ID, string(r.State), known(r.ProducerID), known(int32(r.ProducerEpoch)), assignment(r.Partitions), aborted)
	}
	return t, joinLines(errs)
}

// onPartitions writes markers for what hangs. What a coordinator knows is left to it: a marker past it would tear the
// transaction, whose other partitions may be committed.
func (c *txnsAbortCmd) onPartitions(ctx context.Context, s *session, search admin.HangingSearch) (*table, error) {
	if c.StartOffset != nil {
		search.MaxTimeout = time.Nanosecond // it is named, so it need not be old
	}
	rows, err := s.hanging(ctx, search)
	if c.StartOffset != nil && err == nil {
		rows = slices.DeleteFunc(rows, func(h admin.HangingTransaction) bool { return h.Producer.TxnStart != *c.StartOffset })
		if len(rows) == 0 {
			err = s.notHanging(ctx, search.Partitions[0], *c.StartOffset)
		}
	}
	t, errs := hangingTable("aborted"), []error{err}
	for _, h := range rows {
		aborted := false
		if c.Execute {
			err := s.adm.AbortTransaction(ctx, h.AbortSpec())
			aborted, errs = err == nil, append(errs, err)
		}
		t.add(hangingCells(h, aborted)...)
	}
	return t, joinLines(errs)
}

// notHanging says why what is open since an offset, if anything is, is not to be aborted past its coordinator.
func (s *session) notHanging(ctx context.Context, p admin.TopicPartition, start int64) error {
	spec, err := s.adm.FindOpenTransaction(ctx, p, start)
	if err != nil {
		if errors.Is(err, errcode.UnknownTopicOrPartition) {
			return s.topicError(ctx, p.Topic, err)
		}
		return fmt.Errorf("%w; see 'ottla producers describe %s:%d'", err, p.Topic, p.Partition)
	}
	id := "ID"
	if rows, err := s.adm.ListTransactions(ctx, admin.TransactionFilter{ProducerIDs: []int64{spec.ProducerID}}); err == nil && len(rows) > 0 {
		id = rows[0].ID
	}
	return fmt.Errorf("the transaction since offset %d of %v does not hang: its coordinator will end it\nottla: abort it there with 'ottla txns abort %s'", start, p, id)
}

// blindly writes a marker for what is named, unseen.
func (c *txnsAbortCmd) blindly(ctx context.Context, s *session, p admin.TopicPartition) (*table, error) {
	spec := admin.AbortSpec{TopicPartition: p, ProducerID: *c.ProducerID, ProducerEpoch: c.ProducerEpoch, CoordinatorEpoch: c.CoordinatorEpoch}
	var err error
	if c.Execute {
		err = s.adm.AbortTransaction(ctx, spec)
		if errors.Is(err, errcode.UnknownTopicOrPartition) {
			err = s.topicError(ctx, p.Topic, err)
		}
	}
	t := newTable("topic", "partition", "producer_id", "epoch", "coordinator_epoch", "aborted")
	t.add(p.Topic, p.Partition, spec.ProducerID, int32(spec.ProducerEpoch), spec.CoordinatorEpoch, c.Execute && err == nil)
	return t, err
}
