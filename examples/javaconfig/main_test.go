package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/compress"
)

func Example() {
	ctx := context.Background()
	k, err := fakebroker.New(fakebroker.Topic("orders", 1), fakebroker.User("alice", "wonder"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer k.Close(ctx)

	if err := run(ctx, "orders", "producer.properties", "consumer.properties", client.Cluster(k)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0: ada = 0 (int64)
	// 1: bob = 100 (int64)
	// 2: cyd = 200 (int64)
}

// Every line of the files arrives in the configuration.
func TestFilesSetWhatTheySay(t *testing.T) {
	properties, err := load("producer.properties")
	require.NoError(t, err)
	cc, pc, err := producer.FromProperties(properties)
	require.NoError(t, err)
	require.Equal(t, []string{"localhost:9092"}, cc.Seeds)
	require.Equal(t, "orders-writer", cc.ClientID)
	require.Equal(t, client.SecuritySASLPlaintext, cc.Security)
	require.Equal(t, "PLAIN", cc.SASL.Name())
	require.Equal(t, compress.Zstd, pc.Compression)
	require.Equal(t, 10*time.Millisecond, pc.Linger)
	require.Equal(t, time.Minute, pc.DeliveryTimeout)
	require.Equal(t, producer.FormatInt64, pc.ValueFormat)
	require.NotContains(t, fmt.Sprint(cc), "wonder", "a printed configuration keeps its password")

	properties, err = load("consumer.properties")
	require.NoError(t, err)
	_, oc, err := consumer.FromProperties(properties)
	require.NoError(t, err)
	require.Equal(t, "orders", oc.Group.ID)
	require.Equal(t, consumer.ReadCommitted, oc.Isolation)
	require.Equal(t, consumer.Earliest, oc.Reset)
	require.Equal(t, consumer.FormatInt64, oc.ValueFormat)
	require.Equal(t, 100, oc.MaxPollRecords)
}

// A wrong password, a typing error and a missing file are errors that say so.
func TestWhatIsWrongWithFilesIsSaid(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1), fakebroker.User("alice", "another"))
	require.ErrorIs(t, run(t.Context(), "orders", "producer.properties", "consumer.properties", client.Cluster(k)), client.ErrAuth)
	require.ErrorIs(t, run(t.Context(), "orders", "no-such-file", "consumer.properties"), os.ErrNotExist)
	_, _, err := producer.FromProperties(map[string]string{"bootstrap.servers": "x:1", "linger": "5"})
	require.ErrorContains(t, err, "did you mean linger.ms?")
}
