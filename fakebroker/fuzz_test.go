package fakebroker_test

import (
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// program turns a fuzzer's bytes into choices.
type program struct{ rest []byte }

func (p *program) next() int {
	if len(p.rest) == 0 {
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return int(b)
}

func (p *program) choose(from ...int64) int64 { return from[p.next()%len(from)] }

// one of the offsets, timestamps and ids that matter.
func (p *program) number() int64 {
	return p.choose(0, 1, 2, 3, -1, -2, -3, -4, -5, -6, -7, 100, 1<<31-1, 1<<62, -1<<63)
}

var fuzzTopics = []string{"a", "b", "gone", "", "no/topic", "__consumer_offsets"}

func (p *program) topic() string { return fuzzTopics[p.next()%len(fuzzTopics)] }

func (p *program) batch(t testing.TB) []byte {
	raw := sequenced(t, p.choose(-1, 0, 1, 1<<40), int16(p.choose(-1, 0, 1)), int32(p.choose(-1, 0, 1, 2, 1<<31-1)), "v", "w")
	switch p.next() % 8 {
	case 0: // damaged
		raw[p.next()%len(raw)] ^= byte(p.next())
	case 1: // cut
		raw = raw[:p.next()%len(raw)]
	case 2: // attributes that a client may not set, with a good checksum
		h, _ := record.ParseHeader(raw)
		h.Attributes = int16(p.next())
		h.Put(raw)
		h.CRC = record.Checksum(raw)
		h.Put(raw)
	}
	return raw
}

func (p *program) request(t testing.TB) (int16, message.Request) {
	partition := int32(p.choose(0, 0, 1, 9, -1))
	switch p.next() % 13 {
	case 0, 1:
		return 12, produceRequest(p.topic(), partition, int16(p.choose(-1, 1, 2)), p.batch(t))
	case 2, 3:
		req := fetchRequest(p.topic(), partition, p.number())
		f := &req.Topics[0].Partitions[0]
		req.MaxWaitMs, req.MinBytes, req.MaxBytes = 0, int32(p.choose(0, 1, 1<<30)), int32(p.choose(0, 1, 1<<20, -1))
		req.SessionId, req.SessionEpoch = int32(p.choose(0, 1, 5)), int32(p.choose(-1, 0, 1, 1<<31-1))
		req.IsolationLevel = int8(p.choose(0, 1))
		f.CurrentLeaderEpoch, f.LastFetchedEpoch = int32(p.choose(-1, 0, 1)), int32(p.choose(-1, 0, 7))
		f.PartitionMaxBytes = int32(p.choose(0, 1, 1<<20, -1))
		return 12, req
	case 4:
		req := message.NewListOffsetsRequest()
		req.Topics = []message.ListOffsetsTopic{{Name: p.topic(), Partitions: []message.ListOffsetsPartition{{PartitionIndex: partition, CurrentLeaderEpoch: -1, Timestamp: p.number()}}}}
		return 8, req
	case 5:
		return 2, &message.DeleteRecordsRequest{Topics: []message.DeleteRecordsTopic{{Name: p.topic(), Partitions: []message.DeleteRecordsPartition{{PartitionIndex: partition, Offset: p.number()}}}}}
	case 6:
		return 7, &message.CreateTopicsRequest{TimeoutMs: 1000, Topics: []message.CreatableTopic{{Name: p.topic(), NumPartitions: int32(p.choose(1, 2, 0, -1)), ReplicationFactor: 1}}}
	case 7:
		name := p.topic()
		return 6, &message.DeleteTopicsRequest{TimeoutMs: 1000, Topics: []message.DeleteTopicState{{Name: &name}}}
	case 8, 9, 10, 11:
		return p.transaction(partition)
	}
	name := p.topic()
	return 12, &message.MetadataRequest{Topics: []message.MetadataRequestTopic{{Name: &name}}, AllowAutoTopicCreation: p.next()%2 == 0}
}

// transaction is a request about a transaction: of the producer that there is, as a rule, or of one that is not.
func (p *program) transaction(partition int32) (int16, message.Request) {
	id := "t"
	producer, epoch := p.choose(0, 0, 0, 1, -1), int16(p.choose(0, 0, 1, 2, -1, 1<<15-1))
	switch p.next() % 6 {
	case 0:
		req := message.NewInitProducerIdRequest()
		req.TransactionalId, req.TransactionTimeoutMs = &id, int32(p.choose(1000, 0))
		return 5, req
	case 1:
		return 3, &message.AddPartitionsToTxnRequest{V3AndBelowTransactionalId: id, V3AndBelowProducerId: producer, V3AndBelowProducerEpoch: epoch,
			V3AndBelowTopics: []message.AddPartitionsToTxnTopic{{Name: p.topic(), Partitions: []int32{partition}}}}
	case 2:
		b := record.NewBuilder(nil)
		b.Append(time.Now().UnixMilli(), []byte("k"), []byte("t"), nil)
		req := produceRequest(p.topic(), partition, -1, b.Seal(record.Stamp{ProducerID: producer, ProducerEpoch: epoch, BaseSequence: int32(p.choose(0, 1, 2)), Transactional: true}))
		req.TransactionalId = &id
		return int16(p.choose(10, 11, 12)), req
	case 3:
		req := message.NewTxnOffsetCommitRequest()
		req.TransactionalId, req.GroupId, req.ProducerId, req.ProducerEpoch = id, p.topic(), producer, epoch
		req.Topics = []message.TxnOffsetCommitRequestTopic{{Name: p.topic(), Partitions: []message.TxnOffsetCommitRequestPartition{{PartitionIndex: partition, CommittedOffset: p.number()}}}}
		return int16(p.choose(3, 4, 5)), req
	case 4:
		return 2, &message.WriteTxnMarkersRequest{Markers: []message.WritableTxnMarker{{ProducerId: producer, ProducerEpoch: epoch, TransactionResult: p.next()%2 == 0,
			CoordinatorEpoch: int32(p.choose(0, 1, -1)), TransactionVersion: int8(p.choose(0, 1, 2)),
			Topics: []message.WritableTxnMarkerTopic{{Name: p.topic(), PartitionIndexes: []int32{partition, partition}}}}}}
	}
	return int16(p.choose(3, 5)), &message.EndTxnRequest{TransactionalId: id, ProducerId: producer, ProducerEpoch: epoch, Committed: p.next()%2 == 0}
}

// FuzzBrokerAPI runs a program of requests, some of them garbage, over three connections: the broker answers or closes,
// answers can be read, offsets are in order, and afterwards it still serves.
func FuzzBrokerAPI(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 9, 1, 0, 2, 0, 0, 0})
	f.Add([]byte{1, 0, 7, 0, 0, 0, 6, 0, 0, 0, 0, 0, 1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
	f.Add([]byte("a program that is only text, long enough for a few requests of several kinds"))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := fakebroker.New(fakebroker.Topic("a", 2), fakebroker.Topic("orders", 1))
		require.NoError(t, err)
		defer func() { require.NoError(t, k.Close(t.Context())) }()
		p := &program{rest: data[:min(len(data), 300)]}
		var conns [3]*rawClient
		for len(p.rest) > 0 {
			c := &conns[p.next()%3]
			if *c == nil {
				conn, err := k.DialContext(t.Context(), "tcp", k.Addrs()[0])
				require.NoError(t, err)
				defer conn.Close()
				*c = &rawClient{t: t, conn: conn}
			}
			if !step(*c, p) {
				*c = nil
			}
			for _, topic := range []string{"a", "b", "orders"} {
				if o, err := k.Offsets(topic, 0); err == nil {
					require.LessOrEqual(t, o.LogStart, o.LastStable)
					require.LessOrEqual(t, o.LastStable, o.HighWatermark)
					require.Equal(t, o.HighWatermark, o.LogEnd)
				}
			}
		}
		stillServes(t, k)
	})
}

// step runs one request and reports whether the connection is still good.
func step(c *rawClient, p *program) bool {
	if p.next()%6 == 0 { // a whole frame of the program's own bytes
		n := min(len(p.rest), 40)
		raw := append(binary.BigEndian.AppendUint32(nil, uint32(n)), p.rest[:n]...)
		p.rest = p.rest[n:]
		if _, err := c.conn.Write(raw); err != nil {
			return false
		}
		_ = c.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = c.conn.Read(make([]byte, 1))
		_ = c.conn.Close()
		return false
	}
	version, req := p.request(c.t)
	c.send(version, req)
	b, err := c.frame()
	if err != nil {
		require.ErrorIs(c.t, err, io.EOF)
		return false
	}
	r := wire.NewReader(b)
	_, err = wire.ReadResponseHeader(r, req.Key(), version)
	require.NoError(c.t, err)
	resp := req.NewResponse()
	require.NoError(c.t, resp.ReadFrom(r, version))
	require.Zero(c.t, r.Remaining())
	return true
}
