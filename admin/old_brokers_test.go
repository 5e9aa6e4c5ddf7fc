package admin_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// What Kafka 2.1 knows works, in the fields that its versions have.
func TestKafka21IsAdministered(t *testing.T) {
	p := kafka21(t, func(r *wiretest.Request) message.Response {
		switch req := r.Body.(type) {
		case *message.CreateTopicsRequest:
			return &message.CreateTopicsResponse{Topics: []message.CreatableTopicResult{
				{Name: req.Topics[0].Name, ErrorCode: int16(errcode.TopicAlreadyExists), ErrorMessage: new("Topic 'orders' already exists.")}}}
		case *message.DeleteTopicsRequest:
			return &message.DeleteTopicsResponse{Responses: []message.DeletableTopicResult{{Name: new(req.TopicNames[0])}}}
		case *message.DescribeConfigsRequest:
			return &message.DescribeConfigsResponse{Results: []message.DescribeConfigsResult{{ResourceType: 2, ResourceName: "orders",
				Configs: []message.DescribeConfigsResourceResult{{Name: "retention.ms", Value: new("5"), ConfigSource: 1}}}}}
		case *message.ListOffsetsRequest:
			return listed(req, func(string, int32) (int64, int16) { return 42, 0 })
		}
		return nil
	})
	p.SetTopic("orders", 3, 1)
	a := adminOf(t, p)

	rows, err := a.CreateTopics(t.Context(), admin.NewTopic{Name: "orders", Partitions: 1, Replicas: 1})
	require.ErrorIs(t, err, errcode.TopicAlreadyExists)
	require.ErrorContains(t, err, "Topic 'orders' already exists.")
	require.Equal(t, -1, rows[0].Partitions)

	deleted, err := a.DeleteTopics(t.Context(), "orders")
	require.NoError(t, err)
	require.True(t, deleted[0].ID.IsZero())

	topics, err := a.DescribeTopics(t.Context(), "orders")
	require.NoError(t, err)
	require.Equal(t, int32(1), topics[0].Partitions[0].Leader)
	require.Equal(t, int32(3), topics[0].Partitions[0].LeaderEpoch)
	require.Nil(t, topics[0].Partitions[0].ELR)

	configs, err := a.DescribeConfigs(t.Context(), admin.TopicConfigs("orders"))
	require.NoError(t, err)
	require.Equal(t, "retention.ms=5", configs[0].Entries[0].String())
	require.Equal(t, "UNKNOWN", configs[0].Entries[0].Type.String())

	for _, spec := range []admin.OffsetSpec{admin.Latest, admin.Earliest, admin.LastStable} {
		offsets, err := a.ListOffsets(t.Context(), spec, tp("orders", 0))
		require.NoError(t, err)
		require.Equal(t, int64(42), offsets[0].Offset)
	}
	cluster, err := a.DescribeCluster(t.Context())
	require.NoError(t, err)
	require.Equal(t, "wiretest-cluster-000000", cluster.ID)
	require.Equal(t, "broker-1:9092", cluster.Brokers[0].Addr())
	versions, err := a.APIVersions(t.Context(), 1)
	require.NoError(t, err)
	require.NotEmpty(t, versions)
}

// What takes a later version than 2.1 says so in its comment, and the error of an older broker is ErrUnsupportedVersion;
// everything else is asked for in a version that 2.1 has.
func TestEachMethodTakesTheBrokersThatItsCommentNames(t *testing.T) {
	since := map[string]string{"AlterConfigs": "2.3", "ValidateConfigs": "2.3", "DeleteGroupOffsets": "2.4", "DescribeProducers": "2.8", "DescribeProducersOn": "2.8",
		"FindOpenTransaction": "2.8", "AbortTransaction": "2.8", "ListTransactions": "3.0", "DescribeTransactions": "3.0", "HangingTransactions": "3.0", "ListConfigResources": "4.1"}
	p := kafka21(t, coordinated(func(r *wiretest.Request) message.Response {
		if r.Key == wire.KeyApiVersions || r.Key == wire.KeyMetadata {
			return nil
		}
		return r.Body.NewResponse()
	}, func(string) int32 { return 1 }))
	p.SetTopic("x", 0, 1)
	said := comments(t)
	for _, m := range methods(t, adminOf(t, p)) {
		_, err := m.call(t.Context(), 1)
		if first, later := since[m.name]; later {
			require.ErrorIs(t, err, client.ErrUnsupportedVersion, m.name)
			require.Contains(t, said[m.name], "from "+first, m.name)
			if m.name == "HangingTransactions" {
				first = "2.8" // its first request
			}
			require.ErrorContains(t, err, "hint: it takes brokers from "+first+" on", m.name)
		} else {
			require.NotErrorIs(t, err, client.ErrUnsupportedVersion, m.name)
		}
	}
}

