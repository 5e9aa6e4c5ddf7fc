package fetch

import (
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/consumer/machine"
)

// Info is what is known of one partition.
type Info struct {
	machine.TopicPartition
	Position   machine.Position
	Start, End int64
	Leader     int32
	Paused     bool
	Halted     error
	Buffered   int
}

// Position is the position of a partition; ok is false if it is not read.
func (d *Driver) Position(tp machine.TopicPartition) (p machine.Position, ok bool) {
	d.mu.Lock()
	c := d.cells[tp]
	d.mu.Unlock()
	if c == nil {
		return machine.Position{Offset: -1, Epoch: -1}, false
	}
	return c.Position(), true
}

// Partitions lists what is read, by topic and partition.
func (d *Driver) Partitions() []Info {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Info, 0, len(d.cells))
	for _, c := range d.cells {
		leader, buffered := d.machine.Of(c.TopicPartition)
		out = append(out, Info{TopicPartition: c.TopicPartition, Position: c.Position(), Start: c.start, End: c.end, Leader: leader,
			Paused: c.paused(), Halted: c.err, Buffered: buffered})
	}
	slices.SortFunc(out, func(a, b Info) int {
		if n := strings.Compare(a.Topic, b.Topic); n != 0 {
			return n
		}
		return int(a.Partition) - int(b.Partition)
	})
	return out
}
