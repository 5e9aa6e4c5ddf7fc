package consumer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
)

var errGroupAssigns = errors.New("consumer: the group assigns the partitions of a consumer that subscribes; use Subscribe")

// Add begins to read more partitions, each at its Start, or where that is unset at the offset that Group has committed, else
// at Config.Start. A partition that is read already is left as it is. It does not block.
func (c *Consumer) Add(list ...Assignment) error {
	if c.group != nil && c.group.alone == nil {
		return errGroupAssigns
	}
	for _, a := range list {
		if err := a.valid(); err != nil {
			return fmt.Errorf("consumer: %w", &client.FieldError{Key: "Assigned", Value: a.String(), Reason: err.Error()})
		}
	}
	if c.closing.Load() {
		return ErrClosed
	}
	c.add(list)
	return nil
}

// Remove stops reading partitions and forgets their positions. Records of them that were fetched and not handed out
// are dropped; called from inside the loop, none follows. It does not block.
//
// With a Group (and no subscription) what is in hand may end first, for up to DrainTimeout, and enable.auto.commit commits what
// is done; contexts of handlers that take longer end with a cause that matches ErrRevoked.
func (c *Consumer) Remove(list ...TopicPartition) error {
	if c.group != nil && c.group.alone == nil {
		return errGroupAssigns
	}
	if c.closing.Load() {
		return ErrClosed
	}
	if c.group != nil {
		c.group.alone.remove(list)
		return nil
	}
	for _, tp := range list {
		c.driver.Step(machine.Removed{TopicPartition: tp})
	}
	return nil
}

// Assign makes list all that is read: what is not in it is removed, what is new in it is added, what stays goes on
// where it is.
func (c *Consumer) Assign(list ...Assignment) error {
	if c.group != nil && c.group.alone == nil {
		return errGroupAssigns
	}
	for _, a := range list {
		if err := a.valid(); err != nil {
			return fmt.Errorf("consumer: %w", &client.FieldError{Key: "Assigned", Value: a.String(), Reason: err.Error()})
		}
	}
	gone := slices.DeleteFunc(c.orAll(nil), func(tp TopicPartition) bool {
		return slices.ContainsFunc(list, func(a Assignment) bool { return a.TopicPartition == tp })
	})
	if err := c.Remove(gone...); err != nil {
		return err
	}
	return c.Add(list...)
}

// Unassign removes all partitions.
func (c *Consumer) Unassign() error { return c.Assign() }

// PartitionState is what the consumer knows of a partition that it reads.
type PartitionState struct {
	TopicPartition
	Position      int64 // offset of the next record to hand out, -1 not known yet
	LogStart      int64 // first offset of the log when last fetched, -1 not known yet
	End           int64 // high watermark (read_committed: last stable offset) when last fetched, -1 not known yet
	Leader        int32 // broker that leads it, -1 unknown
	Paused        bool
	Halted        error // why nothing more is read until Seek, nil if it is read
	BufferedBytes int   // fetched and not handed out yet
}

// String is one line: partition, position, end, and what keeps it from being read.
func (p PartitionState) String() string {
	s := fmt.Sprintf("%s position %d end %d", p.TopicPartition, p.Position, p.End)
	if p.Paused {
		s += " paused"
	}
	if p.Halted != nil {
		s += " halted: " + p.Halted.Error()
	}
	return s
}

// Lag is how many offsets the position is behind the end; -1 while one of them is not known.
func (p PartitionState) Lag() int64 {
	if p.Position < 0 || p.End < 0 {
		return -1
	}
	return max(p.End-p.Position, 0)
}

// Partitions lists what is read, by topic and partition. It does not block.
func (c *Consumer) Partitions() []PartitionState {
	list := c.driver.Partitions()
	out := make([]PartitionState, len(list))
	for i, p := range list {
		out[i] = PartitionState{TopicPartition: p.TopicPartition, Position: p.Position.Offset, LogStart: p.Start, End: p.End,
			Leader: p.Leader, Paused: p.Paused, Halted: p.Halted, BufferedBytes: p.Buffered}
		if c.group != nil {
			if done, engaged := c.group.position(p.TopicPartition); engaged {
				out[i].Position = done.Offset
			}
		}
	}
	return out
}
