package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// A markerWriter writes end markers to partitions that this broker leads. done runs exactly once, from any goroutine.
// Markers for other brokers will go over a channel of their own behind the same interface.
type markerWriter interface {
	writeTxnMarkers(req *message.WriteTxnMarkersRequest, done func(*message.WriteTxnMarkersResponse))
}

// Pauses between attempts to write markers that could not be written: they grow from the first to the last.
const (
	firstMarkerPause = 20 * time.Millisecond
	lastMarkerPause  = time.Second
)

// A markerSender carries out the orders of the transaction coordinators: it writes the markers of each decided
// transaction to all its partitions, as often as it takes, and reports when all are there. The decision is in the log, so
// there is no other way out: a partition is given up only when it does not exist any more, and an order only when the
// coordinator has resigned or a newer one has been there. What passes for a newer one may be a marker that an operator has
// written with too high an epoch: then the transaction stays prepared until the coordinator is elected anew, as in Apache
// Kafka.
//
// Partitions that wait for a leader are tried again when the metadata change, and after a pause.
type markerSender struct {
	b      *Broker
	t      *transactions
	writer markerWriter
	// image is the metadata of which a partition that is missing was deleted. It is newer than Broker.Image while a new image
	// is taken over: a coordinator that is elected by it may have loaded, and give its orders, before handlers see it.
	image atomic.Pointer[image.Image]

	mu     sync.Mutex
	orders map[string]*markerOrder // in the works, by transactional id
	closed bool
	work   sync.WaitGroup
	again  chan struct{} // closed and replaced by follow
	stop   chan struct{}
}

// A markerOrder is one transaction on its way to complete.
type markerOrder struct {
	transaction.Markers
	partition int32 // of the coordinator's log
	cancel    chan struct{}
	cancelled sync.Once
	ended     chan struct{} // closed when its goroutine ends
	// after is the order that this one takes the place of, if there is one: the coordinator has been loaded again. No marker
	// of that one may be written later than those of this one, for the next transaction follows those; and its report comes
	// to nothing (Incarnation).
	after *markerOrder
}

func (o *markerOrder) stop() { o.cancelled.Do(func() { close(o.cancel) }) }

func newMarkerSender(b *Broker, t *transactions) *markerSender {
	s := &markerSender{b: b, t: t, writer: b, orders: make(map[string]*markerOrder), again: make(chan struct{}), stop: make(chan struct{})}
	s.image.Store(b.Image())
	return s
}

// send takes an order of the coordinator of a partition and returns at once. Its goroutine ends with the order, or with drop or close.
func (s *markerSender) send(partition int32, m transaction.Markers) {
	o := &markerOrder{Markers: m, partition: partition, cancel: make(chan struct{}), ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if o.after = s.orders[m.ID]; o.after != nil {
		o.after.stop()
	}
	s.orders[m.ID] = o
	s.work.Add(1)
	go s.carryOut(o)
}

// know takes a new image, before the coordinators follow it and when the partitions have.
func (s *markerSender) know(img *image.Image) { s.image.Store(img) }

// follow has waiting orders try again: leaders may have moved, topics gone.
func (s *markerSender) follow(changes []image.TopicChange) {
	if len(changes) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.again)
	s.again = make(chan struct{})
}

// drop ends the orders of a coordinator that has resigned; the next one gives them anew.
func (s *markerSender) drop(partition int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		if o.partition == partition {
			o.stop()
		}
	}
}

// close ends all orders and returns when their goroutines have ended.
func (s *markerSender) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.work.Wait()
}

