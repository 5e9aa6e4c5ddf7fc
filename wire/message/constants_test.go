package message

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/internal/oracle"
)

// enumPrefixes are the classes of the oracle's table that have a place in messages, with the prefix of our names. The
// other classes are internal to Apache Kafka, have no numbers, or belong to package record.
var enumPrefixes = []struct{ class, prefix string }{
	{"IsolationLevel", "IsolationLevel"},
	{"ListOffsetsRequest", "ListOffsets"},
	{"FetchRequest", "FetchRequest"},
	{"FetchResponse", "FetchResponse"},
	{"FetchMetadata", "FetchSession"},
	{"OffsetsForLeaderEpochResponse", "OffsetForLeaderEpoch"},
	{"MetadataResponse", "Metadata"},
	{"FindCoordinatorRequest.CoordinatorType", "CoordinatorType"},
	{"AddPartitionsToTxnRequest", "AddPartitionsToTxn"},
	{"CreateTopicsRequest", "CreateTopics"},
	{"DeleteRecordsRequest", "DeleteRecords"},
	{"OffsetCommitRequest", "OffsetCommit"},
	{"JoinGroupRequest", "JoinGroup"},
	{"ConsumerGroupHeartbeatRequest", "ConsumerGroupHeartbeat"},
	{"ShareGroupHeartbeatRequest", "ShareGroupHeartbeat"},
	{"StreamsGroupHeartbeatRequest", "StreamsGroupHeartbeat"},
	{"StreamsGroupHeartbeatResponse.Status", "StreamsGroupStatus"},
	{"ShareRequestMetadata", "ShareSession"},
	{"ShareAcquireMode", "ShareAcquireMode"},
	{"AcknowledgeType", "AcknowledgeType"},
	{"RecordState", "RecordState"},
	{"ConfigResource.Type", "ConfigResource"},
	{"AlterConfigOp.OpType", "AlterConfig"},
	{"DescribeConfigsResponse.ConfigSource", "ConfigSource"},
	{"DescribeConfigsResponse.ConfigType", "ConfigType"},
	{"ResourceType", "ResourceType"},
	{"PatternType", "PatternType"},
	{"AclOperation", "AclOperation"},
	{"AclPermissionType", "AclPermission"},
	{"ElectionType", "ElectionType"},
	{"EndpointType", "EndpointType"},
	{"FeatureUpdate.UpgradeType", "UpgradeType"},
	{"ScramMechanism", "ScramMechanism"},
	{"SecurityProtocol", "SecurityProtocol"},
	{"TransactionState(server)", "TransactionState"},
	{"BrokerState", "BrokerState"},
	{"LeaderRecoveryState", "LeaderRecoveryState"},
}

// constants are the names and values in constants.go.
func constants(t *testing.T) map[string]int64 {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "constants.go", nil, 0)
	require.NoError(t, err)
	values := map[string]int64{}
	for _, d := range f.Decls {
		for _, s := range d.(*ast.GenDecl).Specs {
			v := s.(*ast.ValueSpec)
			value, err := strconv.ParseInt(types.ExprString(v.Values[0]), 10, 64)
			require.NoError(t, err)
			values[v.Names[0].Name] = value
		}
	}
	return values
}

func TestOracleEnums(t *testing.T) {
	prefixes := map[string]string{}
	for _, p := range enumPrefixes {
		prefixes[p.class] = p.prefix
	}
	ours, seen := constants(t), map[string]bool{}
	oracle.Table(t, "tables/enums.tsv", func(n int, row map[string]string) {
		prefix, ok := prefixes[row["class"]]
		code, err := strconv.ParseInt(row["code"], 10, 64)
		if !ok || err != nil {
			return
		}
		name := prefix
		for _, w := range strings.Split(row["constant"], "_") {
			name += w[:1] + strings.ToLower(w[1:])
		}
		value, ok := ours[name]
		require.True(t, ok, "line %d: no constant %s", n, name)
		require.Equal(t, code, value, name)
		seen[name] = true
	})
	require.Len(t, seen, len(ours), "constants that Kafka does not have")
}
