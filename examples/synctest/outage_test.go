// Package synctest_test shows tests in virtual time: inside testing/synctest the broker, the network and the clients take
// their time from the test's bubble, which jumps ahead whenever everything waits.
package synctest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
)

// A broker that is away for a minute costs a record a minute and nothing else; the test takes milliseconds.
func TestSendSurvivesAMinuteWithoutABroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		p := newProducer(t, k)
		_, err := p.Send(t.Context(), producer.Record{Topic: "orders", Value: []byte("before")})
		require.NoError(t, err)

		require.NoError(t, k.Stop(t.Context()))
		time.AfterFunc(time.Minute, func() { k.Restart(context.Background()) })
		began := time.Now()
		ack, err := p.Send(t.Context(), producer.Record{Topic: "orders", Value: []byte("during")})
		require.NoError(t, err)
		require.Equal(t, int64(1), ack.Offset)
		require.InDelta(t, 60, time.Since(began).Seconds(), 5)
	})
}

// A broker that stays away costs a record delivery.timeout.ms, and the error says that it is certainly not written.
func TestSendGivesUpAfterTheDeliveryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
		p := newProducer(t, k, producer.DeliveryTimeout(10*time.Minute))
		require.NoError(t, p.Warm(t.Context(), "orders"))

		require.NoError(t, k.Stop(t.Context()))
		began := time.Now()
		_, err := p.Send(t.Context(), producer.Record{Topic: "orders", Value: []byte("lost")})
		require.ErrorIs(t, err, producer.ErrDeliveryTimeout)
		require.Equal(t, producer.NotWritten, producer.Outcome(err))
		require.InDelta(t, 600, time.Since(began).Seconds(), 1)
	})
}

// newProducer makes a producer that is closed before the bubble ends, as everything in it must be.
func newProducer(t *testing.T, k *fakebroker.Cluster, opts ...producer.Option) *producer.Producer {
	cl, err := client.New(client.Cluster(k))
	require.NoError(t, err)
	p, err := producer.New(cl, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close(context.Background()); cl.Close(context.Background()) })
	return p
}
