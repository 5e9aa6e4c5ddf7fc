package server

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// coordinatorLog is a coordinator's topic as the runtime sees it.
type coordinatorLog struct {
	b          *Broker
	topic      string
	bufferSize string // the config of how much is read at a time when it is loaded
}

// Append implements coordinator.Writer.
func (l *coordinatorLog) Append(index, epoch int32, batch []byte, guard uint64, now time.Time) (next, highWatermark int64, err error) {
	return l.append(index, epoch, func(log *storage.Log) (storage.AppendInfo, error) {
		if !isTransactional(batch) {
			return log.AppendAsLeader(batch, epoch, storage.FromCoordinator, now)
		}
		return log.AppendTransactional(batch, epoch, storage.FromCoordinator, storage.Verification{Required: l.b.verifiesTransactions(), Guard: guard}, now)
	})
}

// AppendMarker implements coordinator.Writer.
func (l *coordinatorLog) AppendMarker(index, epoch int32, m coordinator.Marker, now time.Time) (next, highWatermark int64, err error) {
	return l.append(index, epoch, func(log *storage.Log) (storage.AppendInfo, error) {
		return log.AppendEndTxnMarker(storage.EndTxnMarker{ProducerID: m.ProducerID, ProducerEpoch: m.ProducerEpoch,
			Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch, TransactionVersion: m.TransactionVersion}, epoch, now)
	})
}

func (l *coordinatorLog) append(index, epoch int32, write func(*storage.Log) (storage.AppendInfo, error)) (next, highWatermark int64, err error) {
	p, err := l.led(index, epoch)
	if err != nil {
		return 0, 0, err
	}
	state := p.state.Load()
	if state.inSync < p.minInSync(state) {
		return 0, 0, fmt.Errorf("append to %s-%d with %d replicas in sync: %w", l.topic, index, state.inSync, errcode.NotEnoughReplicas)
	}
	info, err := write(p.log)
	if err != nil {
		return 0, 0, fmt.Errorf("append to %s-%d: %w: %w", l.topic, index, storage.CodeOf(err), err)
	}
	p.advance(info.Bytes)
	l.b.waiting.Check(p)
	return info.LastOffset + 1, p.log.HighWatermark(), nil
}

// led returns the partition if this broker leads it in an epoch.
func (l *coordinatorLog) led(index, epoch int32) (*partition, error) {
	p, code := l.b.leads(l.b.table.named(l.topic), index)
	if code != errcode.None {
		return nil, fmt.Errorf("coordinator of %s-%d: %w", l.topic, index, code)
	}
	if current := p.state.Load().leaderEpoch; current != epoch {
		return nil, fmt.Errorf("coordinator of %s-%d has epoch %d, the leader %d: %w", l.topic, index, epoch, current, errcode.NotLeaderOrFollower)
	}
	return p, nil
}

// Size implements coordinator.Writer.
func (l *coordinatorLog) Size(index int32) int64 {
	if log, ok := l.b.Log(l.topic, index); ok {
		return log.Size()
	}
	return 0
}

// Load implements coordinator.Writer.
func (l *coordinatorLog) Load(index, epoch int32, f func(batch []byte) error) (end, highWatermark int64, err error) {
	p, err := l.led(index, epoch)
	if err != nil {
		return 0, 0, err
	}
	size := int(l.b.Config().Int(l.bufferSize))
	var buf []byte
	for next := p.log.LogStartOffset(); ; {
		data, err := p.log.Read(next, size, storage.BoundLogEnd, true)
		if err != nil {
			return 0, 0, fmt.Errorf("load %s-%d at %d: %w", l.topic, index, next, err)
		}
		if data.Records.Len == 0 {
			return p.log.LogEndOffset(), p.log.HighWatermark(), nil
		}
		buf, err = data.Records.AppendTo(buf[:0])
		data.Records.Release()
		for rest := buf; err == nil && len(rest) > 0; {
			var batch []byte
			if batch, rest, err = record.Next(rest); err == nil {
				err = f(batch)
			} else if len(batch) == 0 && len(rest) == 0 {
				break
			}
		}
		if err != nil {
			return 0, 0, fmt.Errorf("load %s-%d at %d: %w", l.topic, index, next, err)
		}
		next = data.NextOffset
	}
}
