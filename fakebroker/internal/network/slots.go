package network

import "time"

// slots is the request channel and the handler pool in one: run holds the handlers at work, queue those who wait to be
// next. A connection that finds the queue full waits too, with its frame read but the next one unread.
type slots struct {
	queue chan struct{}
	run   chan struct{}
}

func newSlots(handlers, queued int) *slots {
	return &slots{queue: make(chan struct{}, queued), run: make(chan struct{}, handlers)}
}

// acquire takes a handler slot and says how long that took; false means stop came first.
func (s *slots) acquire(stop <-chan struct{}) (time.Duration, bool) {
	select {
	case s.run <- struct{}{}:
		return 0, true
	default:
	}
	since := time.Now()
	select {
	case s.queue <- struct{}{}:
	case <-stop:
		return 0, false
	}
	defer func() { <-s.queue }()
	select {
	case s.run <- struct{}{}:
		return time.Since(since), true
	case <-stop:
		return 0, false
	}
}

func (s *slots) release() { <-s.run }
