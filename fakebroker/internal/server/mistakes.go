package server

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/message"
)

// What does not fit into a line of the mistakes that tests have the broker make; see package bug.

// mistake leaves the last partition out of an order to write markers, or aborts in it what is committed elsewhere.
func (s *markerSender) mistake(o *markerOrder, parts *[]transaction.TopicPartition) {
	n := len(*parts) - 1
	if s.b.opts.Bugs == 0 || n < 1 {
		return
	}
	last := (*parts)[n]
	switch {
	case s.b.opts.Bugs.Has(bug.MarkerMissing):
	case s.b.opts.Bugs.Has(bug.MarkerAbortsOne) && o.Commit:
		s.writeMistaken(o, false, last)
	default:
		return
	}
	*parts = (*parts)[:n]
}

// mistakenPause lets a while pass between the decision and the markers, for the mistakes that show when the broker ends
// in between.
func (s *markerSender) mistakenPause(o *markerOrder) {
	bugs := s.b.opts.Bugs
	if !bugs.Has(bug.PrepareNotPersisted) && !bugs.Has(bug.PrepareForgottenOnLoad) && !bugs.Has(bug.AbortOnLoad) {
		return
	}
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.cancel:
	case <-s.stop:
	}
}

// mistakenAgain writes the markers of an order once more when the producer is at its next transaction.
func (s *markerSender) mistakenAgain(o *markerOrder) {
	if !s.b.opts.Bugs.Has(bug.MarkerTwice) {
		return
	}
	timer := time.NewTimer(300 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.writeMistaken(o, o.Commit, o.Partitions...)
	case <-o.cancel:
	case <-s.stop:
	}
}

// writeMistaken writes markers and does not look whether that works.
func (s *markerSender) writeMistaken(o *markerOrder, commit bool, parts ...transaction.TopicPartition) {
	marker := message.WritableTxnMarker{ProducerId: o.Producer.ID, ProducerEpoch: o.Producer.Epoch, TransactionResult: commit,
		CoordinatorEpoch: o.CoordinatorEpoch, TransactionVersion: int8(o.Version)}
	for _, p := range parts {
		addMarkerPartition(&marker, p)
	}
	s.writer.writeTxnMarkers(&message.WriteTxnMarkersRequest{Markers: []message.WritableTxnMarker{marker}}, func(*message.WriteTxnMarkersResponse) {})
}
