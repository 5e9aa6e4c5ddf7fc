package server

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// admin is a connection to a broker of its own, for tests of the admin APIs.
type admin struct {
	t      testing.TB
	broker *Broker
	conn   net.Conn
}

func startAdmin(t testing.TB, properties map[string]string) *admin {
	b, conn := openBroker(t, vfs.NewMem(), properties)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		require.NoError(t, b.Close())
	})
	return &admin{t: t, broker: b, conn: conn}
}

// openBroker opens a broker and a connection to it.
func openBroker(t testing.TB, fs vfs.FS, properties map[string]string) (*Broker, net.Conn) {
	l := network.NewMemoryListener("broker:9092")
	b, err := Open(t.Context(), optionsOf(t, fs, l, properties))
	require.NoError(t, err)
	conn, err := l.Dial(context.Background())
	require.NoError(t, err)
	return b, conn
}

// optionsOf makes ids that are the same in every run.
func optionsOf(t testing.TB, fs vfs.FS, l net.Listener, properties map[string]string) Options {
	layers, err := config.NewLayers(properties)
	require.NoError(t, err)
	var ids atomic.Uint64
	return Options{
		Config: layers, FS: fs, Dirs: []string{"/data"}, NodeID: 1, ClusterID: "AAECAwQFBgcICQoLDA0ODw",
		Listeners: []Listener{{Name: "PLAINTEXT", Host: "broker", Port: 9092, Listener: l}},
		Faults:    new(fault.Set), Logger: slog.New(slog.DiscardHandler),
		NewUUID: func() (u wire.UUID) { binary.BigEndian.PutUint64(u[8:], 0x1000+ids.Add(1)); return u },
		Random:  func(int64) int64 { return 0 },
	}
}

