package txn

import (
	"context"
	"iter"

	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/producer"
)

// Tx is one transaction. Its methods may be called from any goroutine until Commit or Abort was called; what comes
// later fails with ErrOver.
type Tx struct {
	s *Session
}

// Outcome is what became of a transaction.
type Outcome uint8

// The outcomes.
const (
	Open      Outcome = iota // neither Commit nor Abort has come through
	Committed                // readers see all of it
	Aborted                  // read_committed readers see nothing of it
	InDoubt                  // the answer to Commit did not come; Commit again or Begin finds out
)

// Submit is producer.Producer.Submit within the transaction. An error of Submit itself leaves the transaction as it
// was, without the record. An error that done gets later dooms the transaction: Commit will fail.
func (tx *Tx) Submit(ctx context.Context, r producer.Record, done func(producer.Ack, error)) error {
	return tx.s.fail("Submit", Fenced, errNotBuilt)
}

// Send is producer.Producer.Send within the transaction.
func (tx *Tx) Send(ctx context.Context, r producer.Record) (producer.Ack, error) {
	return producer.Ack{}, tx.s.fail("Send", Fenced, errNotBuilt)
}

// SendAll is producer.Producer.SendAll within the transaction.
func (tx *Tx) SendAll(ctx context.Context, records iter.Seq[producer.Record]) (acked int, err error) {
	return 0, tx.s.fail("SendAll", Fenced, errNotBuilt)
}

// Flush waits for the verdicts of everything submitted. Commit does that as well.
func (tx *Tx) Flush(ctx context.Context) error { return tx.s.fail("Flush", Fenced, errNotBuilt) }

// SendOffsets makes the offsets of a consumer group part of the transaction: they are committed if it is. The
// generation fences: when the group has moved on, the transaction can only be aborted (KIP-447, brokers 2.5 and later).
// The zero Generation commits without that check, for consumers that are in no group. Offsets are the next ones to read.
func (tx *Tx) SendOffsets(ctx context.Context, group string, g groupmember.Generation, offsets map[groupmember.TopicPartition]groupmember.Offset) error {
	return tx.s.fail("SendOffsets", Fenced, errNotBuilt)
}

// sendOffsets is SendOffsets with offsets that are asked for before each attempt, see api-txn.
func (tx *Tx) sendOffsets(ctx context.Context, source func() (group string, g groupmember.Generation, at map[groupmember.TopicPartition]groupmember.Offset, err error)) error {
	return tx.s.fail("SendOffsets", Fenced, errNotBuilt)
}

// Commit sends what is buffered, waits for all verdicts, and commits. After nil readers see all of it. After an error of
// class OutcomeUnknown it may be called again; after one of class Abortable, Abort.
func (tx *Tx) Commit(ctx context.Context) error { return tx.s.fail("Commit", Fenced, errNotBuilt) }

// Abort gives up what was not sent, waits for what is on its way, and aborts. The session can begin another one then.
func (tx *Tx) Abort(ctx context.Context) error { return tx.s.fail("Abort", Fenced, errNotBuilt) }

// Err is why the transaction can only be aborted, nil while it can be committed.
func (tx *Tx) Err() error { return nil }

// Context ends when the transaction has ended or can only be aborted; its cause is Err, or ErrOver.
func (tx *Tx) Context() context.Context { return context.Background() }

// Outcome is what became of it.
func (tx *Tx) Outcome() Outcome { return Open }
