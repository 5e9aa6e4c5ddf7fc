package client_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// splitting cuts every write of the broker where the fuzzer says.
type splitting struct {
	net.Conn
	cuts []byte
}

func (s *splitting) Read(b []byte) (int, error) {
	if len(s.cuts) > 0 {
		n := int(s.cuts[0])%17 + 1
		s.cuts = append(s.cuts[1:], s.cuts[0])
		b = b[:min(n, len(b))]
	}
	return s.Conn.Read(b)
}

// FuzzFrameStream: however the bytes of a stream are split, the same frames come out.
func FuzzFrameStream(f *testing.F) {
	f.Add([]byte{1}, []byte("abc"), uint16(3))
	f.Add([]byte{3, 5, 200, 1}, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, uint16(70))
	f.Add([]byte{}, []byte{}, uint16(1))
	f.Fuzz(func(t *testing.T, cuts, body []byte, count uint16) {
		n := int(count)%64 + 1
		if len(body) > 1000 {
			return // reads of single bytes: it would only be slow
		}
		synctest.Test(t, func(t *testing.T) {
			peer := wiretest.NewCluster(1, func(r *wiretest.Request) message.Response {
				if r.Key != wire.KeySaslAuthenticate {
					return nil
				}
				return &message.SaslAuthenticateResponse{AuthBytes: r.Body.(*message.SaslAuthenticateRequest).AuthBytes}
			})
			dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
				nc, err := peer.DialContext(ctx, network, addr)
				return &splitting{nc, append([]byte(nil), cuts...)}, err
			}
			c, err := client.New(client.Cluster(peer), client.Dialer(dial))
			require.NoError(t, err)
			defer peer.Close()
			defer c.Close(context.Background())
			_, err = c.AwaitTopics(t.Context())
			require.NoError(t, err)
			replies := make(chan client.Reply, n)
			for i := range n { // a request that carries any bytes, and has them in its answer
				req := &message.SaslAuthenticateRequest{AuthBytes: binary.BigEndian.AppendUint16(append([]byte(nil), body...), uint16(i))}
				c.Issue(1, client.Fetch, &client.Call{Key: req.Key(), Append: req.AppendTo, Done: func(r client.Reply) { replies <- r }})
			}
			for i := range n {
				r := <-replies
				require.NoError(t, r.Err)
				var resp message.SaslAuthenticateResponse
				require.NoError(t, resp.ReadFrom(wire.NewReader(r.Body), r.Version))
				require.Equal(t, binary.BigEndian.AppendUint16(append([]byte(nil), body...), uint16(i)), resp.AuthBytes)
			}
		})
	})
}

// FuzzHostileBroker: whatever a broker answers, the client ends within its limits, with a typed error or a decoded
// answer. The first byte says from which request on the fuzzer's bytes are sent, the second whether they get a frame
// around them.
func FuzzHostileBroker(f *testing.F) {
	f.Add([]byte{0, 0, 0x15, 3, 3, 0, 2})
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{1, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1})
	f.Add([]byte{2, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Add([]byte{2, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) < 2 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int32
			peer := wiretest.NewCluster(1, func(r *wiretest.Request) message.Response {
				if n.Add(1) <= int32(script[0]%4) {
					return answerCluster(r)
				}
				if script[1]%2 == 0 {
					return wiretest.Bytes(script[2:])
				}
				frame := binary.BigEndian.AppendUint32(nil, uint32(len(script)-2+4))
				frame = binary.BigEndian.AppendUint32(frame, uint32(r.CorrelationID))
				return wiretest.Bytes(append(frame, script[2:]...))
			})
			peer.SetTopic("orders", 0, 1)
			c, err := client.New(client.Cluster(peer), client.RequestTimeout(2*time.Second), client.SetupTimeout(time.Second, time.Second))
			require.NoError(t, err)
			defer peer.Close()
			defer c.Close(context.Background())
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			began := time.Now()
			if _, err = c.AwaitTopics(ctx, "orders"); err != nil {
				require.NotEmpty(t, err.Error())
			}
			_, err = c.Request(ctx, client.AnyBroker(), clusterRequest())
			if err != nil {
				var op *client.OpError
				require.ErrorAs(t, err, &op)
			}
			require.LessOrEqual(t, time.Since(began), 5*time.Second)
		})
	})
}