// carryOut works on one order until it is done.
func (s *markerSender) carryOut(o *markerOrder) {
	defer s.work.Done()
	defer close(o.ended)
	defer s.forget(o)
	if o.after != nil {
		<-o.after.ended
		o.after = nil
	}
	left := o.Partitions
	s.mistakenPause(o)
	for pause := firstMarkerPause; ; pause = min(2*pause, lastMarkerPause) {
		s.mu.Lock()
		again := s.again // before looking at the image, so that no change is missed
		s.mu.Unlock()
		var fenced bool
		if left, fenced = s.write(o, left); fenced {
			return
		}
		if len(left) == 0 && s.report(o) {
			s.forget(o)
			s.mistakenAgain(o)
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-again:
		case <-o.cancel:
			timer.Stop()
			return
		case <-s.stop:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// forget takes an order off the list.
func (s *markerSender) forget(o *markerOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders[o.ID] == o {
		delete(s.orders, o.ID)
	}
}

// write tries to write the markers of some partitions and returns those that still need theirs. fenced says that another
// coordinator has taken over.
func (s *markerSender) write(o *markerOrder, parts []transaction.TopicPartition) (left []transaction.TopicPartition, fenced bool) {
	marker := message.WritableTxnMarker{ProducerId: o.Producer.ID, ProducerEpoch: o.Producer.Epoch, TransactionResult: o.Commit,
		CoordinatorEpoch: o.CoordinatorEpoch, TransactionVersion: int8(o.Version)}
	img := s.image.Load()
	s.mistake(o, &parts)
	for _, p := range parts {
		switch leader, exists := leaderOf(img, p); {
		case !exists: // the topic was deleted, and its part of the transaction with it
		case leader != s.b.opts.NodeID:
			left = append(left, p)
		default:
			addMarkerPartition(&marker, p)
		}
	}
	if len(marker.Topics) == 0 {
		return left, false
	}
	written := make(chan *message.WriteTxnMarkersResponse, 1)
	s.writer.writeTxnMarkers(&message.WriteTxnMarkersRequest{Markers: []message.WritableTxnMarker{marker}},
		func(resp *message.WriteTxnMarkersResponse) { written <- resp })
	select {
	case resp := <-written:
		return s.judge(o, left, resp)
	case <-o.cancel:
	case <-s.stop:
	}
	return parts, false
}

func leaderOf(img *image.Image, p transaction.TopicPartition) (leader int32, exists bool) {
	if t := img.Topic(p.Topic); t != nil {
		if part := t.Partition(p.Partition); part != nil {
			return part.Leader, true
		}
	}
	return image.NoLeader, false
}

// addMarkerPartition adds a partition; those of one topic come together.
func addMarkerPartition(m *message.WritableTxnMarker, p transaction.TopicPartition) {
	if n := len(m.Topics); n == 0 || m.Topics[n-1].Name != p.Topic {
		m.Topics = append(m.Topics, message.WritableTxnMarkerTopic{Name: p.Topic})
	}
	last := &m.Topics[len(m.Topics)-1]
	last.PartitionIndexes = append(last.PartitionIndexes, p.Partition)
}

// judge sorts the partitions of an answer into those that are done and those that come again.
func (s *markerSender) judge(o *markerOrder, left []transaction.TopicPartition, resp *message.WriteTxnMarkersResponse) (_ []transaction.TopicPartition, fenced bool) {
	for i := range resp.Markers {
		for j := range resp.Markers[i].Topics {
			t := &resp.Markers[i].Topics[j]
			for _, p := range t.Partitions {
				switch code := errcode.Code(p.ErrorCode); code {
				case errcode.None, errcode.UnsupportedVersion, errcode.UnsupportedForMessageFormat:
				case errcode.InvalidProducerEpoch, errcode.TransactionCoordinatorFenced:
					s.b.log.Warn("transaction is not ended by this coordinator: a newer epoch was there", "id", o.ID,
						"producer", o.Producer.ID, "epoch", o.Producer.Epoch, "topic", t.Name, "partition", p.PartitionIndex, "code", code.Name())
					fenced = true
				default:
					s.b.log.Debug("end marker comes again", "id", o.ID, "topic", t.Name, "partition", p.PartitionIndex, "code", code.Name())
					left = append(left, transaction.TopicPartition{Topic: t.Name, Partition: p.PartitionIndex})
				}
			}
		}
	}
	return left, fenced
}

// report tells the coordinator that all markers are there, and returns whether it has taken note, or has gone.
func (s *markerSender) report(o *markerOrder) bool {
	done := make(chan errcode.Code, 1)
	s.t.runtime.Submit(o.partition, coordinator.Request{Body: o.Written()}, func(_ any, code errcode.Code) { done <- code })
	select {
	case code := <-done:
		switch code {
		case errcode.None, errcode.NotCoordinator, errcode.CoordinatorLoadInProgress:
			return true
		}
		s.b.log.Warn("the end of a transaction was not noted; it will be", "id", o.ID, "code", code.Name())
		return false
	case <-o.cancel:
	case <-s.stop:
	}
	return true
}
