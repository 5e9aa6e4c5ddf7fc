package logpeer

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// Cluster is a peer with logs.
type Cluster struct {
	*wiretest.Peer

	mu       sync.Mutex
	brokers  int
	topics   map[string]*topic
	told     map[string]message.MetadataResponseTopic // what metadata tells
	sessions map[int32]*session
	lastID   int32
	grown    chan struct{} // closed and replaced when data came or leaders moved
	// hook, if set, may answer a request instead of the cluster, or do something first and return nil.
	hook func(*wiretest.Request) message.Response
}

type topic struct {
	name  string
	id    wire.UUID
	parts []*Partition
}

// Partition is one log.
type Partition struct {
	Leader, Epoch int32
	LogStart      int64
	Preferred     int32 // replica the leader names, -1 none

	batches []batch
	epochs  []epochStart
	aborted []abortedTxn
	open    map[int64]int64 // producer id -> first offset of its open transaction
	end     int64
}

type batch struct {
	base, next int64
	maxTime    int64
	bytes      []byte
}

type abortedTxn struct{ producer, first, last int64 }

type epochStart struct {
	epoch int32
	start int64
}

// New is a cluster of brokers 1 to n. It ends with the test.
func New(t testing.TB, n int) *Cluster {
	c := &Cluster{brokers: n, told: map[string]message.MetadataResponseTopic{}, topics: map[string]*topic{}, sessions: map[int32]*session{}, grown: make(chan struct{})}
	c.Peer = wiretest.NewCluster(n, c.answer)
	if t != nil {
		t.Cleanup(c.Close)
	}
	return c
}

// Close ends the cluster; requests that wait for data are let go.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.wakeAll()
	c.mu.Unlock()
	c.Peer.Close()
}

// Hook sets a function that sees each request first; a response from it is the answer.
func (c *Cluster) Hook(f func(*wiretest.Request) message.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = f
}

func (c *Cluster) answer(r *wiretest.Request) message.Response {
	c.mu.Lock()
	hook := c.hook
	c.mu.Unlock()
	if hook != nil {
		if resp := hook(r); resp != nil {
			return resp
		}
	}
	return c.Answer(r)
}

// Answer is the cluster's own answer.
func (c *Cluster) Answer(r *wiretest.Request) message.Response {
	switch req := r.Body.(type) {
	case *message.FetchRequest:
		return c.fetch(r, req)
	case *message.ListOffsetsRequest:
		return c.listOffsets(r, req)
	case *message.OffsetForLeaderEpochRequest:
		return c.epochEnds(r, req)
	case *message.MetadataRequest:
		return c.metadata(req)
	}
	return nil
}

func (c *Cluster) wakeAll() {
	close(c.grown)
	c.grown = make(chan struct{})
}

// Topic makes a topic whose partitions 0, 1, ... have these leaders in epoch 1.
func (c *Cluster) Topic(name string, leaders ...int32) {
	t := &topic{name: name, id: wiretest.TopicID(name)}
	for _, l := range leaders {
		t.parts = append(t.parts, &Partition{Leader: l, Epoch: 1, Preferred: -1, open: map[int64]int64{}, epochs: []epochStart{{1, 0}}})
	}
	c.mu.Lock()
	c.topics[name] = t
	c.mu.Unlock()
	c.Announce(name)
}

// Change runs f on a partition under the cluster's lock; metadata does not follow, see Announce.
func (c *Cluster) Change(name string, partition int32, f func(*Partition)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.topics[name].parts[partition])
	c.wakeAll()
}

// MoveLeader makes another broker lead, in the next epoch. Metadata does not know until Announce.
func (c *Cluster) MoveLeader(name string, partition, to int32) {
	c.Change(name, partition, func(p *Partition) {
		p.Leader = to
		p.Epoch++
		p.epochs = append(p.epochs, epochStart{p.Epoch, p.end})
	})
}

// Announce makes metadata tell the leaders and epochs as they are.
func (c *Cluster) Announce(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics[name]
	m := message.MetadataResponseTopic{Name: &name, TopicId: t.id}
	for i, p := range t.parts {
		m.TopicAuthorizedOperations = math.MinInt32
		m.Partitions = append(m.Partitions, message.MetadataResponsePartition{PartitionIndex: int32(i), LeaderId: p.Leader,
			LeaderEpoch: p.Epoch, ReplicaNodes: []int32{p.Leader}, IsrNodes: []int32{p.Leader}})
	}
	c.told[name] = m
}

