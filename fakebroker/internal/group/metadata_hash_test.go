package group

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
)

func TestMetadataHashesAreApacheKafkas(t *testing.T) {
	f, err := os.Open("testdata/group_metadata_hash.jsonl")
	require.NoError(t, err)
	defer f.Close()
	n := 0
	for scan := bufio.NewScanner(f); scan.Scan(); n++ {
		var o struct {
			Topics []struct {
				Name, ID       string
				PartitionRacks [][]string
				TopicHash      int64
			}
			GroupHash int64
		}
		require.NoError(t, json.Unmarshal(scan.Bytes(), &o))
		hashes := make(map[string]int64)
		var names []string
		for _, topic := range o.Topics {
			id, err := wire.ParseUUID(topic.ID)
			require.NoError(t, err)
			hash := hashTopic(id, topic.Name, topic.PartitionRacks)
			require.Equal(t, topic.TopicHash, hash, topic.Name)
			hashes[topic.Name] = hash
			names = append(names, topic.Name)
		}
		require.Equal(t, o.GroupHash, hashTopics(sortedStrings(names), func(name string) int64 { return hashes[name] }))
	}
	require.Greater(t, n, 10)
}
