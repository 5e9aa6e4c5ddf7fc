package history

import (
	"fmt"
	"strings"
	"time"
)

// A Kind says what an operation was.
type Kind uint8

// The kinds of operations.
const (
	Send          Kind = iota // a record was handed to a producer
	Begin                     // a transaction began
	Commit                    // a transaction was to be committed
	Abort                     // a transaction was to be aborted
	Poll                      // records were handed out by a consumer
	Processed                 // a record was worked on for a group
	CommitOffsets             // offsets of a group were to be committed
	FetchOffsets              // committed offsets of a group were seen
	ResetOffsets              // somebody put a group's offsets elsewhere on purpose
	Assigned                  // a process was told that partitions are its own
	Revoked                   // a process gave partitions up in good order
	Lost                      // a process heard that partitions are no longer its own
	Moved                     // a process put its own position elsewhere: seek, rewind
	Crashed                   // a process ended without a word
)

var kindNames = [...]string{"send", "begin", "commit", "abort", "poll", "processed", "commit offsets", "fetch offsets", "reset offsets",
	"assigned", "revoked", "lost", "moved", "crashed"}

// String is the kind in words.
func (k Kind) String() string { return kindNames[k] }

// An Outcome says how an operation ended, as far as its process knows.
type Outcome uint8

// The outcomes. The difference between Fail and Info decides what a checker may conclude: an operation that failed has had
// no effect and never will; of one with Info, or one that never ended, nobody knows.
const (
	Pending Outcome = iota // not ended, or its process never heard
	OK                     // done
	Fail                   // certainly not done
	Info                   // done or not
)

var outcomeNames = [...]string{"pending", "ok", "fail", "info"}

// String is the outcome in one word.
func (o Outcome) String() string { return outcomeNames[o] }

// A TopicPartition names one partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is topic-partition.
func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// Unknown is the offset or partition that nobody said.
const Unknown = -1

// A Read is one record that a consumer handed out.
type Read struct {
	TopicPartition
	Offset int64
	Value  string
}

// An Offset is a partition's offset in CommitOffsets, FetchOffsets, ResetOffsets, Assigned and Moved.
type Offset struct {
	TopicPartition
	Offset int64
}

// An Op is one operation as it stands in the log. Which fields mean something depends on its Kind.
type Op struct {
	Index              int // its number in the log, in the order of invocations
	Process            string
	Kind               Kind
	Outcome            Outcome
	Invoked, Completed time.Time
	Txn                int    // the transaction it is part of, numbered by the log; 0 for none
	Group              string // groups: which
	// Of Send and Processed. A Send that has no acknowledgement has partition and offset Unknown.
	Topic     string
	Partition int32
	Offset    int64
	Value     string
	Level     Level    // Poll: the isolation level
	Reads     []Read   // Poll
	Offsets   []Offset // the kinds that are about several partitions
	Err       string   // why it was Fail or Info

	// The log's own clock counts invocations and completions, so that two of the same instant have an order.
	invoked, completed int
}

func (o *Op) tp() TopicPartition { return TopicPartition{o.Topic, o.Partition} }

// String is the operation in one line.
func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%4d %s %s %s", o.Index, o.Invoked.Format("15:04:05.000"), o.Process, o.Kind)
	if o.Txn != 0 {
		fmt.Fprintf(&b, " T%d", o.Txn)
	}
	if o.Group != "" {
		fmt.Fprintf(&b, " group %s", o.Group)
	}
	switch o.Kind {
	case Send, Processed:
		fmt.Fprintf(&b, " %s", place(o.Topic, o.Partition, o.Offset))
		if o.Kind == Send {
			fmt.Fprintf(&b, " %q", o.Value)
		}
	case Poll:
		fmt.Fprintf(&b, " %s", o.Level)
		for i, r := range o.Reads {
			if i == 8 {
				fmt.Fprintf(&b, " and %d more", len(o.Reads)-i)
				break
			}
			fmt.Fprintf(&b, " %s=%q", place(r.Topic, r.Partition, r.Offset), r.Value)
		}
	default:
		for i, p := range o.Offsets {
			if i == 8 {
				fmt.Fprintf(&b, " and %d more", len(o.Offsets)-i)
				break
			}
			fmt.Fprintf(&b, " %s", place(p.Topic, p.Partition, p.Offset))
		}
	}
	if o.Outcome != OK || o.Kind == Commit || o.Kind == Abort || o.Kind == Send {
		fmt.Fprintf(&b, " %s", o.Outcome)
	}
	if o.Err != "" {
		fmt.Fprintf(&b, " (%s)", o.Err)
	}
	return b.String()
}

// place is topic-partition@offset, without what is not known.
func place(topic string, partition int32, offset int64) string {
	switch {
	case partition < 0:
		return topic
	case offset < 0:
		return fmt.Sprintf("%s-%d", topic, partition)
	}
	return fmt.Sprintf("%s-%d@%d", topic, partition, offset)
}
