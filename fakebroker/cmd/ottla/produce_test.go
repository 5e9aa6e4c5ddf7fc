package main

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// produce writes values to partition 0 with a bare connection, so that what serve does is not seen through the client, and returns
// the offset of the first.
func produce(t *testing.T, addr, topic string, values ...string) int64 {
	t.Helper()
	b := record.NewBuilder(nil)
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), nil, []byte(v), nil)
	}
	req := message.NewProduceRequest()
	req.Acks, req.TimeoutMs = -1, 5000
	req.TopicData = []message.TopicProduceData{{Name: topic, PartitionData: []message.PartitionProduceData{
		{Index: 0, Records: b.Seal(record.NoProducer())}}}}
	const version = 12
	frame, err := req.AppendTo(wire.AppendRequestHeader(make([]byte, 4), req.Key(), version, 1, nil), version)
	require.NoError(t, err)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))

	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = conn.Write(frame)
	require.NoError(t, err)
	size := make([]byte, 4)
	_, err = io.ReadFull(conn, size)
	require.NoError(t, err)
	answer := make([]byte, binary.BigEndian.Uint32(size))
	_, err = io.ReadFull(conn, answer)
	require.NoError(t, err)

	r := wire.NewReader(answer)
	_, err = wire.ReadResponseHeader(r, req.Key(), version)
	require.NoError(t, err)
	resp := req.NewResponse().(*message.ProduceResponse)
	require.NoError(t, resp.ReadFrom(r, version))
	partition := resp.Responses[0].PartitionResponses[0]
	require.Zero(t, partition.ErrorCode)
	return partition.BaseOffset
}
