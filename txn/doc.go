// Package txn sends records and consumer offsets in transactions: readers with isolation.level=read_committed see all of a
// transaction or nothing of it.
//
//	s, err := txn.New(ctx, cl, "billing-1")                            // fences older sessions of the id
//	err = s.Do(ctx, func(ctx context.Context, tx *txn.Tx) error {      // nil commits, an error or a panic aborts
//		return tx.Submit(ctx, producer.Record{Topic: "orders", Value: v}, nil)
//	})
//	err = s.Pipe(ctx, consumer, handle)                                // consume, transform, produce: exactly once
//	err = s.Close(ctx)
//
// # Which guarantee for what
//
//	at most once      producer.RequireAcks(producer.AcksNone) or retries=0; commit offsets before processing. Lost records are
//	                  not noticed. For samples and the like, where the next one replaces the last.
//	at least once     package producer as it comes (acks=all, idempotence on): a record that was acknowledged is in the log,
//	                  once, in order, as long as this process lives; consumer.Run commits what was processed. What a crash
//	                  interrupts is done again, so consumers of the result meet records twice now and then.
//	                  The right choice when effects are idempotent, or outside of Kafka, which no transaction covers.
//	transactions      Session.Do: several records, of several topics, all or none; across crashes, since a restart with the
//	                  same id ends what was left open. Readers need isolation.level=read_committed, or they see it all.
//	exactly once      Session.Pipe (or Do with Session.Consume): input offsets and output records are one transaction.
//	                  Within Kafka every input record takes effect once. Calls of other systems by the handler are repeated.
//
// # What a transaction costs
//
// Measured against the plain idempotent producer of package producer, on one broker over loopback, two cores shared by both
// and others, records of 200 bytes; medians:
//
//	                                        plain       in a transaction
//	Apache Kafka 4.4, transaction.version 2
//	  CPU of this client, million records   0.9 s       0.8 to 0.9 s, committed each 100 ms; 0.9 to 1.0 s each 10 ms
//	  one record, waited for                0.7 ms      2.1 ms: the record, then EndTxn
//	Apache Kafka 4.4, transaction.version 1
//	  one record, waited for                0.6 ms      4.7 ms: AddPartitionsToTxn, which waits for the last markers, first
//	package fakebroker, both versions
//	  one record, waited for                0.2 ms      0.5 ms
//
// A record costs nothing more: one comparison, no allocation. Readers see it when its transaction has ended, so up to
// CommitEvery later.
//
// The price is thus a matter of how many transactions there are, not of how many records: each costs the brokers two
// records in __transaction_state and a marker in each partition it wrote to, and this client one or two round trips. Many
// records in a transaction of some 100 ms cost next to nothing; a transaction for each record costs a round trip for each.
//
// # Errors
//
// Every error of this package has one of three classes, which say what is the case and what to do (see Class for a switch):
//
//	class           of the transaction             of the session   what to do
//	Abortable       nothing is or will be          lives            Abort (Do has), then all of it again
//	Fenced          nothing is or will be          is over          stop, or make a new session
//	OutcomeUnknown  committed or not               lives            Commit again, or Begin: they find out; Last tells
//	                (matches ErrFenced too: the session is over, and nobody will ever tell)
//
// Nothing that passes surfaces: connections that end, coordinators and leaders that move, brokers that load, transactions that
// are just ending are tried again, as long as ctx allows. These surface, by request:
//
//	                                   Produce  AddPartitions  AddOffsets  TxnOffsetCommit  EndTxn   InitProducerId
//	a record or batch refused          A
//	delivery.timeout.ms, in doubt      A, F¹
//	OUT_OF_ORDER_SEQUENCE_NUMBER       A
//	UNKNOWN_PRODUCER_ID                A        A, F¹          A, F¹                        A, F¹
//	INVALID_PRODUCER_EPOCH             A²       F              F           F                F        F
//	PRODUCER_FENCED                    F        F              F           F                F        F
//	INVALID_TXN_STATE                  A        F              F                            F, A³
//	INVALID_PRODUCER_ID_MAPPING        F        F              F                            F
//	TRANSACTION_ABORTABLE              A        A              A           A                A
//	TOPIC_AUTHORIZATION_FAILED         A        A                          A
//	GROUP_AUTHORIZATION_FAILED                                 A           A
//	ILLEGAL_GENERATION and the like                                        A⁴
//	FENCED_INSTANCE_ID                                                     A
//	TRANSACTIONAL_ID_AUTHORIZATION_…   F        F              F           F                F        F
//	INVALID_TRANSACTION_TIMEOUT                                                                      F
//	no answer by the end of ctx        A        A              A           A                U
//
//	A Abortable, F Fenced, U OutcomeUnknown
//	¹ Fenced on brokers before 2.5, which cannot give a session another epoch (KIP-360)
//	² the leader may be behind the coordinator; what Abort says is final
//	³ with transaction.version 2 the coordinator has aborted the transaction (ErrTimedOut), and the session goes on
//	⁴ after the group's member was asked for a newer generation three times
//
// A FencedError says by whom: NewInstance, Timeout or Admin. That is read from the coordinator's state (DescribeTransactions)
// and our own clock, as far as those tell; By is Unknown otherwise. An administrator is told from a new instance only by the
// transaction timeout he registers.
//
// # When ctx ends
//
// Every call returns at the end of its ctx, whatever it waits for, and the next call goes on from there. A Commit that may
// have got out is finished behind the scenes (OutcomeUnknown); one that has not is undone, and the transaction is open again.
// An Abort goes on behind the scenes, and Begin waits for it. SendOffsets leaves a transaction that can only be aborted,
// since nobody knows whether the offsets are part of it. A record whose Send was ended is part of the transaction unless
// producer.Outcome says NotWritten. A ctx that had ended before the call begins nothing, except that Abort and Close do what
// they are for.
//
// # Where this differs from Kafka's own producer
//
//   - A record that Submit refuses outright (too large, buffer full) does not doom the transaction: it is simply not in it.
//   - A transaction that took too long does not end the session where the coordinator lets it go on (transaction.version 2).
//   - A late request of a dead connection cannot touch the next transaction before transaction.version 2 either: another
//     epoch is asked for when one may be under way.
//   - A commit without an answer is asked about until it is known, instead of being left to the caller.
//   - Offsets are committed again when the member's generation moved on while they were on their way.
//   - initTransactions that was not authorized cannot be called again; New can.
//   - max.block.ms bounds New, as initTransactions, and Submit; commits, aborts and offsets are bounded by ctx alone.
//   - batch.size is 256 KiB unless set.
//   - Two-phase commit (KIP-939) is not there.
//
// # What lives where
//
//	session.go   New, Begin, Close          tx.go       one transaction: Submit, Commit, Abort
//	do.go        Do                         offsets.go  SendOffsets
//	driver.go    takes events to the machine and carries out what comes of it; no goroutine of its own
//	pipe*.go     Pipe, PipeBatches, Consume     age.go      whether a group's coordinator is new enough for them
//	machine/     all decisions: states, requests, error codes, fencing
//
// The records go through producer.Transactional, which holds them back until their partition is part of the transaction.
// Brokers from 0.11 on have transactions, this client works with those from 2.1 on.
package txn
