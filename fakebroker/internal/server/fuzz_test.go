package server

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// fuzzed lists the APIs that the targets here choose from, in an order that stays.
func fuzzed() []wire.Key {
	keys := make([]wire.Key, 0, len(handlers))
	for k := range handlers {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// seedBodies hands out a request of every API in its lowest and highest version, with a name in every place for one.
func seedBodies(f *testing.F, add func(api, version byte, body []byte)) {
	for i, k := range fuzzed() {
		low, high, _ := wire.BrokerVersions(k)
		for _, version := range []int16{max(low, 3), high} {
			if !served(k, version) {
				continue
			}
			req := message.NewRequest(k)
			fill(reflect.ValueOf(req).Elem(), 0)
			if body, err := req.AppendTo(nil, version); err == nil {
				add(byte(i), byte(version), body)
			}
		}
	}
}

// FuzzHandlers gives any served API any body, over a broker where the name of the seeds is a topic with records, a group
// with offsets and a transactional id with an open transaction. Time is virtual: what waits is waited for. The broker
// answers with what a client can read, or closes; then it still serves.
func FuzzHandlers(f *testing.F) {
	seedBodies(f, func(api, version byte, body []byte) { f.Add(api, version, body) })
	f.Fuzz(func(t *testing.T, api, version byte, body []byte) {
		synctest.Test(t, func(t *testing.T) {
			b, conn := openBroker(t, vfs.NewMem(), map[string]string{"offsets.topic.num.partitions": "1", "offsets.topic.replication.factor": "1",
				"transaction.state.log.num.partitions": "1", "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"})
			t.Cleanup(func() { require.NoError(t, b.Close()) })
			a := &admin{t: t, broker: b, conn: conn}
			a.furnish("some-name")
			dial := func() net.Conn {
				c, err := b.opts.Listeners[0].Listener.(*network.MemoryListener).Dial(t.Context())
				require.NoError(t, err)
				return c
			}
			hostile := dial()
			keys := fuzzed()
			k := keys[int(api)%len(keys)]
			low, high, _ := wire.BrokerVersions(k)
			exchange(t, hostile, k, low+int16(version)%(high-low+1), body)
			require.NoError(t, hostile.Close())
			require.NoError(t, conn.Close())
			a.conn = dial() // the first may have been idle for too long
			require.NotEmpty(t, ask[*message.MetadataResponse](a, 12, message.NewMetadataRequest()).Brokers)
		})
	})
}

// FuzzLogin gives a listener that wants a login any three frames: without the password nothing behind it answers.
func FuzzLogin(f *testing.F) {
	frame := func(version int16, req message.Request) []byte {
		b, err := req.AppendTo(wire.AppendRequestHeader(nil, req.Key(), version, 1, nil), version)
		require.NoError(f, err)
		return b
	}
	shake, good, bad := &message.SaslHandshakeRequest{Mechanism: "PLAIN"}, []byte("\x00alice\x00secret"), []byte("\x00alice\x00sesame")
	versions := frame(3, &message.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1"})
	f.Add(versions, frame(1, shake), frame(2, &message.SaslAuthenticateRequest{AuthBytes: good}))
	f.Add(versions, frame(1, shake), frame(2, &message.SaslAuthenticateRequest{AuthBytes: bad}))
	f.Add(frame(0, shake), good, versions)
	f.Add(frame(0, shake), bad, versions)
	f.Add(frame(1, shake), frame(1, shake), frame(0, &message.SaslAuthenticateRequest{AuthBytes: good}))
	f.Add(frame(1, &message.SaslHandshakeRequest{Mechanism: "GSSAPI"}), good, good)
	metadata := frame(12, message.NewMetadataRequest())
	f.Add(metadata, good, bad)
	f.Fuzz(func(t *testing.T, first, second, third []byte) {
		synctest.Test(t, func(t *testing.T) {
			l := network.NewMemoryListener("broker:9092")
			opts := optionsOf(t, vfs.NewMem(), l, nil)
			opts.Users, opts.Listeners[0].SASL, opts.Listeners[0].Host = map[string]string{"alice": "secret"}, true, "behind-the-login"
			b, err := Open(t.Context(), opts)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, b.Close()) })
			c, err := l.Dial(t.Context())
			require.NoError(t, err)
			sent := bytes.Join([][]byte{first, second, third}, nil)
			for _, body := range [][]byte{first, second, third, metadata} {
				_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
				if err != nil {
					break // closed
				}
			}
			for answer := readAnswer(t, c); answer != nil; answer = readAnswer(t, c) {
				if !bytes.Contains(sent, good) {
					require.NotContains(t, string(answer), "behind-the-login")
				}
			}
		})
	})
}

