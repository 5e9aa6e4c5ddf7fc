package server

import "time"

// upkeepMax bounds how long upkeep sleeps: a clock that jumps is noticed by then.
const upkeepMax = time.Minute

// keepUp runs the storage manager's periodic work (retention, flushes, checkpoints, removal of files) on a goroutine of
// its own, from Open to Close. It may work on the disk for long; nobody waits for it.
func (b *Broker) keepUp() {
	defer b.background.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-b.upkeep:
		case <-timer.C:
			b.storage.Tick(time.Now())
		}
		wait := upkeepMax
		if due := b.storage.Deadline(); !due.IsZero() {
			wait = min(wait, max(0, time.Until(due)))
		}
		timer.Reset(wait)
	}
}

// kickUpkeep has the deadline looked at again; it never blocks.
func (b *Broker) kickUpkeep() {
	select {
	case b.upkeep <- struct{}{}:
	default:
	}
}
