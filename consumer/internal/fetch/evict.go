package fetch

import "slices"

// evict drops what paused partitions have buffered, except a chunk that is half read, and lets it be fetched again
// later. It is done when memory is short: otherwise one paused partition could hold the whole budget, and the others
// would wait for it for ever. d.mu is held.
func (d *Driver) evict() {
	var paused []*Cell // all of them first: evicting one moves the queue
	for _, it := range d.queue {
		if it.cell.paused() && !slices.Contains(paused, it.cell) {
			paused = append(paused, it.cell)
		}
	}
	for _, c := range paused {
		d.evictCell(c)
	}
}

func (d *Driver) evictCell(c *Cell) {
	var first *item
	bytes, chunks := 0, 0
	for i := range d.queue {
		it := &d.queue[i]
		switch {
		case it.cell != c || it.reading != nil:
			continue
		case it.Chunk == nil:
			return // an error or a move among them: their order must stay
		case first == nil:
			first = it
		}
		bytes += len(it.Chunk.Records)
		chunks++
	}
	if first == nil || !d.machine.Rewind(c.TopicPartition, first.Generation, first.Chunk.From, bytes, chunks) {
		return
	}
	d.keepItems(func(it item) bool { return it.cell != c || it.reading != nil })
}

// keepItems drops the items of the queue that keep does not want.
func (d *Driver) keepItems(keep func(item) bool) {
	kept := d.queue[:0]
	for _, it := range d.queue {
		if keep(it) {
			kept = append(kept, it)
		} else {
			d.drop(it)
		}
	}
	clear(d.queue[len(kept):])
	d.queue = kept
}
