package fakebroker_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// rawClient speaks frames to a broker: the tests of this package use no client code of ours, so that a client's mistake
// cannot hide a broker's.
type rawClient struct {
	t    testing.TB
	conn net.Conn
	id   int32
}

func connect(t testing.TB, k *fakebroker.Cluster) *rawClient {
	t.Helper()
	conn, err := k.DialContext(context.Background(), "tcp", k.Addrs()[0])
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &rawClient{t: t, conn: conn}
}

// send writes one request and returns its correlation id.
func (c *rawClient) send(version int16, req message.Request) {
	c.t.Helper()
	c.id++
	client := "raw"
	b := wire.AppendRequestHeader(make([]byte, 4), req.Key(), version, c.id, &client)
	b, err := req.AppendTo(b, version)
	require.NoError(c.t, err)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	_, err = c.conn.Write(b)
	require.NoError(c.t, err)
}

// receive reads the answer to the last request into resp.
func (c *rawClient) receive(version int16, resp message.Response) {
	c.t.Helper()
	b, err := c.frame()
	require.NoError(c.t, err)
	r := wire.NewReader(b)
	id, err := wire.ReadResponseHeader(r, resp.Key(), version)
	require.NoError(c.t, err)
	require.Equal(c.t, c.id, id)
	require.NoError(c.t, resp.ReadFrom(r, version))
	require.Zero(c.t, r.Remaining(), "bytes behind the response")
}

func (c *rawClient) frame() ([]byte, error) {
	_ = c.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.conn, b)
	return b, err
}

// call sends a request and returns its answer.
func call[R message.Response](c *rawClient, version int16, req message.Request) R {
	c.t.Helper()
	c.send(version, req)
	resp := req.NewResponse()
	c.receive(version, resp)
	return resp.(R)
}

// closed requires that the broker closes the connection without another byte.
func (c *rawClient) closed() {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	n, err := c.conn.Read(make([]byte, 1))
	require.Zero(c.t, n)
	require.ErrorIs(c.t, err, io.EOF)
}

// batch makes one batch of records with the given values and key "k".
func batch(t testing.TB, values ...string) []byte {
	t.Helper()
	return sequenced(t, -1, -1, -1, values...)
}

func sequenced(t testing.TB, id int64, epoch int16, seq int32, values ...string) []byte {
	t.Helper()
	b := record.NewBuilder(nil)
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), []byte("k"), []byte(v), nil)
	}
	s := record.NoProducer()
	s.ProducerID, s.ProducerEpoch, s.BaseSequence = id, epoch, seq
	return b.Seal(s)
}

func produceRequest(topic string, partition int32, acks int16, records []byte) *message.ProduceRequest {
	return &message.ProduceRequest{Acks: acks, TimeoutMs: 5000, TopicData: []message.TopicProduceData{{
		Name: topic, PartitionData: []message.PartitionProduceData{{Index: partition, Records: records}},
	}}}
}

// produce appends one batch with acks=all and returns the partition's answer.
func produce(c *rawClient, topic string, partition int32, records []byte) message.PartitionProduceResponse {
	c.t.Helper()
	resp := call[*message.ProduceResponse](c, 12, produceRequest(topic, partition, -1, records))
	return resp.Responses[0].PartitionResponses[0]
}

// fetchRequest asks for one partition outside any session.
func fetchRequest(topic string, partition int32, offset int64) *message.FetchRequest {
	req := message.NewFetchRequest()
	req.MaxWaitMs, req.MinBytes, req.MaxBytes = 500, 1, 1<<20
	p := message.FetchRequestFetchPartition{}
	p.SetDefaults()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	req.Topics = []message.FetchRequestFetchTopic{{Topic: topic, Partitions: []message.FetchRequestFetchPartition{p}}}
	return req
}

// values takes the records of an answer apart.
func values(t testing.TB, raw []byte) []string {
	t.Helper()
	var all []string
	for len(raw) > 0 {
		b, rest, err := record.Next(raw)
		require.NoError(t, err)
		raw = rest
		it, err := record.Open(b, record.ReadOptions{})
		require.NoError(t, err)
		for r := range it.All() {
			all = append(all, string(r.Value))
		}
		require.NoError(t, it.Err())
	}
	return all
}
