package admin_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

func set(r admin.Resource, name, value string) admin.ConfigChange {
	return admin.ConfigChange{Resource: r, Op: admin.SetConfig, Name: name, Value: value}
}

func TestConfigsChangeOneByOne(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("orders", 1)))
	orders := admin.TopicConfigs("orders")
	value := func(name string) admin.ConfigEntry {
		rows, err := a.DescribeConfigs(t.Context(), orders)
		require.NoError(t, err)
		e, ok := rows[0].Entry(name)
		require.True(t, ok, name)
		return e
	}
	before := value("retention.ms")
	require.True(t, before.IsDefault())
	require.Equal(t, "LONG", before.Type.String())
	require.NotEmpty(t, before.Doc)

	_, err := a.AlterConfigs(t.Context(), set(orders, "retention.ms", "1000"), set(orders, "cleanup.policy", "compact"))
	require.NoError(t, err)
	require.Equal(t, "retention.ms=1000", value("retention.ms").String())
	require.Equal(t, admin.TopicConfig, value("retention.ms").Source)
	require.Equal(t, "DYNAMIC_TOPIC_CONFIG", value("retention.ms").Synonyms[0].Source.String())
	_, err = a.AlterConfigs(t.Context(),
		admin.ConfigChange{Resource: orders, Op: admin.AppendConfig, Name: "cleanup.policy", Value: "delete"},
		admin.ConfigChange{Resource: orders, Op: admin.DeleteConfig, Name: "retention.ms", Value: "ignored"})
	require.NoError(t, err)
	require.Equal(t, "cleanup.policy=compact,delete", value("cleanup.policy").String())
	require.True(t, value("retention.ms").IsDefault())
	_, err = a.AlterConfigs(t.Context(), admin.ConfigChange{Resource: orders, Op: admin.SubtractConfig, Name: "cleanup.policy", Value: "compact"})
	require.NoError(t, err)
	require.Equal(t, "cleanup.policy=delete", value("cleanup.policy").String())
}

func TestResourcesAreChangedAllOrNone(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("good", 1), fakebroker.Topic("bad", 1)))
	good, bad := admin.TopicConfigs("good"), admin.TopicConfigs("bad")
	rows, err := a.AlterConfigs(t.Context(), set(bad, "retention.ms", "5"), set(good, "retention.ms", "5"), set(bad, "retention.bits", "5"))
	require.ErrorIs(t, err, errcode.InvalidConfig)
	require.ErrorContains(t, err, "retention.bits")
	require.Equal(t, []admin.Resource{bad, good}, []admin.Resource{rows[0].Resource, rows[1].Resource})
	require.NoError(t, rows[1].Err)
	configs, err := a.DescribeConfigs(t.Context(), good, bad, good)
	require.NoError(t, err)
	require.Len(t, configs, 2)
	set, _ := configs[0].Get("retention.ms")
	require.Equal(t, "5", set)
	kept, _ := configs[1].Get("retention.ms")
	require.NotEqual(t, "5", kept)
}

func TestConfigValidationChangesNothing(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("orders", 1)))
	orders := admin.TopicConfigs("orders")
	_, err := a.ValidateConfigs(t.Context(), set(orders, "retention.ms", "5"))
	require.NoError(t, err)
	_, err = a.ValidateConfigs(t.Context(), set(orders, "retention.ms", "five"))
	require.ErrorIs(t, err, errcode.InvalidConfig)
	rows, err := a.DescribeConfigs(t.Context(), orders)
	require.NoError(t, err)
	got, _ := rows[0].Get("retention.ms")
	require.Equal(t, "604800000", got)
}

func TestBrokersAreAskedForTheirOwnConfigs(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("orders", 1)))
	rows, err := a.DescribeConfigs(t.Context(), admin.BrokerConfigs(1), admin.AllBrokersConfigs(), admin.TopicConfigs("missing"), admin.TopicConfigs("orders"))
	require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
	require.NoError(t, rows[0].Err)
	require.NoError(t, rows[1].Err)
	require.Error(t, rows[2].Err)
	require.NoError(t, rows[3].Err)
	node, ok := rows[0].Get("node.id")
	require.True(t, ok)
	require.Equal(t, "1", node)
	_, ok = rows[3].Get("no.such.key")
	require.False(t, ok)
	_, err = a.AlterConfigs(t.Context(), set(admin.AllBrokersConfigs(), "log.retention.ms", "77777"))
	require.NoError(t, err)
	rows, err = a.DescribeConfigs(t.Context(), admin.TopicConfigs("orders"))
	require.NoError(t, err)
	e, _ := rows[0].Entry("retention.ms")
	require.Equal(t, "retention.ms=77777", e.String())
	require.Equal(t, admin.DynamicBrokerDefault, e.Source)
}

func TestConfigResourcesAreListedByKind(t *testing.T) {
	a := adminOf(t, fakebroker.Start(t, fakebroker.Topic("orders", 1)))
	all, err := a.ListConfigResources(t.Context())
	require.NoError(t, err)
	require.Contains(t, all, admin.TopicConfigs("orders"))
	require.Contains(t, all, admin.BrokerConfigs(1))
	topics, err := a.ListConfigResources(t.Context(), admin.TopicResource)
	require.NoError(t, err)
	require.Equal(t, []admin.Resource{admin.TopicConfigs("orders")}, topics)
}

func TestClusterAndVersionsAreToldAsTheyAre(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.NodeID(7), fakebroker.ClusterID("MkU3OEVBNTcwNTJENDM2Qg"))
	a := adminOf(t, k)
	c, err := a.DescribeCluster(t.Context())
	require.NoError(t, err)
	require.Equal(t, "MkU3OEVBNTcwNTJENDM2Qg", c.ID)
	require.Equal(t, int32(7), c.Controller)
	require.Len(t, c.Brokers, 1)
	require.Equal(t, k.Addrs()[0], c.Brokers[0].Addr())
	rows, err := a.APIVersions(t.Context(), 7)
	require.NoError(t, err)
	require.Equal(t, wire.KeyProduce, rows[0].Key)
	require.Positive(t, rows[0].Max)
}
