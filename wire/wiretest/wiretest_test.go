package wiretest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// ask writes a request and reads the answer's body.
func ask(t testing.TB, nc net.Conn, version int16, req message.Request) message.Response {
	t.Helper()
	_, err := nc.Write(wiretest.RequestFrame(t, version, 7, "test", req))
	require.NoError(t, err)
	frame, err := wiretest.ReadFrame(nc)
	require.NoError(t, err)
	r := wire.NewReader(frame)
	corr, err := wire.ReadResponseHeader(r, req.Key(), version)
	require.NoError(t, err)
	require.EqualValues(t, 7, corr)
	resp := req.NewResponse()
	require.NoError(t, resp.ReadFrom(r, version))
	return resp
}

func TestPeerAnswersVersionsAndMetadataByItself(t *testing.T) {
	p := wiretest.NewCluster(2, nil)
	defer p.Close()
	p.SetTopic("orders", 3, 1, -1)
	nc, err := p.DialContext(t.Context(), "tcp", "broker-2:9092")
	require.NoError(t, err)
	versions := ask(t, nc, 3, message.NewApiVersionsRequest()).(*message.ApiVersionsResponse)
	require.Greater(t, len(versions.ApiKeys), 30)
	everything := message.NewMetadataRequest()
	everything.Topics = nil
	meta := ask(t, nc, 12, everything).(*message.MetadataResponse)
	require.Len(t, meta.Brokers, 2)
	require.Len(t, meta.Topics[0].Partitions, 2)
	require.Equal(t, wiretest.TopicID("orders"), meta.Topics[0].TopicId)
	require.EqualValues(t, 2, p.Requests(wire.KeyMetadata)[0].Broker)
	require.Equal(t, 1, p.Connections(2))
	p.Stop(2)
	_, err = nc.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = p.DialContext(t.Context(), "tcp", "broker-2:9092")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	p.Start(2)
	p.Move(2, "elsewhere:1")
	_, err = p.DialContext(t.Context(), "tcp", "elsewhere:1")
	require.NoError(t, err)
}

// What a peer says by itself can be said in every version that brokers speak, stable ones and old ones.
func TestPeerAnswersInEveryVersion(t *testing.T) {
	p := wiretest.NewCluster(2, nil)
	defer p.Close()
	p.SetTopic("orders", 3, 1, -1)
	nc, err := p.DialContext(t.Context(), "tcp", p.Addrs()[0])
	require.NoError(t, err)
	for _, req := range []message.Request{message.NewApiVersionsRequest(), metadataOf("orders", "no-such-topic")} {
		least, most, ok := wire.BrokerVersions(req.Key())
		require.True(t, ok)
		for v := least; v <= most; v++ {
			resp := ask(t, nc, v, req)
			if meta, ok := resp.(*message.MetadataResponse); ok {
				require.Len(t, meta.Topics, 2, "version %d", v)
				require.Len(t, meta.Topics[0].Partitions, 2, "version %d", v)
				require.EqualValues(t, errcode.UnknownTopicOrPartition, meta.Topics[1].ErrorCode, "version %d", v)
			}
		}
	}
}

func metadataOf(topics ...string) message.Request {
	req := message.NewMetadataRequest()
	for _, name := range topics {
		req.Topics = append(req.Topics, message.MetadataRequestTopic{Name: &name})
	}
	return req
}

func TestScriptDecides(t *testing.T) {
	answers := []message.Response{wiretest.NoAnswer, &message.HeartbeatResponse{ErrorCode: 22}, wiretest.HangUp}
	p := wiretest.New(func(req message.Request, version int16) message.Response {
		a := answers[0]
		answers = answers[1:]
		return a
	})
	defer p.Close()
	nc, err := p.DialContext(t.Context(), "tcp", p.Addrs()[0])
	require.NoError(t, err)
	_, err = nc.Write(wiretest.RequestFrame(t, 4, 6, "test", message.NewHeartbeatRequest()))
	require.NoError(t, err)
	require.EqualValues(t, 22, ask(t, nc, 4, message.NewHeartbeatRequest()).(*message.HeartbeatResponse).ErrorCode)
	nc.Write(wiretest.RequestFrame(t, 4, 8, "test", message.NewHeartbeatRequest()))
	_, err = wiretest.ReadFrame(nc)
	require.Error(t, err)
}

