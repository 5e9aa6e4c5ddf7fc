package fakebroker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire/message"
)

func end(t *testing.T, k *fakebroker.Cluster) int64 {
	o, err := k.Offsets("orders", 0)
	assert.NoError(t, err) // hooks call this, on goroutines of their own
	return o.HighWatermark
}

func TestHooksRunBeforeARequestIsAppliedAndBeforeItsAnswerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		c := connect(t, k)
		k.Inject(fault.Produce().Nth(2).OnArrival(func(p fault.Point) {
			assert.Equal(t, []string{"orders"}, p.Topics())
			assert.Equal(t, "raw", p.ClientID)
			assert.EqualValues(t, 1, end(t, k))
			time.Sleep(time.Second) // the request waits
		}))
		k.Inject(fault.Produce().Nth(2).OnAnswer(func(fault.Point) { // what the rule above struck is not counted
			assert.EqualValues(t, 3, end(t, k))
			time.Sleep(time.Minute)
		}))
		for _, took := range []time.Duration{0, time.Second, time.Minute} {
			start := time.Now()
			require.Zero(t, produce(c, "orders", 0, batch(t, "x")).ErrorCode)
			require.Equal(t, took, time.Since(start))
		}
	})
}

// A hook may end the broker that the request has come to: before it is applied it is lost with it, afterwards it is not.
func TestHookRestartsTheBroker(t *testing.T) {
	for name, restart := range map[string]func(*fakebroker.Cluster) error{
		"restart": func(k *fakebroker.Cluster) error { return k.Restart(context.Background()) },
		"crash": func(k *fakebroker.Cluster) error {
			if err := k.Crash(context.Background()); err != nil {
				return err
			}
			return k.Restart(context.Background())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
				for i, hook := range []func(func(fault.Point)) fault.Rule{fault.Produce().Nth(1).OnArrival, fault.Produce().Nth(1).OnAnswer} {
					done := make(chan error, 1)
					in := k.Inject(hook(func(fault.Point) { done <- restart(k) }))
					c := connect(t, k)
					c.send(12, produceRequest("orders", 0, -1, batch(t, "x")))
					c.closed()
					require.NoError(t, <-done)
					in.Remove()
					require.EqualValues(t, i, end(t, k))
				}
			})
		})
	}
}

func TestLateRequestIsAppliedWhenItsConnectionIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		late := k.Inject(fault.Produce().Nth(1).Late(time.Minute))
		c := connect(t, k)
		c.send(12, produceRequest("orders", 0, -1, batch(t, "early")))
		c.closed()
		late.Remove()
		require.Zero(t, produce(connect(t, k), "orders", 0, batch(t, "on time")).ErrorCode)
		time.Sleep(time.Minute - time.Nanosecond)
		require.EqualValues(t, 1, end(t, k))
		time.Sleep(time.Second)
		synctest.Wait()
		records, err := k.Records("orders", 0, 0)
		require.NoError(t, err)
		require.Len(t, records, 2)
		require.Equal(t, "early", string(records[1].Value))
	})
}

func TestLateRequestWaitsForItsClientToGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		late := k.Inject(fault.Produce().Client("raw").Nth(1).LateAfter(2))
		c := connect(t, k)
		c.send(12, produceRequest("orders", 0, -1, batch(t, "late")))
		c.closed()
		late.Remove() // what it struck still comes
		c = connect(t, k)
		call[*message.ApiVersionsResponse](c, 3, &message.ApiVersionsRequest{ClientSoftwareName: "raw", ClientSoftwareVersion: "1"})
		require.Zero(t, produce(c, "orders", 0, batch(t, "first")).ErrorCode)
		synctest.Wait()
		require.EqualValues(t, 1, end(t, k))
		call[*message.MetadataResponse](c, 12, message.NewMetadataRequest())
		synctest.Wait()
		require.EqualValues(t, 2, end(t, k))
	})
}

// What has not arrived when the broker stops is lost on the way.
func TestLateRequestsEndWithTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		k.Inject(fault.Produce().Nth(1).Late(time.Hour))
		k.Inject(fault.Produce().Nth(1).LateAfter(5))
		for range 2 {
			c := connect(t, k)
			c.send(12, produceRequest("orders", 0, -1, batch(t, "late")))
			c.closed()
		}
		require.NoError(t, k.Restart(t.Context()))
		time.Sleep(2 * time.Hour)
		require.Zero(t, end(t, k))
	})
}
