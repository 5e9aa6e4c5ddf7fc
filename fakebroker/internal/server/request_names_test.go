package server

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// withNames are the APIs whose requests name topics, groups or transactional ids; every other API names none.
var withNames = map[wire.Key]string{
	wire.KeyProduce:                    "topic transaction",
	wire.KeyFetch:                      "topic",
	wire.KeyListOffsets:                "topic",
	wire.KeyMetadata:                   "topic",
	wire.KeyDeleteRecords:              "topic",
	wire.KeyOffsetForLeaderEpoch:       "topic",
	wire.KeyDescribeProducers:          "topic",
	wire.KeyDescribeTopicPartitions:    "topic",
	wire.KeyCreateTopics:               "topic",
	wire.KeyDeleteTopics:               "topic",
	wire.KeyCreatePartitions:           "topic",
	wire.KeyListPartitionReassignments: "topic",
	wire.KeyDescribeQuorum:             "topic",
	wire.KeyDescribeConfigs:            "topic group",
	wire.KeyIncrementalAlterConfigs:    "topic group",
	wire.KeyAlterConfigs:               "topic group",
	wire.KeyFindCoordinator:            "group transaction",
	wire.KeyJoinGroup:                  "group",
	wire.KeySyncGroup:                  "group",
	wire.KeyHeartbeat:                  "group",
	wire.KeyLeaveGroup:                 "group",
	wire.KeyDescribeGroups:             "group",
	wire.KeyDeleteGroups:               "group",
	wire.KeyConsumerGroupDescribe:      "group",
	wire.KeyConsumerGroupHeartbeat:     "topic group",
	wire.KeyOffsetCommit:               "topic group",
	wire.KeyOffsetFetch:                "topic group",
	wire.KeyOffsetDelete:               "topic group",
	wire.KeyInitProducerId:             "transaction",
	wire.KeyAddPartitionsToTxn:         "topic transaction",
	wire.KeyAddOffsetsToTxn:            "group transaction",
	wire.KeyTxnOffsetCommit:            "topic group transaction",
	wire.KeyEndTxn:                     "transaction",
	wire.KeyWriteTxnMarkers:            "topic",
	wire.KeyDescribeTransactions:       "transaction",
}

func TestNamesAreFoundInTheRequestsOfEveryAPIThatIsServed(t *testing.T) {
	b := &Broker{table: newPartitionTable()}
	for k := range handlers {
		got := map[string]bool{}
		for kind := range int8(33) { // of coordinator, of config resource
			req := message.NewRequest(k)
			fill(reflect.ValueOf(req).Elem(), kind)
			n := b.namesOf(req)
			got["topic"] = got["topic"] || slices.Contains(n.topics, "some-name")
			got["group"] = got["group"] || slices.Contains(n.groups, "some-name")
			got["transaction"] = got["transaction"] || slices.Contains(n.transactionalIDs, "some-name")
			for _, name := range slices.Concat(n.topics, n.groups, n.transactionalIDs) {
				require.Equal(t, "some-name", name)
			}
		}
		for what, found := range got {
			require.Equal(t, strings.Contains(withNames[k], what), found, "%s in %s", what, k)
		}
	}
}

// fill puts one element into every list and some-name into every string.
func fill(v reflect.Value, kind int8) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("some-name")
	case reflect.Int8:
		v.SetInt(int64(kind))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), kind)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), kind)
		}
	case reflect.Slice:
		if v.Type() != reflect.TypeFor[wire.Tags]() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), kind)
		}
	}
}

func TestTopicIDsAreNamesToo(t *testing.T) {
	b := &Broker{table: newPartitionTable()}
	id := wire.UUID{1}
	b.table.put(&topic{id: id, name: "orders"})
	req := &message.FetchRequest{Topics: []message.FetchRequestFetchTopic{{TopicId: id}, {TopicId: wire.UUID{2}}},
		ForgottenTopicsData: []message.FetchRequestForgottenTopic{{Topic: "gone"}}}
	require.Equal(t, []string{"orders"}, b.namesOf(req).topics)
}
