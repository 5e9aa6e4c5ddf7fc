package consumer

import (
	"fmt"

	"github.com/ottla-kafka/ottla/consumer/machine"
)

// Seek goes on elsewhere in a partition. From inside a loop the next record of the partition comes from there; from
// another goroutine one record from before may still be handed out. What is buffered is dropped. A halted partition is
// taken up again. It does not block: a place that has to be looked up (Earliest, Latest, At) is looked up by the
// consumer's goroutine. A broker that is waiting for data when the seek comes answers that first, so the first record
// from the new place may take fetch.max.wait.ms.
func (c *Consumer) Seek(tp TopicPartition, to Where) error {
	if to.IsZero() {
		return fmt.Errorf("consumer: seek %s: no place given", tp)
	}
	if err := to.ValidStart(); err != nil {
		return fmt.Errorf("consumer: seek %s: %w", tp, err)
	}
	return c.each([]TopicPartition{tp}, func(tp TopicPartition) machine.Event { return machine.Sought{TopicPartition: tp, To: to} })
}

// SeekToBeginning seeks to Earliest; without arguments every partition.
func (c *Consumer) SeekToBeginning(list ...TopicPartition) error {
	return c.each(c.orAll(list), func(tp TopicPartition) machine.Event { return machine.Sought{TopicPartition: tp, To: Earliest} })
}

// SeekToEnd seeks to Latest; without arguments every partition.
func (c *Consumer) SeekToEnd(list ...TopicPartition) error {
	return c.each(c.orAll(list), func(tp TopicPartition) machine.Event { return machine.Sought{TopicPartition: tp, To: Latest} })
}

// Pause hands out no more records of the partitions and fetches no more. Positions and what is buffered stay. From
// inside a loop it takes effect at once, from another goroutine one record may still come.
func (c *Consumer) Pause(list ...TopicPartition) error {
	return c.each(list, func(tp TopicPartition) machine.Event { return machine.Paused{TopicPartition: tp} })
}

// Resume undoes Pause.
func (c *Consumer) Resume(list ...TopicPartition) error {
	return c.each(list, func(tp TopicPartition) machine.Event { return machine.Resumed{TopicPartition: tp} })
}

// Position is the offset of the next record of the partition that will be handed out: inside a loop over Records, the
// one behind the present record. ok is false while it is not known yet, and for a partition that is not assigned.
func (c *Consumer) Position(tp TopicPartition) (p Position, ok bool) {
	p, ok = c.driver.Position(tp)
	return p, ok && p.Offset >= 0
}

// each steps one event for each partition, if all of them are assigned.
func (c *Consumer) each(list []TopicPartition, event func(TopicPartition) machine.Event) error {
	if c.driver.Closed() {
		return ErrClosed
	}
	for _, tp := range list {
		if _, ok := c.driver.Position(tp); !ok {
			return fmt.Errorf("consumer: %s: %w", tp, ErrNotAssigned)
		}
	}
	for _, tp := range list {
		c.driver.Step(event(tp))
	}
	return nil
}

func (c *Consumer) orAll(list []TopicPartition) []TopicPartition {
	if len(list) > 0 {
		return list
	}
	for _, p := range c.driver.Partitions() {
		list = append(list, p.TopicPartition)
	}
	return list
}
