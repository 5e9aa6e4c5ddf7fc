package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// Clients of every API at once, over names that come and go, while connections are cut, requests meet with fault
// rules, coordinators move away and back and the storage tidies up. Every request is answered with what can be read, or its connection is closed; and the broker
// stops cleanly. It is for the race detector, and for goroutines that stall by chance (.ci/chaos).
func TestACrowdOfClientsOverTopicsThatComeAndGo(t *testing.T) {
	properties := oneReplica("3")
	properties["offsets.topic.num.partitions"], properties["offsets.topic.replication.factor"] = "3", "1"
	properties["group.initial.rebalance.delay.ms"] = "0"
	b, conn := openBroker(t, vfs.NewMem(), properties)
	a := &admin{t: t, broker: b, conn: conn}
	a.furnish("some-name")
	require.NoError(t, conn.Close())
	l := b.opts.Listeners[0].Listener.(*network.MemoryListener)

	var clients, others sync.WaitGroup
	for i := range 6 {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(i)))
			for range 20 {
				c, err := l.Dial(context.Background())
				require.NoError(t, err)
				for range 15 {
					if !anyRequest(t, c, r) {
						break
					}
				}
				_ = c.Close()
			}
		})
	}
	done := make(chan struct{})
	others.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			switch n % 6 {
			case 0:
				b.Disconnect()
			case 1:
				require.NoError(t, b.ReloadCoordinator(context.Background(), fmt.Sprint(n)))
			case 2:
				require.NoError(t, b.ReloadTransactions(context.Background(), "some-name"))
			case 3:
				b.storage.Tick(time.Now().Add(time.Duration(n) * time.Minute))
			case 4:
				_, _ = b.Groups(context.Background())
			case 5:
				b.faults.Add(mishap(n / 6).Times(1))
			}
		}
	})
	clients.Wait()
	close(done)
	others.Wait()
	require.NoError(t, b.Close())
}

// mishap is what a test may have happen to a request, one kind after the other.
func mishap(n int) fault.Rule {
	hook := func(p fault.Point) {
		p.Topics()
		runtime.Gosched()
	}
	rules := []fault.Rule{
		fault.Any().Delay(2 * time.Millisecond),
		fault.Any().Late(3 * time.Millisecond),
		fault.Any().LateAfter(2),
		fault.Any().LoseResponse(),
		fault.Any().DropConnection(),
		fault.Any().OnArrival(hook),
		fault.Any().OnAnswer(hook),
		fault.Any().Topic("some-name").Error(errcode.NotLeaderOrFollower),
		fault.Any().OnAnswer(hook).Delay(time.Millisecond),
	}
	return rules[n%len(rules)]
}

// anyRequest draws a request and reports whether the connection is still there.
func anyRequest(t *testing.T, c net.Conn, r *rand.Rand) bool {
	keys := fuzzed()
	k := keys[r.IntN(len(keys))]
	low, high, _ := wire.BrokerVersions(k)
	version := low + int16(r.IntN(int(high-low)+1))
	if !served(k, version) {
		return true
	}
	req := message.NewRequest(k)
	fill(reflect.ValueOf(req).Elem(), int8(r.IntN(3)))
	switch req := req.(type) {
	case *message.ProduceRequest: // without records there would be no answer
		if req.Acks = -1; r.IntN(2) == 0 {
			req.TransactionalId = nil
		}
		b := record.NewBuilder(nil)
		b.Append(time.Now().UnixMilli(), []byte("k"), []byte("v"), nil)
		req.TopicData[0].PartitionData[0].Records = b.Seal(record.Stamp{ProducerID: int64(r.IntN(2)), BaseSequence: int32(r.IntN(3)), Transactional: req.TransactionalId != nil})
	case *message.CreateTopicsRequest:
		req.Topics[0].Assignments, req.Topics[0].Configs = nil, nil
		req.Topics[0].NumPartitions, req.Topics[0].ReplicationFactor = 2, 1
	case *message.FetchRequest:
		req.MaxBytes, req.MaxWaitMs, req.MinBytes, req.SessionEpoch = 1<<20, int32(r.IntN(20)), 1, -1
		req.Topics[0].Partitions[0].PartitionMaxBytes = 1 << 20
	case *message.AddPartitionsToTxnRequest:
		if version >= 4 && len(req.Transactions) == 0 {
			return true
		}
	}
	body, err := req.AppendTo(nil, version)
	if err != nil {
		return true // a field that this version does not have
	}
	return converse(t, c, k, version, body)
}

// converse sends one request and reads its answer, if the connection lives that long.
func converse(t *testing.T, c net.Conn, k wire.Key, version int16, body []byte) bool {
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	if _, err := c.Write(requestFrame(k, version, 5, body)); err != nil {
		return false
	}
	answer := readAnswer(t, c)
	if answer == nil {
		return false
	}
	checkAnswer(t, answer, k, version, 5)
	return true
}