// comments are those of the package's methods, each on one line.
func comments(t *testing.T) map[string]string {
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	said := map[string]string{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				said[fn.Name.Name] = strings.Join(strings.Fields(fn.Doc.Text()), " ")
			}
		}
	}
	return said
}

// What it does not know is refused before anything is sent, and the error says what to do.
func TestKafka21IsAskedForNothingItWouldMisunderstand(t *testing.T) {
	p := kafka21(t, func(*wiretest.Request) message.Response { return nil })
	p.SetTopic("orders", 3, 1)
	a := adminOf(t, p)
	_, err := a.CreateTopics(t.Context(), admin.NewTopic{Name: "orders"})
	require.ErrorIs(t, err, client.ErrUnsupportedVersion)
	require.ErrorContains(t, err, "name both")
	_, err = a.AlterConfigs(t.Context(), set(admin.TopicConfigs("orders"), "retention.ms", "5"))
	require.ErrorIs(t, err, client.ErrUnsupportedVersion)
	_, err = a.ListConfigResources(t.Context())
	require.ErrorIs(t, err, client.ErrUnsupportedVersion)
	for _, spec := range []admin.OffsetSpec{admin.MaxTimestamp, admin.EarliestLocal, admin.LatestTiered} {
		rows, err := a.ListOffsets(t.Context(), spec, tp("orders", 0))
		require.ErrorIs(t, err, client.ErrUnsupportedVersion, "the broker would take the number for a time")
		require.ErrorContains(t, err, "hint: it takes brokers from 3.")
		require.Error(t, rows[0].Err)
	}
	require.Empty(t, p.Requests(wire.KeyListOffsets, wire.KeyCreateTopics))
}

// Kafka 3.7 to 4.0 list one kind of resource by the request that later lists all.
func TestClientMetricsAreListedByKafka37(t *testing.T) {
	p := peer(t, 1, func(r *wiretest.Request) message.Response {
		if _, ok := r.Body.(*message.ListConfigResourcesRequest); ok {
			return &message.ListConfigResourcesResponse{ConfigResources: []message.ConfigResource{{ResourceName: "slow", ResourceType: 16}}}
		}
		return nil
	})
	p.SetVersions(wire.KeyListConfigResources, 0, 0)
	a := adminOf(t, p)
	rows, err := a.ListConfigResources(t.Context(), admin.ClientMetricsResource)
	require.NoError(t, err)
	require.Equal(t, []admin.Resource{{Type: admin.ClientMetricsResource, Name: "slow"}}, rows)
	_, err = a.ListConfigResources(t.Context(), admin.TopicResource)
	require.ErrorIs(t, err, client.ErrUnsupportedVersion)
}

// Kafka 2.1 has transactions and tells nothing of them; their producers can be fenced there, too.
func TestTransactionsOfKafka21(t *testing.T) {
	p := kafka21(t, coordinated(func(r *wiretest.Request) message.Response {
		if req, ok := r.Body.(*message.InitProducerIdRequest); ok {
			require.EqualValues(t, 1, r.Version)
			require.Equal(t, "billing", *req.TransactionalId)
			return &message.InitProducerIdResponse{ProducerId: 5, ProducerEpoch: 2, OngoingTxnProducerId: -1, OngoingTxnProducerEpoch: -1}
		}
		return nil
	}, func(string) int32 { return 1 }))
	p.SetTopic("orders", 3, 1)
	for k, most := range map[wire.Key]int16{wire.KeyFindCoordinator: 2, wire.KeyInitProducerId: 1, wire.KeyListTransactions: -1, wire.KeyDescribeTransactions: -1,
		wire.KeyDescribeProducers: -1, wire.KeyWriteTxnMarkers: -1} {
		least, _, _ := wire.BrokerVersions(k)
		p.SetVersions(k, least, most)
	}
	a := adminOf(t, p)
	for name, call := range map[string]func() error{
		"list":      func() error { _, err := a.ListTransactions(t.Context(), admin.TransactionFilter{}); return err },
		"describe":  func() error { _, err := a.DescribeTransactions(t.Context(), "billing"); return err },
		"producers": func() error { _, err := a.DescribeProducers(t.Context(), tp("orders", 0)); return err },
		"hanging":   func() error { _, err := a.HangingTransactions(t.Context(), admin.HangingSearch{}); return err },
		"abort": func() error {
			return a.AbortTransaction(t.Context(), admin.AbortSpec{TopicPartition: tp("orders", 0), ProducerID: 5})
		},
	} {
		require.ErrorIs(t, call(), client.ErrUnsupportedVersion, name)
	}
	rows, err := a.FenceProducers(t.Context(), "billing")
	require.NoError(t, err)
	require.Equal(t, []admin.FencedProducer{{ID: "billing", ProducerID: 5, ProducerEpoch: 2}}, rows)
	require.NoError(t, a.ForceTerminateTransaction(t.Context(), "billing"), "without a look whether it exists")
}
