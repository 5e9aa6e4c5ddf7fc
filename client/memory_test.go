package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// TestCallGivesTheMemoryOfItsAnswer: it is asked for answers that are not small and not larger than it said.
func TestCallGivesTheMemoryOfItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		size := 0
		_, c := start(t, 1, func(r *wiretest.Request) message.Response {
			if r.Key != wire.KeyFetch {
				return nil
			}
			records := make([]byte, size)
			for i := range records {
				records[i] = byte(i % 251)
			}
			var p message.FetchResponsePartitionData
			p.SetDefaults()
			p.Records = records
			resp := message.NewFetchResponse()
			resp.Responses = []message.FetchableTopicResponse{{Topic: "t", Partitions: []message.FetchResponsePartitionData{p}}}
			return resp
		})
		_, err := c.AwaitTopics(t.Context())
		require.NoError(t, err)
		for _, tc := range []struct {
			size, most int
			asked      bool
		}{{100, 1 << 20, false}, {200_000, 1 << 20, true}, {300_000, 200_000, false}, {100_000, 1 << 20, true}} {
			size = tc.size
			var block []byte
			done := make(chan client.Reply, 1)
			c.Issue(1, client.Fetch, &client.Call{Key: wire.KeyFetch, MinVersion: 4, MaxVersion: 4, MaxResponse: tc.most, Append: message.NewFetchRequest().AppendTo,
				Done: func(r client.Reply) { done <- r },
				Memory: func(n int) []byte {
					require.Nil(t, block, "once at most")
					require.Greater(t, n, tc.size)
					block = make([]byte, n)
					return block
				}})
			r := <-done
			require.NoError(t, r.Err)
			require.Equal(t, tc.asked, block != nil, "an answer of %d bytes, %d allowed", tc.size, tc.most)
			if tc.asked {
				require.Same(t, &block[len(block)-1], &r.Body[len(r.Body)-1])
			}
			var resp message.FetchResponse
			require.NoError(t, resp.ReadFrom(wire.NewReader(r.Body), 4))
			got := resp.Responses[0].Partitions[0].Records
			require.Len(t, got, tc.size)
			for i, b := range got {
				if b != byte(i%251) {
					require.Fail(t, "the answer is not what was sent", "at byte %d", i)
				}
			}
		}
	})
}
