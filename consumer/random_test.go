package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// TestEveryRecordOnceInOrderUnderFaults reads while leaders move, brokers stop, sessions and answers get lost and
// brokers are slow. A seed decides the faults; the order of goroutines is the runtime's.
func TestEveryRecordOnceInOrderUnderFaults(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, k *logpeer.Cluster) { readUnderFaults(t, k, seed) })
		})
	}
}

const faultyParts = 5

func readUnderFaults(t *testing.T, k *logpeer.Cluster, seed uint64) {
	rnd, mine := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 3))
	leaders := make([]int32, faultyParts)
	for p := range leaders {
		leaders[p] = int32(1 + rnd.IntN(3))
	}
	k.Topic("orders", leaders...)
	k.Hook(disturb(k, rand.New(rand.NewPCG(seed, 2))))
	options := []consumer.Option{consumer.StartAt(consumer.Earliest), consumer.MaxBytes(3000, 800)}
	for p := range int32(faultyParts) {
		options = append(options, consumer.Assign("orders", p))
	}
	c := consumeWith(t, k, []client.Option{client.MemoryBudget(4000), client.Jitter(seed + 1)}, options...)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		harass(ctx, t, k, rnd)
	}()
	var all []consumer.Record
	for len(all) < 2000 {
		all = append(all, some(t, c, mine.IntN(3), 1+len(all)%37)...)
	}
	cancel()
	<-done
	for b := range int32(3) {
		k.Start(b + 1)
	}
	k.Hook(nil)
	k.Announce("orders")
	want := 0
	for p := range int32(faultyParts) {
		want += int(k.End("orders", p))
	}
	for len(all) < want {
		all = append(all, some(t, c, 0, want-len(all))...)
	}
	requireRuns(t, all, nil)
	nothing(t, c, 5*time.Second)
	require.NoError(t, c.Close(context.Background()))
	time.Sleep(time.Second) // fetches that were in flight hold theirs until they are answered
	used, _ := c.Client().Budget().Used()
	require.Zero(t, used, "all memory is given back")
}

// some reads a few records in one of the three ways.
func some(t *testing.T, c *consumer.Consumer, how, n int) (out []consumer.Record) {
	ctx := within(t, 10*time.Minute)
	switch how {
	case 0:
		for r, err := range c.Records(ctx) {
			require.NoError(t, err)
			if out = append(out, r); len(out) >= n {
				return out
			}
		}
	case 1:
		rs, err := c.Poll(ctx, n)
		require.NoError(t, err)
		return rs
	}
	for b, err := range c.Batches(ctx) {
		require.NoError(t, err)
		for r := range b.Records() {
			out = append(out, r)
		}
		require.NoError(t, b.Err())
		if len(out) >= n {
			break
		}
	}
	return out
}

// harass writes, and changes the cluster, until ctx ends.
func harass(ctx context.Context, t *testing.T, k *logpeer.Cluster, rnd *rand.Rand) {
	codecs := []compress.Codec{compress.None, compress.Lz4, compress.Zstd}
	for ctx.Err() == nil {
		p := int32(rnd.IntN(faultyParts))
		switch n := rnd.IntN(20); {
		case n == 0:
			k.MoveLeader("orders", p, int32(1+rnd.IntN(3)))
		case n == 1:
			b := int32(1 + rnd.IntN(3))
			k.Stop(b)
			time.Sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond)
			k.Start(b)
		case n == 2:
			k.DropSessions()
		case n == 3:
			k.Drop(int32(1 + rnd.IntN(3)))
		case n < 7:
			k.Announce("orders")
		default:
			k.Append(t, "orders", p, 1+rnd.IntN(30), codecs[rnd.IntN(len(codecs))])
		}
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
	}
}

// disturb makes answers slow and wrong now and then.
func disturb(k *logpeer.Cluster, rnd *rand.Rand) func(*wiretest.Request) message.Response {
	var mu sync.Mutex
	damaged := map[string]bool{} // no batch twice: that halts its partition
	return func(r *wiretest.Request) message.Response {
		mu.Lock()
		n, wait := rnd.IntN(30), time.Duration(rnd.IntN(400))*time.Millisecond
		mu.Unlock()
		switch {
		case n == 0:
			time.Sleep(wait)
		case n == 1 && r.Key == 1:
			resp := message.NewFetchResponse()
			resp.ErrorCode = int16(errcode.UnknownServerError)
			return resp
		case n == 2 && r.Key == 1: // a damaged answer, once
			resp, _ := k.Answer(r).(*message.FetchResponse)
			if len(resp.Responses) > 0 && len(resp.Responses[0].Partitions[0].Records) > 30 {
				b := resp.Responses[0].Partitions[0].Records
				mu.Lock()
				if id := fmt.Sprint(resp.Responses[0].Partitions[0].PartitionIndex, b[:8]); !damaged[id] {
					damaged[id] = true
					b[25] ^= 0x10
				}
				mu.Unlock()
			}
			return resp
		case n == 3 && r.Key == 1: // partition errors
			resp, _ := k.Answer(r).(*message.FetchResponse)
			for i := range resp.Responses {
				resp.Responses[i].Partitions[0].ErrorCode = int16(errcode.KafkaStorageError)
				resp.Responses[i].Partitions[0].Records = nil
			}
			return resp
		}
		return nil
	}
}
