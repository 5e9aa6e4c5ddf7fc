package server

import (
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/purgatory"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/hash"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// offsetsTopic is where the group coordinators keep their state.
const offsetsTopic = "__consumer_offsets"

// coordinators are the group coordinators of this broker: it coordinates the groups of those partitions of
// __consumer_offsets that it leads.
type coordinators struct {
	b           *Broker
	groups      *coordinator.Runtime
	environment atomic.Pointer[group.Environment]
	awaiting    *purgatory.Purgatory[string] // AwaitGroup, by group id
	changes     atomic.Int64                 // counts what may have changed a group
}

func newCoordinators(b *Broker) *coordinators {
	c := &coordinators{b: b, awaiting: purgatory.New[string]()}
	c.environment.Store(&group.Environment{Image: b.Image(), Config: b.Config()})
	c.groups = coordinator.New(coordinator.Options{
		Log:    logrecord.GroupLog,
		Writer: &coordinatorLog{b: b, topic: offsetsTopic},
		Logger: b.log,
		NewShard: func(int32, int32) coordinator.Shard {
			return group.New(group.Options{Environment: *c.environment.Load(), NewUUID: b.opts.NewUUID, Bugs: b.opts.Bugs,
				Changed: func(id string) {
					c.changes.Add(1)
					c.awaiting.Check(id)
				}})
		},
	})
	return c
}

// follow tells the coordinators what a new image brings: what they go by first, then which partitions they have. It is
// called when the partitions follow the image already, and before clients are answered from it.
func (c *coordinators) follow(img *image.Image, delta *image.Delta, changes []image.TopicChange) {
	configs := false
	for _, r := range delta.Configs() {
		configs = configs || r.Type == config.GroupResource || r.Type == config.BrokerResource
	}
	if len(changes) > 0 || configs {
		e := group.Environment{Image: img, Config: c.b.Config(), Changed: changes}
		c.environment.Store(&group.Environment{Image: img, Config: e.Config})
		c.groups.SubmitAll(coordinator.Request{Body: e}, func(map[int32]coordinator.Reply) {})
	}
	for _, t := range changes {
		if t.Name() != offsetsTopic {
			continue
		}
		if t.New == nil {
			for i := range t.Old.Partitions {
				c.groups.Resign(int32(i))
			}
			continue
		}
		for _, i := range t.Partitions() {
			if p := t.New.Partition(i); p != nil && p.Leader == c.b.opts.NodeID {
				c.groups.Elect(i, p.LeaderEpoch)
			} else {
				c.groups.Resign(i)
			}
		}
	}
}

func (c *coordinators) close() {
	c.groups.Close()
	c.awaiting.Close()
}

// partitionOf is the partition that a group's coordinator leads.
func (c *coordinators) partitionOf(group string) int32 {
	n := int32(c.b.Config().Int("offsets.topic.num.partitions"))
	if t := c.b.Image().Topic(offsetsTopic); t != nil {
		n = int32(len(t.Partitions))
	}
	return hash.CoordinatorPartition(group, n)
}

// ask hands the body of a request to the coordinator of a group, and its answer to respond.
func (b *Broker) askGroup(r *Request, group string, body any, respond func(response any, code errcode.Code)) {
	client := ""
	if r.ClientID != nil {
		client = *r.ClientID
	}
	b.coordinators.groups.Submit(b.coordinators.partitionOf(group), coordinator.Request{
		Body: body, Version: r.Version, ClientID: client, ClientHost: clientHost(r.RemoteAddr),
	}, respond)
}

// clientHost names a client's host as Java prints an address. Connections in memory are from this very host.
func clientHost(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		return "/" + t.IP.String()
	}
	return "/127.0.0.1"
}

// handleByGroup passes a request about one group on as it is.
func handleByGroup(b *Broker, r *Request, group string) {
	b.askGroup(r, group, r.Body, func(response any, code errcode.Code) {
		if code != errcode.None {
			r.Respond(failedGroupResponse(r, code))
			return
		}
		r.Respond(response.(message.Response))
	})
}

// coordinatorLog is a coordinator's topic as the runtime sees it.
type coordinatorLog struct {
	b     *Broker
	topic string
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
	size := int(l.b.Config().Int("offsets.load.buffer.size"))
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
