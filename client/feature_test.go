package client_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// A client knows the features of the cluster from its first connection on.
func ExampleClient_Feature() {
	k, err := fakebroker.New(fakebroker.Feature("transaction.version", 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	defer k.Close(ctx)
	c, err := client.New(client.Cluster(k))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	_, _, ok := c.Feature("transaction.version")
	fmt.Println(ok)
	c.AwaitTopics(ctx)
	level, _, ok := c.Feature("transaction.version")
	fmt.Println(level, ok)
	// Output:
	// false
	// 1 true
}

// Brokers hear of a change one after the other: the newest picture counts, whoever was connected last.
func TestTheNewestPictureOfFeaturesCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, 3, func(r *wiretest.Request) message.Response {
			if r.Key != wire.KeyApiVersions {
				return answerCluster(r)
			}
			resp := message.NewApiVersionsResponse()
			for k := range wire.Keys {
				if least, most, ok := wire.BrokerVersions(k); ok {
					resp.ApiKeys = append(resp.ApiKeys, message.ApiVersion{ApiKey: int16(k), MinVersion: least, MaxVersion: most})
				}
			}
			if epoch := int64(r.Broker); epoch < 3 { // the third is too old to know of features
				resp.FinalizedFeaturesEpoch = epoch
				resp.FinalizedFeatures = []message.FinalizedFeatureKey{{Name: "transaction.version", MaxVersionLevel: int16(epoch)}}
			}
			return resp
		})
		for _, broker := range []int32{1, 2, 3, 1} {
			use(t, c, broker, client.Transactions)
			use(t, c, broker, client.Produce)
		}
		level, epoch, ok := c.Feature("transaction.version")
		require.True(t, ok)
		require.EqualValues(t, 2, level)
		require.EqualValues(t, 2, epoch)
		level, _, ok = c.Feature("share.version")
		require.True(t, ok)
		require.Zero(t, level)
	})
}
