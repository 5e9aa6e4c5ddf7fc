package storage

import (
	"errors"
	"math"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// EndTxnMarker is what WriteTxnMarkers asks a partition for.
type EndTxnMarker struct {
	ProducerID       int64
	ProducerEpoch    int16
	Commit           bool
	CoordinatorEpoch int32
	// TransactionVersion decides which epoch the marker must have (KIP-890).
	TransactionVersion int8
}

// appender says who appends and what is known of its transaction.
type appender struct {
	origin             Origin
	verification       Verification
	transactionVersion int8 // of markers
}

// AppendAsLeader checks record batches, gives them their offsets, leader epoch
// and, with message.timestamp.type=LogAppendTime, their time, and appends them
// in one write. The bytes are changed in place but not kept.
//
// A refusal is an *Error (see CodeOf), with the records at fault if it is
// about records; nothing has been appended then, and the info's LogStartOffset
// is what a produce answer carries beside the error. A batch that had been
// appended before is no error: see AppendInfo.Duplicate.
func (l *Log) AppendAsLeader(batches []byte, leaderEpoch int32, origin Origin, now time.Time) (AppendInfo, error) {
	return l.appendAsLeader(batches, leaderEpoch, appender{origin: origin}, now)
}

// AppendTransactional is AppendAsLeader for batches of a transaction. One that would open the transaction without having
// been verified is InvalidTxnState.
func (l *Log) AppendTransactional(batches []byte, leaderEpoch int32, origin Origin, with Verification, now time.Time) (AppendInfo, error) {
	return l.appendAsLeader(batches, leaderEpoch, appender{origin: origin, verification: with}, now)
}

func (l *Log) appendAsLeader(batches []byte, leaderEpoch int32, by appender, now time.Time) (AppendInfo, error) {
	v, err := newValidator(l, by.origin, leaderEpoch, now).run(batches)
	if err != nil {
		return l.refused(err)
	}
	var info AppendInfo
	flush := false
	err = l.write(func() error {
		if by.origin == FromRaft {
			if first := v.headers[0].BaseOffset; first != l.end {
				return refuse(errcode.InvalidRecord, "append to %s begins at offset %d, the log ends at %d", l.partition, first, l.end)
			}
		} else {
			l.assignOffsets(v, leaderEpoch)
		}
		info, err = l.appendValid(v, by, now)
		flush = l.unflushed.Load() >= l.config.Load().FlushMessages
		return err
	})
	if err == nil && flush {
		err = l.Flush(now)
	}
	if err != nil {
		return l.refused(err)
	}
	return info, nil
}

// AppendEndTxnMarker appends the marker that commits or aborts a producer's
// transaction in this partition. A marker of an old producer epoch or of an
// old coordinator is refused. One that ends nothing is appended all the same,
// as in Kafka: a coordinator that did not hear of the first sends a second.
func (l *Log) AppendEndTxnMarker(m EndTxnMarker, leaderEpoch int32, now time.Time) (AppendInfo, error) {
	marker := record.EndTxn{Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch}
	batch := record.AppendEndTxn(nil, marker, 0, leaderEpoch, millis(now), m.ProducerID, m.ProducerEpoch)
	return l.appendAsLeader(batch, leaderEpoch, appender{origin: FromCoordinator, transactionVersion: m.TransactionVersion}, now)
}

// AppendAsFollower appends batches as the leader stored them: offsets, epochs
// and times are in them. Gaps are fine, going back is not.
func (l *Log) AppendAsFollower(batches []byte, now time.Time) (AppendInfo, error) {
	v, err := storedBatches(batches, l.partition)
	if err != nil {
		return l.refused(err)
	}
	var info AppendInfo
	err = l.write(func() error {
		if first := v.headers[0].BaseOffset; first < l.end {
			return refuse(errcode.OffsetOutOfRange, "append to %s begins at offset %d, the log ends at %d", l.partition, first, l.end)
		}
		info, err = l.appendValid(v, appender{origin: fromLeader}, now)
		return err
	})
	if err != nil {
		return l.refused(err)
	}
	return info, nil
}

// fromLeader is the origin of what a follower fetched: nothing is refused.
const fromLeader Origin = math.MaxUint8

// storedBatches splits what a leader sent; a batch cut off at the end is dropped.
func storedBatches(batches []byte, p TopicPartition) (*validated, error) {
	v := &validated{maxTimestamp: noTimestamp, logAppendTime: noTimestamp}
	last := int64(-1)
	rest := batches
	for {
		batch, next, err := record.Next(rest)
		if errors.Is(err, record.ErrPartial) {
			break
		}
		if err == nil {
			err = record.Validate(batch)
		}
		var h record.BatchHeader
		if err == nil {
			h, err = record.ParseHeader(batch)
		}
		if err != nil {
			return nil, &Error{Code: errcode.CorruptMessage, Message: "append to " + p.String(), Err: err}
		}
		if h.BaseOffset <= last || h.LastOffsetDelta < 0 {
			return nil, refuse(errcode.CorruptMessage, "append to %s: offsets %d to %d after %d", p, h.BaseOffset, h.LastOffset(), last)
		}
		last, rest = h.LastOffset(), next
		v.headers = append(v.headers, h)
		v.records += h.Count
		v.maxTimestamp = max(v.maxTimestamp, h.MaxTimestamp)
	}
	if len(v.headers) == 0 {
		return nil, refuse(errcode.CorruptMessage, "append to %s without a record batch", p)
	}
	v.data = batches[:len(batches)-len(rest)]
	return v, nil
}

// refused says which log start goes with an error, as Kafka's ReplicaManager
// decides it: none if the request as a whole was at fault, or the disk.
func (l *Log) refused(err error) (AppendInfo, error) {
	info := AppendInfo{FirstOffset: noOffset, LastOffset: noOffset, LogAppendTime: noTimestamp, LogStartOffset: noOffset,
		LeaderEpoch: noEpoch, MaxTimestamp: noTimestamp}
	switch CodeOf(err) {
	case errcode.MessageTooLarge, errcode.RecordListTooLarge, errcode.CorruptMessage, errcode.KafkaStorageError, errcode.UnknownTopicOrPartition:
	default:
		info.LogStartOffset = l.LogStartOffset()
	}
	return info, err
}

// assignOffsets stamps offsets and epoch, which lie outside the checksum.
func (l *Log) assignOffsets(v *validated, leaderEpoch int32) {
	offset, at := l.end, 0
	for i := range v.headers {
		h := &v.headers[i]
		record.PatchBase(v.data[at:], offset, leaderEpoch)
		h.BaseOffset, h.PartitionLeaderEpoch = offset, leaderEpoch
		offset = h.NextOffset()
		at += h.Size()
	}
}

// appendValid is the one place where a log grows. The writing slot is held.
func (l *Log) appendValid(v *validated, by appender, now time.Time) (AppendInfo, error) {
	markers, duplicate, err := l.checkProducers(v, by)
	if err != nil {
		return AppendInfo{}, err
	}
	info := AppendInfo{
		FirstOffset: v.headers[0].BaseOffset, LastOffset: v.headers[len(v.headers)-1].LastOffset(),
		LogAppendTime: v.logAppendTime, LogStartOffset: l.LogStartOffset(),
		LeaderEpoch: v.headers[len(v.headers)-1].PartitionLeaderEpoch,
		Records:     v.records, Bytes: len(v.data), MaxTimestamp: v.maxTimestamp,
	}
	if duplicate != nil {
		if info.LastOffset = duplicate.lastOff; !l.bugs.Has(bug.DuplicateWrongOffset) {
			info.FirstOffset = duplicate.firstOffset()
		}
		info.LogAppendTime, info.Duplicate = duplicate.timestamp, true
		return info, nil
	}
	cfg := l.config.Load()
	if err := l.rollIfDue(v, cfg, now); err != nil {
		return AppendInfo{}, l.fail("roll", err)
	}
	active := l.active()
	if len(markers) > 0 && l.bugs.Has(bug.MarkerAsData) {
		makeData(v.data)
	}
	size, err := active.append(v.data, v.headers, cfg.IndexIntervalBytes)
	if err != nil {
		return AppendInfo{}, l.fail("append", err)
	}
	l.unflushed.Add(int64(v.records))
	l.taken(v, markers, active, size)
	return info, nil
}

// checkProducers asks the producer state about every batch. markers holds,
// for each control batch that ends a transaction, what its record says.
func (l *Log) checkProducers(v *validated, by appender) (markers []record.EndTxn, duplicate *batchMark, err error) {
	at := 0
	for i := range v.headers {
		h := &v.headers[i]
		batch := v.data[at : at+h.Size()]
		at += h.Size()
		if !h.HasProducer() {
			continue
		}
		if h.Control() {
			m, err := readMarker(batch)
			if err != nil {
				return nil, nil, &Error{Code: errcode.InvalidRecord, Message: "marker for " + l.partition.String(), Err: err}
			}
			if by.origin != fromLeader {
				if err := l.producers.checkMarker(h, m.CoordinatorEpoch, by.transactionVersion); err != nil {
					return nil, nil, err
				}
			}
			markers = append(markers, m)
			continue
		}
		if by.origin == fromLeader {
			continue
		}
		if duplicate, err = l.checkProducer(h, by); err != nil || duplicate != nil {
			return nil, duplicate, err
		}
	}
	return markers, nil, nil
}

// checkProducer asks about a data batch. Verifications begin outside of the writing slot, so the mutex guards them; most
// batches have nothing to do with them.
func (l *Log) checkProducer(h *record.BatchHeader, by appender) (*batchMark, error) {
	if h.Transactional() || l.verifying.Load() > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	return l.producers.check(h, by.origin, by.verification)
}

// readMarker reads the transaction marker in a control batch.
func readMarker(batch []byte) (record.EndTxn, error) {
	it, err := record.Open(batch, record.ReadOptions{SkipCRC: true})
	if err != nil {
		return record.EndTxn{}, err
	}
	r, ok := it.Next()
	if !ok {
		return record.EndTxn{}, errors.Join(it.Err(), errors.New("the control batch is empty"))
	}
	return record.ParseEndTxn(r.Key, r.Value)
}

// taken brings all state up to date after batches have been written, and
// makes them visible.
func (l *Log) taken(v *validated, markers []record.EndTxn, active *segment, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range v.headers {
		h := &v.headers[i]
		if l.epochs.assign(h.PartitionLeaderEpoch, h.BaseOffset) {
			l.epochsDirty = true
		}
		if h.Control() && h.HasProducer() {
			l.endTransaction(active, h, markers[0])
			markers = markers[1:]
		} else if !h.Control() {
			l.producers.update(h)
		}
		l.producers.mapEnd = h.NextOffset()
		l.producers.written += int64(h.Size())
	}
	l.end = v.headers[len(v.headers)-1].NextOffset()
	active.size.Store(size)
	l.noteUnstable()
	l.noteVerifying()
}

// endTransaction takes a marker and, if it aborts something, notes it in the
// transaction index of the segment that the marker is in.
func (l *Log) endTransaction(s *segment, h *record.BatchHeader, m record.EndTxn) {
	done, ok := l.producers.updateMarker(h, m, h.MaxTimestamp)
	if !ok || !done.aborted {
		return
	}
	if x := s.idx.Load(); x != nil { // append has loaded it
		x.addTxn(TxnEntry{ProducerID: done.producer, FirstOffset: done.first, LastOffset: done.last, LastStableOffset: l.producers.stableAfter(done)})
	}
}