// furnish makes a topic, a group and an open transaction of one name.
func (a *admin) furnish(name string) {
	p := a.begin(name, name)
	r := record.NewBuilder(nil)
	r.Append(1, []byte("k"), []byte("v"), nil)
	req := message.NewProduceRequest()
	req.Acks, req.TransactionalId = -1, &name
	req.TopicData = []message.TopicProduceData{{Name: name, PartitionData: []message.PartitionProduceData{
		{Records: r.Seal(record.Stamp{ProducerID: p.ID, ProducerEpoch: p.Epoch, Transactional: true})}}}}
	require.Zero(a.t, ask[*message.ProduceResponse](a, 11, req).Responses[0].PartitionResponses[0].ErrorCode)
	ask[*message.FindCoordinatorResponse](a, 3, &message.FindCoordinatorRequest{CoordinatorKey: name})
	commit := &message.OffsetCommitRequest{GroupId: name, GenerationIdOrMemberEpoch: -1, Topics: []message.OffsetCommitRequestTopic{
		{Name: name, Partitions: []message.OffsetCommitRequestPartition{{CommittedOffset: 1}}}}}
	require.Zero(a.t, ask[*message.OffsetCommitResponse](a, 8, commit).Topics[0].Partitions[0].ErrorCode)
}

// requestFrame is a whole request as it goes over a connection.
func requestFrame(k wire.Key, version int16, correlation int32, body []byte) []byte {
	frame := wire.AppendRequestHeader(make([]byte, 4), k, version, correlation, nil)
	frame = append(frame, body...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// exchange sends a request and reads what comes; the request behind it has an answer even if it has none.
func exchange(t *testing.T, c net.Conn, k wire.Key, version int16, body []byte) {
	const correlation = 77
	_, err := c.Write(append(requestFrame(k, version, correlation, body), requestFrame(wire.KeyApiVersions, 0, correlation+1, nil)...))
	require.NoError(t, err)
	answer := readAnswer(t, c)
	if answer == nil || int32(binary.BigEndian.Uint32(answer)) == correlation+1 {
		return
	}
	checkAnswer(t, answer, k, version, correlation)
	_ = readAnswer(t, c)
}

// checkAnswer reads an answer to its last byte.
func checkAnswer(t *testing.T, answer []byte, k wire.Key, version int16, correlation int32) {
	r := wire.NewReader(answer)
	got, err := wire.ReadResponseHeader(r, k, version)
	require.NoError(t, err)
	require.Equal(t, correlation, got)
	resp := message.NewResponse(k)
	if k == wire.KeyApiVersions && !served(k, version) {
		version = 0
	}
	require.NoError(t, resp.ReadFrom(r, version), "%s v%d", k, version)
	require.Zero(t, r.Remaining())
}

// readAnswer returns one frame, or nil at the end of the connection.
func readAnswer(t *testing.T, c net.Conn) []byte {
	size := make([]byte, 4)
	if _, err := io.ReadFull(c, size); err != nil {
		require.ErrorIs(t, err, io.EOF)
		return nil
	}
	answer := make([]byte, binary.BigEndian.Uint32(size))
	_, err := io.ReadFull(c, answer)
	require.NoError(t, err, "answers come whole")
	return answer
}
