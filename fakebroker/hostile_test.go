package fakebroker_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// stillServes requires that a well-behaved client is undisturbed. In virtual time it is served at once; in real time only
// the limit of every raw client says that something stands still.
func stillServes(t testing.TB, k *fakebroker.Cluster) {
	t.Helper()
	c := connect(t, k)
	require.Zero(t, produce(c, "orders", 0, batch(t, "good")).ErrorCode)
	_ = c.conn.Close()
}

// header is a request header with a body of announced bytes to come.
func header(key wire.Key, version int16, announced uint32) []byte {
	client := "hostile"
	return wire.AppendRequestHeader(binary.BigEndian.AppendUint32(nil, announced), key, version, 1, &client)
}

func TestThousandSlowSendersDisturbNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		before := heap()
		full := header(wire.KeyProduce, 9, 100<<20)
		conns := make([]net.Conn, 1000)
		for i := range conns {
			c, err := k.DialContext(context.Background(), "tcp", k.Addrs()[0])
			require.NoError(t, err)
			defer c.Close()
			conns[i] = c
		}
		for i := range 20 { // one byte every ten seconds, of a frame header first, then of a body
			for _, c := range conns {
				_, err := c.Write(full[i : i+1])
				require.NoError(t, err)
			}
			time.Sleep(10 * time.Second)
		}
		require.Equal(t, 1000, k.Connections())
		require.Less(t, heap()-before, int64(64<<20))
		start := time.Now()
		stillServes(t, k)
		require.Zero(t, time.Since(start))
		time.Sleep(15 * time.Minute) // and in the end they are idle
		require.Zero(t, k.Connections())
	})
}

func TestThousandHalfRequestsOverTCP(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Listen("127.0.0.1:0"))
	before, goroutines := heap(), runtime.NumGoroutine()
	half := append(header(wire.KeyProduce, 9, 1<<20), make([]byte, 20)...)
	conns := make([]net.Conn, 1000)
	for i := range conns {
		c, err := k.DialContext(t.Context(), "tcp", k.Addrs()[0])
		require.NoError(t, err)
		_, err = c.Write(half)
		require.NoError(t, err)
		conns[i] = c
	}
	stillServes(t, k)
	require.Less(t, heap()-before, int64(64<<20))
	for _, c := range conns {
		_ = c.Close()
	}
	require.Eventually(t, func() bool { return k.Connections() == 0 && runtime.NumGoroutine() <= goroutines+2 }, time.Minute, 10*time.Millisecond)
}

func TestAnnouncedHundredMegabytesAreNotAllocated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		before := heap()
		for range 200 {
			c := connect(t, k)
			_, err := c.conn.Write(header(wire.KeyProduce, 9, 100<<20))
			require.NoError(t, err)
		}
		synctest.Wait() // the broker has read all of it
		require.Less(t, heap()-before, int64(64<<20))
		stillServes(t, k)
	})
}

func TestGarbageClosesTheConnection(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Listen("127.0.0.1:0"))
	frames := map[string][]byte{
		"length -1":              {0xff, 0xff, 0xff, 0xff},
		"length 2^31-1":          {0x7f, 0xff, 0xff, 0xff},
		"length 100 MiB + 1":     binary.BigEndian.AppendUint32(nil, 100<<20+1),
		"length 0":               {0, 0, 0, 0},
		"three bytes of header":  {0, 0, 0, 3, 0, 0, 0},
		"unknown API":            append([]byte{0, 0, 0, 10}, 0x03, 0xe7, 0, 0, 0, 0, 0, 1, 0xff, 0xff),
		"controller API":         append(header(wire.KeyVote, 0, 17), 0),
		"group API":              header(wire.KeyJoinGroup, 2, 17),
		"version 99":             header(wire.KeyMetadata, 99, 17),
		"HTTP":                   []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"TLS":                    {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03},
		"array of 2^31-1 topics": append(header(wire.KeyMetadata, 1, 21), 0x7f, 0xff, 0xff, 0xff),
		"negative array":         append(header(wire.KeyListOffsets, 1, 25), 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe),
		"varint without an end":  append(header(wire.KeyMetadata, 12, 28), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	}
	for name, raw := range frames {
		t.Run(name, func(t *testing.T) {
			c := connect(t, k)
			_, err := c.conn.Write(raw)
			require.NoError(t, err)
			_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
			_, err = c.conn.Read(make([]byte, 1))
			require.Error(t, err)
			var timeout net.Error
			require.False(t, asNet(err, &timeout), "the connection stays open")
		})
	}
	stillServes(t, k)
}