func TestReplayGivesTheRecordedAnswers(t *testing.T) {
	var code atomic.Int32
	code.Store(20)
	original := wiretest.New(func(req message.Request, version int16) message.Response {
		if req.Key() == wire.KeyHeartbeat {
			return &message.HeartbeatResponse{ErrorCode: int16(code.Add(1))}
		}
		return nil
	})
	defer original.Close()
	var tap wiretest.Tap
	beat := func(dial wiretest.Dial, group string) int16 {
		nc, err := dial(t.Context(), "tcp", "broker-1:9092")
		require.NoError(t, err)
		defer nc.Close()
		return ask(t, nc, 4, &message.HeartbeatRequest{GroupId: group}).(*message.HeartbeatResponse).ErrorCode
	}
	for _, group := range []string{"a", "a", "b"} {
		beat(tap.Through(original.DialContext), group)
	}
	again := wiretest.NewCluster(1, wiretest.Replay(tap.Frames()))
	defer again.Close()
	require.EqualValues(t, 23, beat(again.DialContext, "b"))
	require.EqualValues(t, 21, beat(again.DialContext, "a"))
	require.EqualValues(t, 22, beat(again.DialContext, "a"))
	require.EqualValues(t, 22, beat(again.DialContext, "a"), "the last one stays")
}

// late is a connection whose writes return only when the answer has been read, as they may on a busy machine.
type late struct {
	net.Conn
	answered chan struct{}
}

func (l late) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	<-l.answered
	return n, err
}

// A request comes before its answer, whoever runs first.
func TestTapKeepsRequestsBeforeTheirAnswers(t *testing.T) {
	peer := wiretest.New(nil)
	defer peer.Close()
	answered := make(chan struct{})
	var tap wiretest.Tap
	nc, err := tap.Through(func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := peer.DialContext(ctx, network, addr)
		return late{nc, answered}, err
	})(t.Context(), "tcp", "broker-1:9092")
	require.NoError(t, err)
	defer nc.Close()
	written, request := make(chan error, 1), wiretest.RequestFrame(t, 0, 7, "test", message.NewApiVersionsRequest())
	go func() {
		_, err := nc.Write(request)
		written <- err
	}()
	_, err = wiretest.ReadFrame(nc)
	require.NoError(t, err)
	close(answered)
	require.NoError(t, <-written)
	frames := tap.Frames()
	require.Len(t, frames, 2)
	require.True(t, frames[0].Request)
	require.False(t, frames[1].Request)
}

func TestGoldenFramesAreReadableFiles(t *testing.T) {
	wiretest.Golden(t, "heartbeat_v4_request.hex", wiretest.RequestFrame(t, 4, 7, "test",
		&message.HeartbeatRequest{GroupId: "g", GenerationId: 3, MemberId: "m"}))
	wiretest.Golden(t, "heartbeat_v4_response.hex", wiretest.ResponseFrame(t, 4, 7, &message.HeartbeatResponse{ErrorCode: 22}))
}

// A tap writes down what passes; here one request and its answer.
func ExampleTap() {
	peer := wiretest.New(nil)
	defer peer.Close()
	var tap wiretest.Tap
	nc, err := tap.Through(peer.DialContext)(context.Background(), "tcp", "broker-1:9092")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	id := "me"
	body, _ := message.NewApiVersionsRequest().AppendTo(wire.AppendRequestHeader(nil, wire.KeyApiVersions, 0, 1, &id), 0)
	nc.Write(append([]byte{0, 0, 0, byte(len(body))}, body...))
	wiretest.ReadFrame(nc)
	for _, f := range tap.Frames() {
		fmt.Println(f.Conn, f.Request, len(f.Frame) > 10)
	}
	// Output:
	// 1 true true
	// 1 false true
}

// failing notes that a check failed, and does not end.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper()                      {}
func (f *failing) Errorf(s string, args ...any) { f.said = fmt.Sprintf(s, args...) }

func TestAStoryThatTurnsOutOtherwiseFails(t *testing.T) {
	t.Setenv("OTTLA_UPDATE", "")
	name := filepath.Join(t.TempDir(), "story.txt")
	require.NoError(t, os.WriteFile(name, []byte("ask\n  yes\nask again\n  no\n"), 0o644))
	f := &failing{TB: t}
	wiretest.Story(f, name, "ask\n  yes\nask again\n  no\n")
	require.Empty(t, f.said)
	for _, other := range []string{"ask\n  yes\nask again\n  yes\n", "ask\n  yes\nask again\n", ""} {
		wiretest.Story(f, name, other)
		require.Contains(t, f.said, "differs from line")
		f.said = ""
	}
}
