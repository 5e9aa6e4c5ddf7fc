package consumer

import (
	"errors"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/internal/fetch"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/groupmember"
)

var (
	// ErrClosed ends every loop and call of a consumer that was closed.
	ErrClosed = fetch.ErrClosed
	// ErrBusy is returned when Records, Batches, Poll, Run or Serve is called while another of them reads: one goroutine
	// reads, any may call the other methods. Intake returns it too.
	ErrBusy = errors.New("another loop or Poll is reading from this consumer")
	// ErrNotAssigned is returned by Seek, Pause and Resume for a partition that the consumer does not read.
	ErrNotAssigned = errors.New("the partition is not assigned to this consumer")

	// ErrNoGroup is returned by what needs a group (Run, Serve, Commit and its like), when the consumer has none, and by
	// Subscribe when its partitions are assigned.
	ErrNoGroup = errors.New("this consumer is no member of a group: use Group and Subscribe, or Group and Assign for offsets alone")
	// ErrGroupInUse is the error of commits of a consumer that is assigned its partitions while its group has members: they
	// commit for the group (UNKNOWN_MEMBER_ID).
	ErrGroupInUse = errors.New("the group has members, and this consumer is none of them")
	// ErrRevoked is the cause when a claim ended because a rebalance takes the partition away in good order. The cause after
	// Remove matches it too.
	ErrRevoked = groupmember.ErrRevoked
	// ErrLost is the cause when a partition was lost without having been given up, and the error of a commit for it.
	ErrLost = groupmember.ErrLost
	// ErrFenced is the cause when another process took over this member's group.instance.id. It is final.
	ErrFenced = groupmember.ErrFenced
	// ErrNotOwned is the error of a commit for a partition that the member does not hold, or a record of another consumer.
	ErrNotOwned = groupmember.ErrNotOwned
	// ErrStalled matches a *StallError: the member left the group because the application took longer than
	// max.poll.interval.ms.
	ErrStalled = groupmember.ErrStalled

	// ErrTruncated matches a *TruncatedError: the log was cut below what had been read.
	ErrTruncated = machine.ErrTruncated
	// ErrOutOfRange matches a *RangeError: the log does not have the offset, and the reset policy is Fail.
	ErrOutOfRange = machine.ErrOutOfRange
	// ErrTopicReplaced matches a *ReplacedError: the topic was deleted and created again.
	ErrTopicReplaced = machine.ErrTopicReplaced
	// ErrNoPosition means that a partition has no start position, and the reset policy is Fail.
	ErrNoPosition = machine.ErrNoPosition
	// ErrCorrupt means that a batch came damaged twice: wrong checksum, lengths, or compression.
	ErrCorrupt = machine.ErrCorrupt
	// ErrNoLeader means that metadata names no leader for the partition.
	ErrNoLeader = machine.ErrNoLeader
)

// The errors beside the Err values above, for errors.As.
type (
	// TruncatedError has the positions before and after a truncation.
	TruncatedError = machine.TruncatedError
	// RangeError has the offset that was not there and the bounds of the log.
	RangeError = machine.RangeError
	// ReplacedError has the ids of the old and the new topic.
	ReplacedError = machine.ReplacedError
)

// partitionError dresses an error of one partition.
func (c *Consumer) partitionError(f *fetch.Failed) error {
	if f.Topic == "" {
		return f.Err // about the consumer as a whole, and dressed already
	}
	e := &client.OpError{Op: "Fetch", Topic: f.Topic, Partition: f.Partition, Attempts: f.Attempts, Elapsed: f.Elapsed, Err: f.Err}
	if f.Broker >= 0 {
		e.Broker = c.cl.BrokerName(f.Broker)
	}
	switch {
	case errors.Is(f.Err, ErrCorrupt):
		e.Hint = "the same bytes came twice, so the broker's copy is damaged; Seek behind it to go on, or set check.crcs=false to read it as it is"
	case f.Halted:
		e.Hint = "nothing more is read from this partition until Seek"
	case errors.Is(f.Err, ErrNoLeader):
		e.Hint = "it is tried further; see whether the topic exists and its brokers are up"
	default:
		e.Hint = "it is tried further"
	}
	return e
}
