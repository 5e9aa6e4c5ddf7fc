package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// sink is where produce writes to. Both functions are called by the command's one goroutine.
type sink struct {
	submit func(ctx context.Context, rec producer.Record, done func(producer.Ack, error)) error
	// end gives every record its verdict, also after an interruption: what is in the buffer was taken over. spoilt tells that
	// not everything could be read.
	end    func(ctx context.Context, spoilt bool) error
	atomic bool // when end fails nothing is written
}

// sink is a plain producer, or with --txn-id or transactional.id one transaction.
func (c *produceCmd) sink(ctx context.Context, s *session) (*sink, error) {
	if id := cmp.Or(c.TxnID, s.txn.ID); id != "" {
		return s.transaction(ctx, id)
	}
	p, err := producer.NewFromConfig(s.cl, s.producer)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return &sink{submit: p.Submit, end: func(ctx context.Context, _ bool) error { return p.Close(ctx) }}, nil
}

// errAborted says that readers with isolation.level=read_committed see nothing of what was written.
var errAborted = errors.New("the transaction was aborted: nothing was written")

// transaction is a sink that commits when all was read and written, and else aborts.
func (s *session) transaction(ctx context.Context, id string) (*sink, error) {
	cfg := s.txn
	cfg.ID, cfg.Producer = id, s.producer
	if err := cfg.Validate(); err != nil {
		return nil, &exitError{exitUsage, err}
	}
	session, err := txn.NewFromConfig(ctx, s.cl, cfg)
	if err != nil {
		return nil, fmt.Errorf("--txn-id %s: %w", id, err)
	}
	tx, err := session.Begin(ctx)
	if err != nil {
		return nil, errors.Join(err, session.Close(ctx))
	}
	end := func(ctx context.Context, spoilt bool) error {
		if spoilt || tx.Err() != nil {
			if err := tx.Abort(ctx); err != nil {
				return err
			}
			return errAborted
		}
		err := tx.Commit(ctx)
		if err == nil || txn.Class(err) != txn.Abortable {
			return err
		}
		if failed := tx.Abort(ctx); failed != nil {
			return joinLines([]error{err, failed})
		}
		return joinLines([]error{err, errAborted})
	}
	return &sink{submit: tx.Submit, atomic: true, end: func(ctx context.Context, spoilt bool) error {
		err := end(ctx, spoilt)
		if closed := session.Close(ctx); err == nil {
			err = closed
		}
		return err
	}}, nil
}