// ask sends a request in a version and returns the answer.
func ask[R message.Response](a *admin, version int16, req message.Request) R {
	a.t.Helper()
	frame := wire.AppendRequestHeader(make([]byte, 4), req.Key(), version, 7, nil)
	frame, err := req.AppendTo(frame, version)
	require.NoError(a.t, err)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	require.NoError(a.t, a.conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = a.conn.Write(frame)
	require.NoError(a.t, err)
	size := make([]byte, 4)
	_, err = io.ReadFull(a.conn, size)
	require.NoError(a.t, err)
	body := make([]byte, binary.BigEndian.Uint32(size))
	_, err = io.ReadFull(a.conn, body)
	require.NoError(a.t, err)
	r := wire.NewReader(body)
	_, err = wire.ReadResponseHeader(r, req.Key(), version)
	require.NoError(a.t, err)
	resp := req.NewResponse()
	require.NoError(a.t, resp.ReadFrom(r, version))
	return resp.(R)
}

func (a *admin) create(name string, partitions int32, configs ...message.CreatableTopicConfig) {
	resp := ask[*message.CreateTopicsResponse](a, 7, &message.CreateTopicsRequest{TimeoutMs: 1000, Topics: []message.CreatableTopic{
		{Name: name, NumPartitions: partitions, ReplicationFactor: 1, Configs: configs}}})
	require.Equal(a.t, errcode.None, errcode.Code(resp.Topics[0].ErrorCode))
}

// metadata asks for topics by name; the second value of each pair is the code.
func (a *admin) metadata(version int16, create bool, names ...string) map[string]errcode.Code {
	req := &message.MetadataRequest{AllowAutoTopicCreation: create, Topics: []message.MetadataRequestTopic{}}
	for i := range names {
		req.Topics = append(req.Topics, message.MetadataRequestTopic{Name: &names[i]})
	}
	codes := make(map[string]errcode.Code)
	for _, t := range ask[*message.MetadataResponse](a, version, req).Topics {
		codes[*t.Name] = errcode.Code(t.ErrorCode)
	}
	return codes
}

func TestTopicsAreCreatedOnDemandOnlyIfBothSidesWantIt(t *testing.T) {
	a := startAdmin(t, map[string]string{"num.partitions": "3"})
	unknown := map[string]errcode.Code{"orders": errcode.UnknownTopicOrPartition}
	require.Equal(t, unknown, a.metadata(13, false, "orders"))
	require.Equal(t, unknown, a.metadata(13, false, "orders"), "not even after it was asked for")
	require.Equal(t, unknown, a.metadata(13, true, "orders"), "the first answer does not wait for clients that do not retry")
	require.Equal(t, map[string]errcode.Code{"orders": errcode.None}, a.metadata(13, false, "orders"))
	require.Len(t, a.broker.Image().Topic("orders").Partitions, 3)
	require.Equal(t, map[string]errcode.Code{"a b": errcode.InvalidTopicException}, a.metadata(13, true, "a b"))
	require.Equal(t, errcode.UnknownTopicOrPartition, a.metadata(1, true, "old")["old"], "versions without the flag create")
	require.NotNil(t, a.broker.Image().Topic("old"))

	a = startAdmin(t, map[string]string{"auto.create.topics.enable": "false"})
	a.metadata(13, true, "orders")
	require.Nil(t, a.broker.Image().Topic("orders"))
}

func TestInternalTopicsAreCreatedInTheirOwnShape(t *testing.T) {
	a := startAdmin(t, map[string]string{"offsets.topic.num.partitions": "7", "offsets.topic.replication.factor": "1"})
	a.metadata(13, true, "__consumer_offsets")
	require.Len(t, a.broker.Image().Topic("__consumer_offsets").Partitions, 7)
	configs := a.broker.Image().Configs(config.Resource{Type: config.TopicResource, Name: "__consumer_offsets"})
	require.Equal(t, map[string]string{"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}, configs)
}

func TestNullAndEmptyTopicListsOfMetadata(t *testing.T) {
	a := startAdmin(t, nil)
	a.create("orders", 1)
	count := func(version int16, topics []message.MetadataRequestTopic) int {
		return len(ask[*message.MetadataResponse](a, version, &message.MetadataRequest{Topics: topics, AllowAutoTopicCreation: true}).Topics)
	}
	empty := []message.MetadataRequestTopic{}
	require.Equal(t, 1, count(0, empty))
	for version := int16(1); version <= 13; version++ {
		require.Equal(t, 1, count(version, nil), version)
		require.Zero(t, count(version, empty), version)
	}
}

func TestNamesAndIdsThatAVersionCannotSayAreRefused(t *testing.T) {
	a := startAdmin(t, nil)
	for _, topic := range []message.MetadataRequestTopic{{}, {Name: new(string), TopicId: wire.UUID{1}}} {
		resp := ask[*message.MetadataResponse](a, 10, &message.MetadataRequest{Topics: []message.MetadataRequestTopic{topic}})
		require.Equal(t, errcode.InvalidRequest, errcode.Code(resp.Topics[0].ErrorCode))
	}
}

func TestPartitionsAreDescribedPageByPage(t *testing.T) {
	a := startAdmin(t, nil)
	for _, name := range []string{"b", "a", "c"} {
		a.create(name, 3)
	}
	var seen []string
	req := &message.DescribeTopicPartitionsRequest{ResponsePartitionLimit: 2}
	for page := 0; ; page++ {
		require.Less(t, page, 10)
		resp := ask[*message.DescribeTopicPartitionsResponse](a, 0, req)
		n := 0
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				seen = append(seen, *topic.Name+string(rune('0'+p.PartitionIndex)))
				n++
			}
		}
		require.LessOrEqual(t, n, 2)
		if resp.NextCursor == nil {
			break
		}
		req.Cursor = &message.DescribeTopicPartitionsRequestCursor{TopicName: resp.NextCursor.TopicName, PartitionIndex: resp.NextCursor.PartitionIndex}
	}
	require.Equal(t, []string{"a0", "a1", "a2", "b0", "b1", "b2", "c0", "c1", "c2"}, seen)

	name := []message.DescribeTopicPartitionsRequestTopicRequest{{Name: "b"}}
	for _, cursor := range []message.DescribeTopicPartitionsRequestCursor{{TopicName: "a", PartitionIndex: -1}, {TopicName: "zz"}} {
		resp := ask[*message.DescribeTopicPartitionsResponse](a, 0, &message.DescribeTopicPartitionsRequest{Topics: name, ResponsePartitionLimit: 2, Cursor: &cursor})
		require.Equal(t, errcode.InvalidRequest, errcode.Code(resp.Topics[0].ErrorCode))
	}
}

func TestOneRequestMayAlterSeveralResources(t *testing.T) {
	a := startAdmin(t, nil)
	a.create("orders", 1)
	value := func(s string) *string { return &s }
	set := func(kind config.ResourceType, name, key, v string) message.IncrementalAlterConfigsRequestAlterConfigsResource {
		return message.IncrementalAlterConfigsRequestAlterConfigsResource{ResourceType: int8(kind), ResourceName: name,
			Configs: []message.IncrementalAlterConfigsRequestAlterableConfig{{Name: key, Value: value(v)}}}
	}
	resp := ask[*message.IncrementalAlterConfigsResponse](a, 1, &message.IncrementalAlterConfigsRequest{
		Resources: []message.IncrementalAlterConfigsRequestAlterConfigsResource{
			set(config.BrokerLoggerResource, "1", "kafka", "DEBUG"),
			set(config.TopicResource, "orders", "retention.ms", "5"),
			set(config.BrokerResource, "9", "message.max.bytes", "5"),
			set(config.TopicResource, "nope", "retention.ms", "5"),
			set(config.BrokerResource, "1", "node.id", "5"),
			set(config.BrokerResource, "", "message.max.bytes", "2000000"),
			set(config.ResourceType(99), "x", "y", "z"),
		}})
	var codes []errcode.Code
	for _, r := range resp.Responses {
		codes = append(codes, errcode.Code(r.ErrorCode))
	}
	require.Equal(t, []errcode.Code{errcode.InvalidConfig, errcode.None, errcode.InvalidRequest, errcode.UnknownTopicOrPartition,
		errcode.InvalidRequest, errcode.None, errcode.InvalidRequest}, codes)
	require.Equal(t, "orders", resp.Responses[1].ResourceName)

	got := ask[*message.DescribeConfigsResponse](a, 4, &message.DescribeConfigsRequest{IncludeSynonyms: true, IncludeDocumentation: true,
		Resources: []message.DescribeConfigsResource{{ResourceType: int8(config.TopicResource), ResourceName: "orders",
			ConfigurationKeys: []string{"max.message.bytes", "retention.ms"}}}}).Results[0].Configs
	require.Len(t, got, 2)
	require.Equal(t, "2000000", *got[0].Value, "the broker's new default is the topic's")
	require.Equal(t, int8(config.DynamicDefaultSource), got[0].ConfigSource)
	require.Equal(t, "INT, importance medium, default 1048588, valid values [0,...], broker config message.max.bytes.", *got[0].Documentation)
	require.Equal(t, "5", *got[1].Value)

	old := ask[*message.AlterConfigsResponse](a, 2, &message.AlterConfigsRequest{Resources: []message.AlterConfigsRequestAlterConfigsResource{
		{ResourceType: int8(config.BrokerLoggerResource), ResourceName: "1"},
		{ResourceType: int8(config.TopicResource), ResourceName: "orders"}}})
	require.Equal(t, errcode.InvalidRequest, errcode.Code(old.Responses[0].ErrorCode))
	require.Equal(t, errcode.None, errcode.Code(old.Responses[1].ErrorCode))
	require.Nil(t, a.broker.Image().Configs(config.Resource{Type: config.TopicResource, Name: "orders"}), "what is not named is removed")
}

func TestDynamicBrokerConfigsComeIntoEffect(t *testing.T) {
	a := startAdmin(t, map[string]string{"auto.create.topics.enable": "false"})
	a.create("orders", 1)
	bytes := "1234"
	ask[*message.IncrementalAlterConfigsResponse](a, 1, &message.IncrementalAlterConfigsRequest{
		Resources: []message.IncrementalAlterConfigsRequestAlterConfigsResource{{ResourceType: int8(config.BrokerResource), ResourceName: "1",
			Configs: []message.IncrementalAlterConfigsRequestAlterableConfig{{Name: "message.max.bytes", Value: &bytes}}}}})
	require.EqualValues(t, 1234, a.broker.Config().Int("message.max.bytes"))
	log, ok := a.broker.Log("orders", 0)
	require.True(t, ok)
	require.EqualValues(t, 1234, log.Config().MaxMessageBytes)
}

func TestTheLoggersLevelIsToldAndNotAltered(t *testing.T) {
	a := startAdmin(t, nil)
	res := []message.DescribeConfigsResource{{ResourceType: int8(config.BrokerLoggerResource), ResourceName: "1"}}
	got := ask[*message.DescribeConfigsResponse](a, 4, &message.DescribeConfigsRequest{Resources: res}).Results[0]
	require.Equal(t, "root", got.Configs[0].Name)
	require.Equal(t, "OFF", *got.Configs[0].Value)
	res[0].ResourceName = "x"
	got = ask[*message.DescribeConfigsResponse](a, 4, &message.DescribeConfigsRequest{Resources: res}).Results[0]
	require.Equal(t, errcode.InvalidRequest, errcode.Code(got.ErrorCode))
}

func TestConfigResourcesAreListedByType(t *testing.T) {
	a := startAdmin(t, nil)
	a.create("orders", 1)
	list := func(version int16, types ...int8) *message.ListConfigResourcesResponse {
		return ask[*message.ListConfigResourcesResponse](a, version, &message.ListConfigResourcesRequest{ResourceTypes: types})
	}
	require.Len(t, list(1).ConfigResources, 3)
	require.Len(t, list(1, int8(config.TopicResource)).ConfigResources, 1)
	require.Empty(t, list(0).ConfigResources)
	require.Equal(t, errcode.UnsupportedVersion, errcode.Code(list(1, 99).ErrorCode))
}

func TestTheQuorumIsDescribed(t *testing.T) {
	a := startAdmin(t, nil)
	topics := []message.DescribeQuorumRequestTopicData{{TopicName: "__cluster_metadata", Partitions: []message.DescribeQuorumRequestPartitionData{{}}}}
	resp := ask[*message.DescribeQuorumResponse](a, 2, &message.DescribeQuorumRequest{Topics: topics})
	p := resp.Topics[0].Partitions[0]
	require.Equal(t, int32(1), p.LeaderId)
	require.Equal(t, int32(1), p.LeaderEpoch)
	require.Positive(t, p.HighWatermark)
	require.Equal(t, p.HighWatermark, p.CurrentVoters[0].LogEndOffset)
	for v := range int16(2) { // which have fewer fields
		resp = ask[*message.DescribeQuorumResponse](a, v, &message.DescribeQuorumRequest{Topics: topics})
		require.Len(t, resp.Topics[0].Partitions[0].CurrentVoters, 1)
	}
	topics[0].TopicName = "orders"
	resp = ask[*message.DescribeQuorumResponse](a, 2, &message.DescribeQuorumRequest{Topics: topics})
	require.Equal(t, errcode.UnknownTopicOrPartition, errcode.Code(resp.Topics[0].Partitions[0].ErrorCode))
}

func TestApiVersionsKnowsWhomAClientExpects(t *testing.T) {
	a := startAdmin(t, nil)
	cluster, other := "AAECAwQFBgcICQoLDA0ODw", "AAAAAAAAAAAAAAAAAAAAAA"
	for _, c := range []struct {
		cluster *string
		node    int32
		code    errcode.Code
	}{
		{nil, -1, errcode.None}, {&cluster, 1, errcode.None},
		{&cluster, -1, errcode.InvalidRequest}, {nil, 1, errcode.InvalidRequest},
		{&other, 1, errcode.RebootstrapRequired}, {&cluster, 2, errcode.RebootstrapRequired},
	} {
		resp := ask[*message.ApiVersionsResponse](a, 5, &message.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1", ClusterId: c.cluster, NodeId: c.node})
		require.Equal(t, c.code, errcode.Code(resp.ErrorCode))
		require.Equal(t, c.code == errcode.None, len(resp.ApiKeys) > 0)
	}
}

func TestFeatureUpdatesThatGoWellAreListedForOldClients(t *testing.T) {
	a := startAdmin(t, nil)
	update := &message.UpdateFeaturesRequest{FeatureUpdates: []message.FeatureUpdateKey{{Feature: "group.version", MaxVersionLevel: 1, UpgradeType: 1}}}
	for v := range int16(3) {
		resp := ask[*message.UpdateFeaturesResponse](a, v, update)
		require.Zero(t, resp.ErrorCode)
		require.Equal(t, v < 2, len(resp.Results) == 1, "version %d", v)
	}
}
