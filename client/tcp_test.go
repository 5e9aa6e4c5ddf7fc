package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

type netConn = net.Conn

// echoPort answers ApiVersions as a broker and every other request with its own body, from a loopback port.
func echoPort(t testing.TB, wrap func(net.Conn) net.Conn) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	peer := wiretest.NewCluster(1, nil)
	peer.Move(1, l.Addr().String())
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go echo(peer, wrap(nc))
		}
	}()
	return l.Addr().String()
}

func echo(peer *wiretest.Peer, nc net.Conn) {
	defer nc.Close()
	client, server := net.Pipe()
	defer client.Close()
	peer.Serve(1, server)
	for {
		frame, err := wiretest.ReadFrame(nc)
		if err != nil {
			return
		}
		r := wire.NewReader(frame)
		h, err := wire.ReadRequestHeader(r)
		if err != nil {
			return
		}
		var answer []byte
		if h.Key == wire.KeyApiVersions || h.Key == wire.KeyMetadata {
			client.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
			if answer, err = wiretest.ReadFrame(client); err != nil {
				return
			}
		} else {
			answer = append(wire.AppendResponseHeader(nil, h.Key, h.Version, h.CorrelationID), r.Rest()...)
		}
		if _, err := nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func plain(nc net.Conn) net.Conn { return nc }

// dripping writes in pieces of a few bytes, so that the client meets every split of a frame.
type dripping struct{ net.Conn }

func (d dripping) Write(b []byte) (int, error) {
	for i := 0; i < len(b); i += 7 {
		if n, err := d.Conn.Write(b[i:min(i+7, len(b))]); err != nil {
			return i + n, err
		}
	}
	return len(b), nil
}

// parts makes a body of small and large parts.
func parts(seed byte, sizes ...int) [][]byte {
	out := make([][]byte, len(sizes))
	for i, n := range sizes {
		out[i] = bytes.Repeat([]byte{seed + byte(i)}, n)
	}
	return out
}

// sendParts issues a call whose body is made of parts and gives the reply.
func sendParts(c *client.Client, body [][]byte) <-chan client.Reply {
	done := make(chan client.Reply, 1)
	c.Issue(1, client.Produce, &client.Call{Key: wire.KeyProduce, MinVersion: 3, MaxVersion: 3, Done: func(r client.Reply) { done <- r },
		AppendVec: func(v *client.Vec, version int16) error {
			for _, part := range body {
				v.B = append(v.B, byte(len(part)))
				v.Ref(part)
			}
			return nil
		}})
	return done
}

func flat(body [][]byte) (out []byte) {
	for _, part := range body {
		out = append(append(out, byte(len(part))), part...)
	}
	return out
}

func TestBodiesOfManyPartsArriveAsOne(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{"whole writes": plain, "dripping": func(nc net.Conn) net.Conn { return dripping{nc} }} {
		t.Run(name, func(t *testing.T) {
			addr := echoPort(t, wrap)
			for _, dial := range []func(context.Context, string, string) (net.Conn, error){nil, hidden} { // with and without vectored writes
				c, err := client.New(client.Seeds(addr), client.Dialer(dial))
				require.NoError(t, err)
				_, err = c.AwaitTopics(t.Context())
				require.NoError(t, err)
				bodies := [][][]byte{parts(1, 0), parts(2, 10, 3000, 1), parts(3, 2000, 2000, 2000), parts(4, 1<<10, 5, 90_000)}
				if name == "whole writes" {
					bodies = append(bodies, parts(5, 700_000, 1, 600_000), parts(6, 3_000_000))
				}
				var replies []<-chan client.Reply
				for _, body := range bodies {
					replies = append(replies, sendParts(c, body))
				}
				for i, done := range replies {
					r := <-done
					require.NoError(t, r.Err)
					require.True(t, bytes.Equal(flat(bodies[i]), r.Body), "body %d", i)
					require.GreaterOrEqual(t, r.Size, len(r.Body))
				}
				require.NoError(t, c.Close(t.Context()))
			}
		})
	}
}

// hidden dials a connection that is not seen to be TCP.
func hidden(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{nc}, nil
}

// A buffer handed over by Ref belongs to the socket until Done: here the broker reads nothing, the request runs out of
// time in the middle of its write, and the caller overwrites the buffer as soon as he may.
func TestBuffersAreFreeOnlyWhenTheSocketIsDone(t *testing.T) {
	var mu sync.Mutex
	var got []byte
	readOn := make(chan struct{})
	drained := make(chan struct{})
	addr, handOver := listenBehind(t, func(nc net.Conn) {
		defer close(drained)
		<-readOn
		b, _ := io.ReadAll(nc)
		mu.Lock()
		got = b
		mu.Unlock()
	})
	c, err := client.New(client.Seeds(addr), func(c *client.Config) { c.WriteTimeout = time.Second })
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.AwaitTopics(t.Context())
	require.NoError(t, err)
	handOver()
	body := parts('x', 32<<20)
	r := <-sendParts(c, body)
	require.ErrorIs(t, r.Err, client.ErrDisconnected)
	require.True(t, client.Retriable(r.Err))
	require.True(t, r.Written)
	clear(body[0]) // the caller's again
	close(readOn)
	<-drained
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, got)
	require.NotContains(t, string(got[len(got)-1000:]), "\x00", "the socket read from a buffer that was given back")
}

// listenBehind is a port of a peer. The next connection after handOver was called is handed to handle once it is
// negotiated.
func listenBehind(t *testing.T, handle func(net.Conn)) (addr string, handOver func()) {
	peer := wiretest.NewCluster(1, nil)
	t.Cleanup(peer.Close)
	var armed atomic.Bool
	addr = listen(t, func(nc net.Conn) {
		if !armed.CompareAndSwap(true, false) {
			peer.Serve(1, nc)
			return
		}
		frame, err := wiretest.ReadFrame(nc)
		if err != nil {
			return
		}
		client, server := net.Pipe()
		defer client.Close()
		peer.Serve(1, server)
		client.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
		answer, _ := wiretest.ReadFrame(client)
		nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...))
		handle(nc)
	})
	peer.Move(1, addr)
	return addr, func() { armed.Store(true) }
}

func TestAnnouncedBytesTakeNoMemory(t *testing.T) {
	measured := make(chan struct{})
	addr, handOver := listenBehind(t, func(nc net.Conn) {
		if _, err := wiretest.ReadFrame(nc); err != nil {
			t.Error(err)
		}
		nc.Write([]byte{0x0f, 0xff, 0xff, 0xff, 0, 0, 0, 1}) // 256 MiB less one, of which 4 bytes come
		<-measured
		nc.Close()
	})
	c, err := client.New(client.Seeds(addr))
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.AwaitTopics(t.Context())
	require.NoError(t, err)
	handOver()
	before := heapBytes()
	reply := sendParts(c, parts(1, 10))
	time.Sleep(100 * time.Millisecond) // in which the client would take the memory, if it did
	close(measured)
	r := <-reply
	require.ErrorIs(t, r.Err, client.ErrDisconnected)
	require.Less(t, heapBytes()-before, uint64(4<<20))
}
