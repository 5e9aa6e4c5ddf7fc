package consumer

import (
	"fmt"

	"github.com/ottla-kafka/ottla/consumer/machine"
)

// Seek goes on elsewhere in a partition. From inside a loop the next record of the partition comes from there; from
// another goroutine one record from before may still be handed out. What is buffered is dropped. A halted partition is
// taken up again. It does not block: a place that has to be looked up (Earliest, Latest, At) is looked up by the
// consumer's goroutine. A broker that is waiting for data when the seek comes answers that first, so the first record
// from the new place may take fetch.max.wait.ms. Under Run and Serve what was taken from the old place and is not finished is
// forgotten. For a partition that is not read the error matches ErrNotAssigned.
func (c *Consumer) Seek(tp TopicPartition, to Where) error {
	if to.IsZero() {
		return fmt.Errorf("consumer: seek %s: no place given", tp)
	}
	if err := to.ValidStart(); err != nil {
		return fmt.Errorf("consumer: seek %s: %w", tp, err)
	}
	return c.each([]TopicPartition{tp}, seekTo(to))
}

func seekTo(to Where) func(TopicPartition) machine.Event {
	return func(tp TopicPartition) machine.Event { return machine.Sought{TopicPartition: tp, To: to} }
}

// SeekToBeginning seeks to Earliest; without arguments every partition.
func (c *Consumer) SeekToBeginning(list ...TopicPartition) error {
	return c.each(c.orAll(list), seekTo(Earliest))
}

// SeekToEnd seeks to Latest; without arguments every partition.
func (c *Consumer) SeekToEnd(list ...TopicPartition) error {
	return c.each(c.orAll(list), seekTo(Latest))
}

// Pause hands out no more records of the partitions and fetches no more. Positions and what is buffered stay. From
// inside a loop it takes effect at once, from another goroutine one record may still come; what waits for handlers of Run and
// Serve they still get. If one of the partitions is not read the error matches ErrNotAssigned and nothing is changed. A partition
// that the group takes away and gives back is not paused any more.
func (c *Consumer) Pause(list ...TopicPartition) error {
	return c.each(list, func(tp TopicPartition) machine.Event { return machine.Paused{TopicPartition: tp} })
}

// Resume undoes Pause.
func (c *Consumer) Resume(list ...TopicPartition) error {
	return c.each(list, func(tp TopicPartition) machine.Event { return machine.Resumed{TopicPartition: tp} })
}

// Position is the offset of the next record of the partition that will be handed out: inside a loop over Records, the
// one behind the present record. With Run and Serve it is behind what is done without a gap. ok is false while it is not known yet, and for a partition that is not assigned.
func (c *Consumer) Position(tp TopicPartition) (p Position, ok bool) {
	if c.group != nil {
		if p, engaged := c.group.position(tp); engaged {
			return p, p.Offset >= 0
		}
	}
	p, ok = c.driver.Position(tp)
	return p, ok && p.Offset >= 0
}

// position is what is done of a partition whose records go to handlers.
func (g *group) position(tp TopicPartition) (p Position, engaged bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.claims[tp]; c != nil && c.work != nil {
		return c.done(), true
	}
	return p, false
}

// assigned lists what the group has given, by topic and partition; without a member what was added and not removed.
func (g *group) assigned() (list []TopicPartition) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.sorted() {
		if g.steered(c.TopicPartition) != nil {
			list = append(list, c.TopicPartition)
		}
	}
	return list
}

// steered is the claim that a Seek or Pause is about, nil if there is none. g.mu is held.
func (g *group) steered(tp TopicPartition) *claim {
	c := g.claims[tp]
	if g.alone != nil && c != nil && c.givenUp() {
		return g.alone.next[tp]
	}
	return c
}

// each is Consumer.each for members of a group. What is not read yet keeps the wish until it is.
func (g *group) each(list []TopicPartition, event func(TopicPartition) machine.Event) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, tp := range list {
		if g.steered(tp) == nil {
			return fmt.Errorf("consumer: %s: %w", tp, ErrNotAssigned)
		}
	}
	for _, tp := range list {
		c, ev := g.steered(tp), event(tp)
		switch ev := ev.(type) {
		case machine.Sought:
			c.start = ev.To
			if c.work != nil {
				c.work.Restart()
				g.engine.charge(c, 0)
				c.signal()
			}
		case machine.Paused:
			c.paused = true
		case machine.Resumed:
			if c.paused = false; c.throttled {
				continue // its handlers do not keep up; it goes on when they do
			}
		}
		if c.reading() {
			g.c.driver.Step(ev)
		}
	}
	return nil
}

// each steps one event for each partition, if all of them are assigned.
func (c *Consumer) each(list []TopicPartition, event func(TopicPartition) machine.Event) error {
	if c.driver.Closed() {
		return ErrClosed
	}
	if c.group != nil {
		return c.group.each(list, event)
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
	if c.group != nil {
		return c.group.assigned()
	}
	for _, p := range c.driver.Partitions() {
		list = append(list, p.TopicPartition)
	}
	return list
}
