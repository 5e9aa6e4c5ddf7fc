// Package consumer reads records from a Kafka cluster, alone or as a member of a group.
//
// A Consumer reads the partitions that it is assigned, or as a member of a group those that the group gives it, from
// several brokers at once, and hands out their records in the order of each partition. It fetches ahead while the
// application works, within fetch.max.bytes, max.partition.fetch.bytes and the client's memory budget.
//
//	cl, err := client.New(client.Seeds("localhost:9092"))
//	c, err := consumer.New(cl, consumer.Group("billing"), consumer.Subscribe("orders"))
//	defer c.Close(ctx)
//	err = c.Run(ctx, func(ctx context.Context, r consumer.Record) error {
//		return handle(ctx, r.Key, r.Value)
//	}, consumer.DeadLetter("orders-dead"))
//
// # Three heights
//
// Run processes many records at the same time: those with the same key of the same partition in order, others side by
// side; it tries again what fails, and puts what cannot be processed into a dead-letter topic. Serve has one goroutine
// for each partition, which goes through its records with Claim.Records. Records, Batches and Poll are plain loops:
// Records yields one record at a time, Batches one batch as it lies in the log, Poll a slice. All of them go on where
// the last one stopped: breaking out of a loop, or the end of ctx, loses nothing, and repeats only what was not done.
// Keys, values and headers point into the bytes that came from the broker; they stay valid for ever (unless
// ReuseMemory says otherwise, which makes reading cheaper) and must not be written to.
//
// # Groups
//
// Members of a group (Group, Subscribe, SubscribePattern) share the partitions of their topics. A consumer joins with
// its first call that reads, and leaves with Close.
//
// Only what is done is committed. With Run a record is done when its handler returned nil, or the dead-letter topic
// has it; with Serve and Records when the loop asks for the next one; with Batches and Poll when the next ones are asked
// for. Commit says that everything handed out so far is done; call it after the last Poll, or after breaking out of a
// loop. enable.auto.commit commits by time, before partitions are given up, and at the end.
//
// A partition is given up in this order: nothing more of it is fetched or handed out; what is in hand ends, for up to
// DrainTimeout; OnRevoked is called; what is done without a gap is committed; then the group is told that it is free.
// So a rebalance in good order repeats nothing. A partition that is lost (the session ended, another process has the same
// group.instance.id) commits nothing: its offsets may be somebody else's by now. Contexts of handlers end with their
// partition, and context.Cause says why: ErrRevoked, ErrLost, ErrFenced, ErrClosed.
//
// When the group has no offset for a partition, StartAt decides, else auto.offset.reset. A start at the end, or at a time,
// is committed before the first fetch, so that a crash before the first commit skips nothing.
//
// A consumer with Group and Assign in place of Subscribe reads the partitions that it is told to, and keeps their offsets in
// the group without being a member of it: it starts from the committed offsets, and commits as a member does, when partitions
// are removed too. Nobody takes partitions from it, and nobody else should commit for the group: while the group has members
// its commits fail with ErrGroupInUse. With ManualCommit nothing at all is committed but by Commit and its like.
//
// An application that takes longer than max.poll.interval.ms for what it has in hand is told so, with the record and the
// stack (OnStall); by default the member leaves the group, and Run, Serve or the loop say so with a *StallError.
//
// # Transactions
//
// With isolation.level=read_committed records of open and aborted transactions are not handed out, and positions move over
// them and over markers, so that the lag can reach zero. When an open transaction holds a partition back for a minute
// (Standstill), OnEvent, observers and the logger hear of it, with the producer id. A consumer whose offsets are committed
// together with what was made of its records, exactly once, is fed to txn.Session.Pipe or Consume; they use Intake.
//
// # Errors
//
// An error in a loop is about one partition, an *client.OpError that names it, unless ctx ended, the consumer was closed,
// or it is about the group; the other partitions go on if the loop does (see FailFast). A partition whose error stays (a
// truncated log, a topic created anew, an offset that is gone under the policy Fail, damaged data) is halted until Seek.
// Everything that passes by itself, such as a broker that is away, is tried again and reported only when it lasts for
// default.api.timeout.ms.
//
// A call that is given a ctx that has ended already returns its cause and starts nothing; Close and Leave end the consumer all
// the same, without a good-bye. What had been handed out before a call that asks for more, or commits, is done even then.
//
// # Inside
//
// A newcomer reads consumer/machine first: it decides everything and does nothing. consumer/internal/fetch does what it says
// about fetching, package groupmember keeps the membership. This package is the face, and the driver of claims:
//
//	config.go, options.go, group_options.go, properties.go, validate.go, lint.go    configuration
//	consumer.go, records.go, batches.go, poll.go, hold.go                           plain loops, and what is in hand
//	run.go, serve.go, engine.go, dead_letter.go                                     handlers
//	group.go, group_listener.go, group_begin.go, claim.go, commit.go, stall.go      membership: how claims begin and end
//	standalone.go, standalone_offsets.go                                            what is in its place when partitions are assigned
//	intake.go                                                                       offsets that transactions commit
//	subscribe.go, assign.go, seek.go, offsets.go, standstill.go                     steering and asking
//	typed.go, decoder.go                                                            types
package consumer
