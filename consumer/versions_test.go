package consumer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// TestBrokersOfEveryAgeAreRead lets brokers speak no more than some version of Fetch, with what else there was then:
// sessions from version 7 on, leader epochs from 9, topic ids from 13.
func TestBrokersOfEveryAgeAreRead(t *testing.T) {
	for version := int16(4); version <= 18; version++ {
		t.Run(fmt.Sprint("fetch v", version), func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, k *logpeer.Cluster) {
				k.SetVersions(wire.KeyFetch, 4, version)
				if version < 9 {
					k.SetVersions(wire.KeyListOffsets, 1, 3)
					k.SetVersions(wire.KeyMetadata, 0, 6)
				} else if version < 13 {
					k.SetVersions(wire.KeyMetadata, 0, 9)
				}
				k.Topic("orders", 1, 2)
				for range 3 {
					k.Append(t, "orders", 0, 10, compress.Gzip)
					k.Append(t, "orders", 1, 10, compress.None)
				}
				c := consume(t, k, consumer.Assign("orders", 0, 1), consumer.StartAt(consumer.Earliest))
				all := take(t, c, 45)
				require.NoError(t, c.Pause(tp("orders", 0)))
				require.NoError(t, c.Resume(tp("orders", 0)))
				k.MoveLeader("orders", 0, 2)
				k.Announce("orders")
				k.Append(t, "orders", 0, 10, compress.None)
				requireRuns(t, append(all, take(t, c, 25)...), nil)
				nothing(t, c, 5*time.Second)
				fetches := k.Requests(wire.KeyFetch)
				require.Equal(t, version, fetches[len(fetches)-1].Version)
				if version >= 7 {
					require.NotZero(t, k.Sessions())
				}
			})
		})
	}
}
