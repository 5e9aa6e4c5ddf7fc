package server

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleWriteTxnMarkers writes the markers that a transaction coordinator, or an operator, asks for. It may stand on the
// goroutine of the connection: appends wait for nothing but the disk.
func handleWriteTxnMarkers(b *Broker, r *Request) {
	b.writeTxnMarkers(r.Body.(*message.WriteTxnMarkersRequest), func(resp *message.WriteTxnMarkersResponse) { r.Respond(resp) })
}

// writeTxnMarkers ends transactions in partitions that this broker leads and calls done once, from any goroutine, when
// every marker is below the high watermark of its partition, or refused, or request.timeout.ms is over. Those for
// __consumer_offsets go through the group coordinator, which then commits the offsets or drops them.
//
// A marker is appended also where nothing is open: the coordinator may have missed an earlier answer.
func (b *Broker) writeTxnMarkers(req *message.WriteTxnMarkersRequest, done func(*message.WriteTxnMarkersResponse)) {
	w := newMarkerWrite(req)
	if w.impossible(req) {
		done(w.resp)
		return
	}
	now := time.Now()
	var waits []produceWait
	var groups []func(done func()) // markers for the group coordinators
	for i := range req.Markers {
		m := &req.Markers[i]
		for j := range m.Topics {
			name := m.Topics[j].Name
			for _, index := range m.Topics[j].PartitionIndexes {
				code := w.code(m.ProducerId, name, index)
				if name == offsetsTopic && b.table.named(name).partition(index) != nil {
					groups = append(groups, func(done func()) { b.endGroupTransaction(index, m, code, done) })
					continue
				}
				wait, refused := b.writeMarker(name, index, m, now)
				if *code = int16(refused); refused == errcode.None {
					wait.code = code
					waits = append(waits, wait)
				}
			}
		}
	}
	timeout := time.Duration(b.Config().Int("request.timeout.ms")) * time.Millisecond
	gather(len(groups)+1, func(i int, done func()) {
		if i < len(groups) {
			groups[i](done)
			return
		}
		b.awaitReplicas(waits, timeout, done)
	}, func() { done(w.resp) })
}

// writeMarker appends one marker.
func (b *Broker) writeMarker(topic string, index int32, m *message.WritableTxnMarker, now time.Time) (produceWait, errcode.Code) {
	p, code := b.leads(b.table.named(topic), index)
	if code != errcode.None {
		return produceWait{}, code
	}
	state := p.state.Load()
	if state.inSync < p.minInSync(state) {
		return produceWait{}, errcode.NotEnoughReplicas
	}
	info, err := p.log.AppendEndTxnMarker(storage.EndTxnMarker{ProducerID: m.ProducerId, ProducerEpoch: m.ProducerEpoch,
		Commit: m.TransactionResult, CoordinatorEpoch: m.CoordinatorEpoch, TransactionVersion: m.TransactionVersion}, state.leaderEpoch, now)
	if err != nil {
		b.log.Debug("marker refused", "topic", topic, "partition", index, "producer", m.ProducerId, "err", err)
		return produceWait{}, storage.CodeOf(err)
	}
	p.advance(info.Bytes)
	b.waiting.Check(p)
	return produceWait{p: p, offset: info.LastOffset + 1, epoch: state.leaderEpoch}, errcode.None
}

// endGroupTransaction has the group coordinator of a partition write a marker. A coordinator that is not ready is to the
// sender of the marker like a leader that is not.
func (b *Broker) endGroupTransaction(index int32, m *message.WritableTxnMarker, result *int16, done func()) {
	b.groups.runtime.WriteMarker(index, coordinator.Marker{ProducerID: m.ProducerId, ProducerEpoch: m.ProducerEpoch,
		Commit: m.TransactionResult, CoordinatorEpoch: m.CoordinatorEpoch, TransactionVersion: m.TransactionVersion},
		func(code errcode.Code) {
			switch code {
			case errcode.CoordinatorNotAvailable, errcode.CoordinatorLoadInProgress, errcode.NotCoordinator:
				code = errcode.NotLeaderOrFollower
			}
			*result = int16(code)
			done()
		})
}

// markerWrite is the answer in the making. Markers of one producer come together in it, and what a request names twice
// has one result.
type markerWrite struct {
	resp  *message.WriteTxnMarkersResponse
	codes map[markedPartition]*int16
}

type markedPartition struct {
	producer  int64
	topic     string
	partition int32
}

func newMarkerWrite(req *message.WriteTxnMarkersRequest) *markerWrite {
	w := &markerWrite{resp: message.NewWriteTxnMarkersResponse(), codes: make(map[markedPartition]*int16)}
	for i := range req.Markers {
		m := &req.Markers[i]
		for j := range m.Topics {
			for _, p := range m.Topics[j].PartitionIndexes {
				w.add(markedPartition{m.ProducerId, m.Topics[j].Name, p})
			}
		}
	}
	for i := range w.resp.Markers { // when no slice grows any more
		m := &w.resp.Markers[i]
		for j := range m.Topics {
			for k := range m.Topics[j].Partitions {
				p := &m.Topics[j].Partitions[k]
				w.codes[markedPartition{m.ProducerId, m.Topics[j].Name, p.PartitionIndex}] = &p.ErrorCode
			}
		}
	}
	return w
}

func (w *markerWrite) add(at markedPartition) {
	if _, again := w.codes[at]; again {
		return
	}
	w.codes[at] = nil
	var of *message.WritableTxnMarkerResult
	for i := range w.resp.Markers {
		if w.resp.Markers[i].ProducerId == at.producer {
			of = &w.resp.Markers[i]
		}
	}
	if of == nil {
		w.resp.Markers = append(w.resp.Markers, message.WritableTxnMarkerResult{ProducerId: at.producer})
		of = &w.resp.Markers[len(w.resp.Markers)-1]
	}
	result := message.WritableTxnMarkerPartitionResult{PartitionIndex: at.partition}
	for i := range of.Topics {
		if of.Topics[i].Name == at.topic {
			of.Topics[i].Partitions = append(of.Topics[i].Partitions, result)
			return
		}
	}
	of.Topics = append(of.Topics, message.WritableTxnMarkerTopicResult{Name: at.topic, Partitions: []message.WritableTxnMarkerPartitionResult{result}})
}

func (w *markerWrite) code(producer int64, topic string, partition int32) *int16 {
	return w.codes[markedPartition{producer, topic, partition}]
}

// impossible fails the whole request when no batch can be made for one of its markers, as in Apache Kafka.
func (w *markerWrite) impossible(req *message.WriteTxnMarkersRequest) bool {
	for i := range req.Markers {
		if m := &req.Markers[i]; m.ProducerId == -1 || m.ProducerEpoch == -1 {
			for _, code := range w.codes {
				*code = int16(errcode.UnknownServerError)
			}
			return true
		}
	}
	return false
}