func TestRandomBytesNeverHurt(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	r := rand.New(rand.NewPCG(7, 8))
	before := heap()
	goroutines := runtime.NumGoroutine()
	for range 500 {
		c, err := k.DialContext(t.Context(), "tcp", k.Addrs()[0])
		require.NoError(t, err)
		raw := make([]byte, 8+r.IntN(200))
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		binary.BigEndian.PutUint32(raw, uint32(len(raw)-4)) // a frame that is whole, so that its content is looked at
		binary.BigEndian.PutUint16(raw[4:], uint16(r.IntN(80)))
		binary.BigEndian.PutUint16(raw[6:], uint16(r.IntN(14)))
		_, err = c.Write(raw)
		require.NoError(t, err)
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _ = c.Read(make([]byte, 100))
		require.NoError(t, c.Close())
	}
	stillServes(t, k)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+5 }, time.Minute, 5*time.Millisecond)
	require.Less(t, heap()-before, int64(16<<20))
}

func TestPipelinedRequestsWaitInTheSocket(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	c := connect(t, k)
	go func() {
		for range 10_000 { // never reading an answer
			if _, err := c.conn.Write(append(header(wire.KeyApiVersions, 0, 17), nil...)); err != nil {
				return
			}
		}
	}()
	stillServes(t, k)
	require.Eventually(t, func() bool { return k.Requests(wire.KeyApiVersions) > 100 }, time.Minute, time.Millisecond)
	require.Less(t, k.Requests(wire.KeyApiVersions), int64(10_000))
}

func TestPeerThatNeverReadsLosesItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		writer := connect(t, k)
		require.Zero(t, produce(writer, "orders", 0, batch(t, string(make([]byte, 900_000)))).ErrorCode)
		c := connect(t, k)
		c.send(12, fetchRequest("orders", 0, 0))
		time.Sleep(3 * time.Minute)
		require.Equal(t, 1, k.Connections())
	})
}

func TestManyPartitionsInOneFetch(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	c := connect(t, k)
	req := fetchRequest("orders", 0, 0)
	one := req.Topics[0].Partitions[0]
	req.Topics[0].Partitions = nil
	for i := range int32(100_000) {
		one.Partition = i
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, one)
	}
	req.MaxWaitMs, req.SessionEpoch = 0, 0
	resp := call[*message.FetchResponse](c, 12, req)
	require.Len(t, resp.Responses[0].Partitions, 100_000)
	require.EqualValues(t, errcode.UnknownTopicOrPartition, resp.Responses[0].Partitions[7].ErrorCode)
}

func TestFetchSessionsAreBounded(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Config("max.incremental.fetch.session.cache.slots", "10"))
	c := connect(t, k)
	sessions := make(map[int32]bool)
	for range 50 {
		req := fetchRequest("orders", 0, 0)
		req.SessionEpoch, req.MaxWaitMs = 0, 0
		sessions[call[*message.FetchResponse](c, 12, req).SessionId] = true
	}
	require.Len(t, sessions, 11, "10 sessions, and 0 for the rest")
}