// metadata answers from what was announced, with all brokers, stopped ones too.
func (c *Cluster) metadata(req *message.MetadataRequest) message.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := "logpeer-cluster-0000000"
	resp := message.NewMetadataResponse()
	resp.ClusterId, resp.ControllerId = &id, 1
	for b := range c.brokers {
		resp.Brokers = append(resp.Brokers, message.MetadataResponseBroker{NodeId: int32(b + 1), Host: fmt.Sprintf("broker-%d", b+1), Port: 9092})
	}
	for _, t := range req.Topics {
		if t.Name != nil {
			resp.Topics = append(resp.Topics, c.tell(*t.Name))
			continue
		}
		unknown := message.MetadataResponseTopic{TopicId: t.TopicId, ErrorCode: int16(errcode.UnknownTopicId), TopicAuthorizedOperations: math.MinInt32}
		for name, told := range c.told {
			if told.TopicId == t.TopicId {
				unknown = c.tell(name)
			}
		}
		resp.Topics = append(resp.Topics, unknown)
	}
	if req.Topics == nil {
		for name := range c.told {
			resp.Topics = append(resp.Topics, c.tell(name))
		}
	}
	return resp
}

func (c *Cluster) tell(name string) message.MetadataResponseTopic {
	if m, ok := c.told[name]; ok {
		return m
	}
	return message.MetadataResponseTopic{Name: &name, ErrorCode: int16(errcode.UnknownTopicOrPartition), TopicAuthorizedOperations: math.MinInt32}
}

// Truncate cuts a log to end at that offset, as an unclean election may.
func (c *Cluster) Truncate(name string, partition int32, end int64) {
	c.Change(name, partition, func(p *Partition) {
		for len(p.batches) > 0 && p.batches[len(p.batches)-1].next > end {
			p.batches = p.batches[:len(p.batches)-1]
		}
		p.end = end
		kept := p.epochs[:0]
		for _, e := range p.epochs {
			if e.start < end || e.start == 0 {
				kept = append(kept, e)
			}
		}
		p.epochs = kept
	})
}

// Value is what Append writes at an offset.
func Value(name string, partition int32, n int64) []byte {
	return []byte(name + "-" + string(rune('0'+partition)) + "@" + time.UnixMilli(n).UTC().Format("150405.000"))
}

// Append writes one batch of n records with the values that Value gives, in a codec. It returns the base offset.
func (c *Cluster) Append(t testing.TB, name string, partition int32, n int, codec compress.Codec) int64 {
	return c.AppendStamped(t, name, partition, n, codec, record.NoProducer())
}

// AppendStamped is Append for an idempotent or transactional producer.
func (c *Cluster) AppendStamped(t testing.TB, name string, partition int32, n int, codec compress.Codec, s record.Stamp) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.topics[name].parts[partition]
	b := record.NewBuilder(nil)
	for i := range n {
		at := p.end + int64(i)
		b.Append(at, []byte{byte(at)}, Value(name, partition, at), nil)
	}
	var bytes []byte
	if codec == compress.None {
		bytes = b.Seal(s)
	} else {
		comp, err := compress.NewCompressor(codec, compress.DefaultLevel)
		require.NoError(t, err)
		bytes = b.SealCompressed(nil, s, comp)
	}
	if s.Transactional {
		if _, ok := p.open[s.ProducerID]; !ok {
			p.open[s.ProducerID] = p.end
		}
	}
	return c.put(p, bytes, int64(n))
}

// AppendBytes writes a batch as it is; base offset and leader epoch are set.
func (c *Cluster) AppendBytes(name string, partition int32, bytes []byte) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := record.ParseHeader(bytes)
	offsets := int64(1)
	if err == nil {
		offsets = int64(h.LastOffsetDelta) + 1
	}
	return c.put(c.topics[name].parts[partition], bytes, offsets)
}

// EndTxn writes a transaction's marker.
func (c *Cluster) EndTxn(name string, partition int32, producerID int64, commit bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.topics[name].parts[partition]
	bytes := record.AppendEndTxn(nil, record.EndTxn{Commit: commit}, 0, p.Epoch, p.end, producerID, 0)
	if first, ok := p.open[producerID]; ok && !commit {
		p.aborted = append(p.aborted, abortedTxn{producerID, first, p.end})
	}
	delete(p.open, producerID)
	c.put(p, bytes, 1)
}

func (c *Cluster) put(p *Partition, bytes []byte, offsets int64) int64 {
	base := p.end
	record.PatchBase(bytes, base, p.Epoch)
	h, _ := record.ParseHeader(bytes)
	p.batches = append(p.batches, batch{base: base, next: base + offsets, maxTime: h.MaxTimestamp, bytes: bytes})
	p.end += offsets
	c.wakeAll()
	return base
}

// End is the high watermark of a partition.
func (c *Cluster) End(name string, partition int32) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.topics[name].parts[partition].end
}

// stable is the last stable offset.
func (p *Partition) stable() int64 {
	lso := p.end
	for _, first := range p.open {
		lso = min(lso, first)
	}
	return lso
}

func (c *Cluster) find(name string, id wire.UUID) *topic {
	if name != "" {
		return c.topics[name]
	}
	for _, t := range c.topics {
		if t.id == id {
			return t
		}
	}
	return nil
}

// ReplaceTopic deletes a topic and creates another of its name.
func (c *Cluster) ReplaceTopic(name string, leaders ...int32) {
	c.Topic(name, leaders...)
	c.mu.Lock()
	t := c.topics[name]
	t.id[7]++
	c.wakeAll()
	c.mu.Unlock()
	c.Announce(name)
}
