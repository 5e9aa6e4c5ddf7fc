package fakebroker

import (
	"context"
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker/internal/server"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
)

// A Transaction is a transactional id as its coordinator sees it at one moment. Its fields:
//
//	ID            string
//	State         TransactionState       TransactionDead for an id that does not exist
//	ProducerID    int64                  of the producer that has the id now, -1 when there is none
//	ProducerEpoch int16                  likewise
//	Timeout       time.Duration          transaction.timeout.ms of that producer
//	Start         time.Time              of the open, or else the last, transaction; zero when there was none
//	Updated       time.Time              when the id last changed; transactional.id.expiration.ms counts from here
//	Partitions    []TransactionPartition in the open transaction, or still to be ended; those of __consumer_offsets too
//	Version       int16                  of the protocol: 2 for KIP-890, else 0
//	Commits, Aborts  int                 transactions that were completed since the broker started or the coordinator loaded
//	TimeOuts, Fences int                 aborts that the coordinator decided: by the timeout, for a new producer
type Transaction = transaction.View

// A TransactionState is a state of a transactional id; its String is Apache Kafka's name of it.
type TransactionState = transaction.State

// A TransactionPartition is one partition in a transaction: its Topic and Partition.
type TransactionPartition = transaction.TopicPartition

// The states of a transactional id. In the Prepare states the outcome is decided and the markers are being written.
const (
	TransactionEmpty          = transaction.Empty
	TransactionOngoing        = transaction.Ongoing
	TransactionPrepareCommit  = transaction.PrepareCommit
	TransactionPrepareAbort   = transaction.PrepareAbort
	TransactionCompleteCommit = transaction.CompleteCommit
	TransactionCompleteAbort  = transaction.CompleteAbort
	TransactionDead           = transaction.Dead
)

// A TransactionCheck is something that AwaitTransaction can wait for.
type TransactionCheck func(*Transaction) bool

// TransactionIs waits for a state. States that pass quickly, as PrepareCommit, may pass unseen.
func TransactionIs(state TransactionState) TransactionCheck {
	return func(t *Transaction) bool { return t.State == state }
}

// TransactionHas waits until a partition is in the open transaction.
func TransactionHas(topic string, partition int32) TransactionCheck {
	return func(t *Transaction) bool {
		for _, p := range t.Partitions {
			if p.Topic == topic && p.Partition == partition {
				return true
			}
		}
		return false
	}
}

// TransactionCommits waits until at least n transactions of the id were committed, markers and all, since the broker was
// started (or its coordinator reloaded).
func TransactionCommits(n int) TransactionCheck {
	return func(t *Transaction) bool { return t.Commits >= n }
}

// TransactionAborts is TransactionCommits for aborts, whoever decided them.
func TransactionAborts(n int) TransactionCheck {
	return func(t *Transaction) bool { return t.Aborts >= n }
}

// Transaction returns a transactional id. An error means that its coordinator cannot be asked: the broker is stopped, or
// still loading it.
func (k *Cluster) Transaction(ctx context.Context, id string) (t *Transaction, err error) {
	err = k.with(ctx, func(ctx context.Context, b *server.Broker) (err error) {
		t, err = b.Transaction(ctx, id)
		return about("transaction", id, err)
	})
	return t, err
}

// Transactions returns all transactional ids, sorted by id.
func (k *Cluster) Transactions(ctx context.Context) (all []*Transaction, err error) {
	err = k.with(ctx, func(ctx context.Context, b *server.Broker) (err error) {
		if all, err = b.Transactions(ctx); err != nil {
			return fmt.Errorf("fakebroker: transactions: %w", err)
		}
		return nil
	})
	return all, err
}

// AwaitTransaction returns when all checks hold for a transactional id at the same moment, with the id as it was then, or
// when ctx ends. Nothing is polled.
func (k *Cluster) AwaitTransaction(ctx context.Context, id string, checks ...TransactionCheck) (t *Transaction, err error) {
	err = k.with(ctx, func(ctx context.Context, b *server.Broker) (err error) {
		t, err = b.AwaitTransaction(ctx, id, func(t *Transaction) bool {
			for _, check := range checks {
				if !check(t) {
					return false
				}
			}
			return true
		})
		return err
	})
	return t, err
}

// ExpireTransaction aborts the open transaction of an id now, as if it had been open for transaction.timeout.ms: its
// producer is fenced. It returns when the abort is decided; AwaitTransaction with TransactionIs(TransactionCompleteAbort)
// returns when the markers are written. Without an open transaction the error wraps errcode.InvalidTxnState.
func (k *Cluster) ExpireTransaction(ctx context.Context, id string) error {
	return k.with(ctx, func(ctx context.Context, b *server.Broker) error {
		return about("expire the transaction of", id, b.TimeOutTransaction(ctx, id))
	})
}

// ReloadTransactionCoordinator has the coordinator of a transactional id resign and load its state from
// __transaction_state again: as if the leadership had moved away and back.
func (k *Cluster) ReloadTransactionCoordinator(ctx context.Context, id string) error {
	return k.with(ctx, func(ctx context.Context, b *server.Broker) error { return b.ReloadTransactions(ctx, id) })
}