func TestOnlyAuthenticationBeforeAuthentication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.User("alice", "secret"))
		for name, req := range map[string]message.Request{"produce": produceRequest("orders", 0, -1, batch(t, "x")), "metadata": message.NewMetadataRequest()} {
			c := connect(t, k)
			c.send(9, req)
			_, err := c.conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF, name)
		}
		require.Zero(t, k.Requests(wire.KeyProduce))

		c := connect(t, k) // the way in: ApiVersions, SaslHandshake, SaslAuthenticate
		call[*message.ApiVersionsResponse](c, 2, message.NewApiVersionsRequest())
		hello := call[*message.SaslHandshakeResponse](c, 1, &message.SaslHandshakeRequest{Mechanism: "PLAIN"})
		require.Zero(t, hello.ErrorCode)
		auth := call[*message.SaslAuthenticateResponse](c, 2, &message.SaslAuthenticateRequest{AuthBytes: []byte("\x00alice\x00secret")})
		require.Zero(t, auth.ErrorCode)
		require.Zero(t, produce(c, "orders", 0, batch(t, "x")).ErrorCode)

		for token, text := range map[string]string{
			"\x00alice\x00wrong":       "Invalid username or password",
			"\x00mallory\x00secret":    "Invalid username or password",
			"bob\x00alice\x00secret":   "authorization id",
			"\x00alice":                "expected 3 tokens",
			"\x00alice\x00":            "password not specified",
			"\x00\x00secret":           "username not specified",
			"alice\x00alice\x00secret": "",
		} {
			c := connect(t, k)
			call[*message.SaslHandshakeResponse](c, 1, &message.SaslHandshakeRequest{Mechanism: "PLAIN"})
			start := time.Now()
			auth := call[*message.SaslAuthenticateResponse](c, 1, &message.SaslAuthenticateRequest{AuthBytes: []byte(token)})
			if text == "" {
				require.Zero(t, auth.ErrorCode)
				continue
			}
			require.EqualValues(t, errcode.SaslAuthenticationFailed, auth.ErrorCode)
			require.Contains(t, *auth.ErrorMessage, text)
			require.NotContains(t, *auth.ErrorMessage, "secret")
			require.Equal(t, 100*time.Millisecond, time.Since(start), "failures are slow")
			c.closed()
		}

		c = connect(t, k)
		refused := call[*message.SaslHandshakeResponse](c, 1, &message.SaslHandshakeRequest{Mechanism: "GSSAPI"})
		require.EqualValues(t, errcode.UnsupportedSaslMechanism, refused.ErrorCode)
		require.Equal(t, []string{"PLAIN"}, refused.Mechanisms)
		c.closed()
	})
}

func TestFramesBeforeAuthenticationAreSmall(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.User("alice", "secret"))
	c := connect(t, k)
	_, err := c.conn.Write(header(wire.KeySaslAuthenticate, 2, 512<<10+1))
	require.NoError(t, err)
	c.closed()
	c = connect(t, k)
	call[*message.SaslHandshakeResponse](c, 1, &message.SaslHandshakeRequest{Mechanism: "PLAIN"})
	call[*message.SaslAuthenticateResponse](c, 2, &message.SaslAuthenticateRequest{AuthBytes: []byte("\x00alice\x00secret")})
	require.Zero(t, produce(c, "orders", 0, batch(t, string(make([]byte, 900_000)))).ErrorCode)
}

func TestSilentTLSHandshakeEnds(t *testing.T) {
	server, _ := certificates(t)
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.TLS(server))
		c := connect(t, k)
		_, err := c.conn.Write([]byte{0x16}) // the first byte of a hello, and no more
		require.NoError(t, err)
		time.Sleep(9 * time.Second)
		require.Equal(t, 1, k.Connections())
		time.Sleep(2 * time.Second)
		require.Zero(t, k.Connections())
	})
}

func TestTokenWithoutFrameHeaderAfterOldHandshake(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.User("alice", "secret"))
	for token, ok := range map[string]bool{"\x00alice\x00secret": true, "\x00alice\x00wrong": false} {
		c := connect(t, k)
		call[*message.SaslHandshakeResponse](c, 0, &message.SaslHandshakeRequest{Mechanism: "PLAIN"})
		_, err := c.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...))
		require.NoError(t, err)
		if !ok {
			c.closed()
			continue
		}
		empty, err := c.frame()
		require.NoError(t, err)
		require.Empty(t, empty)
		require.Zero(t, produce(c, "orders", 0, batch(t, "x")).ErrorCode)
	}
}

func TestTLSListener(t *testing.T) {
	server, client := certificates(t)
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.Listen("127.0.0.1:0"), fakebroker.TLS(server))
	c := connect(t, k)
	c.conn = tls.Client(c.conn, client)
	for i := range 3 {
		require.EqualValues(t, i, produce(c, "orders", 0, batch(t, fmt.Sprint(i))).BaseOffset)
	}
	resp := call[*message.FetchResponse](c, 12, fetchRequest("orders", 0, 0))
	require.Equal(t, []string{"0", "1", "2"}, values(t, resp.Responses[0].Partitions[0].Records))
	plain := connect(t, k)
	plain.send(12, fetchRequest("orders", 0, 0))
	said, _ := io.ReadAll(plain.conn)
	require.Equal(t, []byte{21, 3, 3, 0, 2, 2, 10}, said, "a TLS alert, then the end")
}
