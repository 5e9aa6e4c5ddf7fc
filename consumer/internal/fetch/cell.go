package fetch

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire"
)

// Cell is what the reader and everybody else share about one partition. The reader looks at state after each
// record, so that a seek or a pause takes effect at the next one.
type Cell struct {
	machine.TopicPartition

	state  atomic.Uint64    // generation << 1, plus one when paused
	offset atomic.Int64     // of the next record to hand out, -1 unknown
	epoch  atomic.Int32     // leader epoch of the last record handed out, -1 unknown
	topic  [2]atomic.Uint64 // id of the topic that was read last, zero unknown
	held   atomic.Int64     // first offset that is handed out and not done, -1 none; see Hold

	// These belong to Driver.mu.
	pending int   // deliveries of this generation, queued or in the reader's hands
	end     int64 // high watermark or last stable offset, -1 unknown
	start   int64 // log start offset, -1 unknown
	err     error // why it is halted
}

func newCell(tp machine.TopicPartition) *Cell {
	c := &Cell{TopicPartition: tp, end: -1, start: -1}
	c.offset.Store(-1)
	c.epoch.Store(-1)
	c.held.Store(-1)
	return c
}

// Position is the offset of the next record to hand out, with the epoch of the last one; -1 unknown.
func (c *Cell) Position() machine.Position {
	return machine.Position{Offset: c.offset.Load(), Epoch: c.epoch.Load()}
}

func (c *Cell) setPosition(p machine.Position) {
	c.offset.Store(p.Offset)
	c.epoch.Store(p.Epoch)
}

// Hold notes that the records from that offset on are about to be handed out and not done. It comes before Took:
// whoever reads the position first and held second (Done) never takes a record for done that is in somebody's hand.
func (c *Cell) Hold(offset int64) { c.held.Store(offset) }

// Unhold notes that everything handed out is done.
func (c *Cell) Unhold() { c.held.Store(-1) }

// UnholdAt undoes Hold for a record that was not handed out after all, if it is the first one.
func (c *Cell) UnholdAt(offset int64) { c.held.CompareAndSwap(offset, -1) }

// Held tells whether something is handed out and not done.
func (c *Cell) Held() bool { return c.held.Load() >= 0 }

// Done is the position up to which everything is done; its offset is -1 when unknown.
func (c *Cell) Done() machine.Position {
	p := c.Position()
	if h := c.held.Load(); h >= 0 && h < p.Offset {
		return machine.Position{Offset: h, Epoch: -1} // the epoch of the record in front of it is not kept
	}
	return p
}

// TopicID is the id of the topic that the position was reached in; zero while nothing was read, or if the broker has none.
func (c *Cell) TopicID() (id wire.UUID) {
	binary.BigEndian.PutUint64(id[:8], c.topic[0].Load())
	binary.BigEndian.PutUint64(id[8:], c.topic[1].Load())
	return id
}

func (c *Cell) setTopic(id wire.UUID) {
	c.topic[0].Store(binary.BigEndian.Uint64(id[:8]))
	c.topic[1].Store(binary.BigEndian.Uint64(id[8:]))
}

const pausedBit = 1

// live is the state in which data of a generation may be handed out.
func live(generation uint32) uint64 { return uint64(generation) << 1 }

// void starts a new generation; Driver.mu is held, as for setPaused.
func (c *Cell) void(generation uint32) {
	c.state.Store(live(generation) | c.state.Load()&pausedBit)
	c.pending = 0
}

// leave ends a delivery; Driver.mu is held.
func (c *Cell) leave(generation uint32) {
	if !c.stale(generation) {
		c.pending--
	}
}

func (c *Cell) setPaused(on bool) {
	s := c.state.Load() &^ pausedBit
	if on {
		s |= pausedBit
	}
	c.state.Store(s)
}

func (c *Cell) paused() bool { return c.state.Load()&pausedBit != 0 }

// stale tells whether a delivery of that generation is void.
func (c *Cell) stale(generation uint32) bool { return c.state.Load()>>1 != uint64(generation) }
