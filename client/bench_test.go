package client_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// quickPort answers every request after ApiVersions and Metadata with n bytes, as fast as it can.
func quickPort(b *testing.B, n int) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { l.Close() })
	peer := wiretest.NewCluster(1, nil)
	peer.Move(1, l.Addr().String())
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go quick(peer, nc, n)
		}
	}()
	return l.Addr().String()
}

func quick(peer *wiretest.Peer, nc net.Conn, n int) {
	defer nc.Close()
	script, server := net.Pipe()
	defer script.Close()
	peer.Serve(1, server)
	br := bufio.NewReaderSize(nc, 256<<10)
	answer := make([]byte, 4+4+n)
	binary.BigEndian.PutUint32(answer, uint32(4+n))
	var head [12]byte
	for {
		if _, err := io.ReadFull(br, head[:]); err != nil {
			return
		}
		rest := int(binary.BigEndian.Uint32(head[:])) - 8
		switch k := wire.Key(binary.BigEndian.Uint16(head[4:])); k {
		case wire.KeyApiVersions, wire.KeyMetadata:
			frame := append([]byte(nil), head[:]...)
			frame = append(frame, make([]byte, rest)...)
			io.ReadFull(br, frame[12:])
			script.Write(frame)
			body, err := wiretest.ReadFrame(script)
			if err != nil {
				return
			}
			nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
		default:
			br.Discard(rest)
			copy(answer[4:8], head[8:12])
			if _, err := nc.Write(answer); err != nil {
				return
			}
		}
	}
}

func benchClient(b *testing.B, answer int) *client.Client {
	c, err := client.New(client.Seeds(quickPort(b, answer)))
	require.NoError(b, err)
	b.Cleanup(func() { c.Close(context.Background()) })
	_, err = c.AwaitTopics(b.Context())
	require.NoError(b, err)
	return c
}

// benchIssue keeps so many calls under way, each with so large a body and answer. Calls are used again, as a
// producer does.
func benchIssue(b *testing.B, underWay, body, answer int) {
	c := benchClient(b, answer)
	part := make([]byte, body)
	var wg sync.WaitGroup
	calls := make(chan *client.Call, underWay)
	for range underWay {
		call := &client.Call{Key: wire.KeyProduce, MinVersion: 3, MaxVersion: 3, MaxResponse: answer + 8}
		call.AppendVec = func(v *client.Vec, version int16) error {
			v.B = wire.AppendInt32(v.B, int32(body))
			v.Ref(part)
			return nil
		}
		call.Done = func(r client.Reply) {
			if r.Err != nil {
				b.Error(r.Err)
			}
			calls <- call
			wg.Done()
		}
		calls <- call
	}
	b.SetBytes(int64(body + answer))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		wg.Add(1)
		c.Issue(1, client.Produce, <-calls)
	}
	wg.Wait()
}

func BenchmarkIssueOneAtATime(b *testing.B)      { benchIssue(b, 1, 200, 60) }
func BenchmarkIssueFiveUnderWay(b *testing.B)    { benchIssue(b, 5, 16<<10, 60) }
func BenchmarkIssueManySmall(b *testing.B)       { benchIssue(b, 100, 200, 60) }
func BenchmarkIssueLargeBodies(b *testing.B)     { benchIssue(b, 5, 1<<20, 60) }
func BenchmarkIssueMegabyteAnswers(b *testing.B) { benchIssue(b, 2, 100, 1<<20) }
