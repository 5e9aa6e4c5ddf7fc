package image

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

func id(n int) (u wire.UUID) {
	binary.BigEndian.PutUint64(u[8:], uint64(n)+0x1000)
	return u
}

func topicRecord(n int) Record {
	return Record{Record: &logrecord.TopicRecord{Name: fmt.Sprint("topic-", n), TopicId: id(n)}}
}

func partitionRecord(topic, n int) Record {
	p := Partition{ID: int32(n), Replicas: []int32{1}, Directories: []wire.UUID{id(0)}, ISR: []int32{1}, Leader: 1}
	return p.Record(id(topic), MetadataVersionLatest)
}

func changeRecord(topic, n int) Record {
	r := logrecord.NewPartitionChangeRecord()
	r.TopicId, r.PartitionId, r.Leader = id(topic), int32(n), 2
	return Record{Record: r, Version: 2}
}

func configRecord(name, key, value string) Record {
	r := &logrecord.ConfigRecord{ResourceType: 2, ResourceName: name, Name: key}
	if value != "" {
		r.Value = &value
	}
	return Record{Record: r}
}

// apply makes the next image; offsets go on from the base's.
func apply(t testing.TB, base *Image, records ...Record) (*Image, *Delta) {
	d := NewDelta(base)
	offset, _ := base.Offset()
	for _, r := range records {
		offset++
		require.NoError(t, d.Apply(offset, 1, r))
	}
	return d.Image(), d
}

func TestADeltaLeavesItsBaseAsItWas(t *testing.T) {
	base, _ := apply(t, Empty(), topicRecord(1), partitionRecord(1, 0), partitionRecord(1, 1), configRecord("topic-1", "retention.ms", "5"))
	before, err := base.Hash()
	require.NoError(t, err)
	next, d := apply(t, base, changeRecord(1, 1), partitionRecord(1, 2), configRecord("topic-1", "retention.ms", ""),
		configRecord("topic-1", "cleanup.policy", "compact"), topicRecord(2),
		Record{Record: &logrecord.FeatureLevelRecord{Name: "x", FeatureLevel: 1}}, Record{Record: &logrecord.ProducerIdsRecord{NextProducerId: 7}})
	after, err := base.Hash()
	require.NoError(t, err)
	require.Equal(t, before, after)

	require.Equal(t, int32(2), next.Topic("topic-1").Partition(1).Leader)
	require.Equal(t, int32(1), next.Topic("topic-1").Partition(1).LeaderEpoch)
	require.Equal(t, int32(1), next.Topic("topic-1").Partition(1).PartitionEpoch)
	require.Equal(t, map[string]string{"cleanup.policy": "compact"}, next.Configs(config.Resource{Type: config.TopicResource, Name: "topic-1"}))
	require.Same(t, base.Topic("topic-1").Partition(0), next.Topic("topic-1").Partition(0))
	require.True(t, d.FeaturesChanged())
	changes := d.Topics()
	require.Len(t, changes, 2)
	require.Equal(t, []int32{1, 2}, changes[0].Partitions())
	require.Nil(t, changes[1].Old)
	require.Equal(t, []config.Resource{{Type: config.TopicResource, Name: "topic-1"}}, d.Configs())
}

func TestARecreatedTopicIsADeletionAndACreation(t *testing.T) {
	base, _ := apply(t, Empty(), topicRecord(1), partitionRecord(1, 0), configRecord("topic-1", "retention.ms", "5"))
	again := Record{Record: &logrecord.TopicRecord{Name: "topic-1", TopicId: id(77)}}
	img, d := apply(t, base, Record{Record: &logrecord.RemoveTopicRecord{TopicId: id(1)}}, again)
	changes := d.Topics()
	require.Len(t, changes, 2)
	require.Nil(t, changes[0].New)
	require.Nil(t, changes[1].Old)
	require.Equal(t, id(77), img.Topic("topic-1").ID)
	require.Nil(t, img.TopicByID(id(1)))
	require.Nil(t, img.Configs(config.Resource{Type: config.TopicResource, Name: "topic-1"}))
}

func TestRecordsThatMakeNoSenseAreRefused(t *testing.T) {
	base, _ := apply(t, Empty(), topicRecord(1), partitionRecord(1, 0))
	for _, r := range []Record{
		topicRecord(1), partitionRecord(9, 0), partitionRecord(1, 1<<30), changeRecord(1, 7), changeRecord(9, 0),
		{Record: &logrecord.RemoveTopicRecord{TopicId: id(9)}},
		{Record: &logrecord.FenceBrokerRecord{Id: 4}},
		{Record: &logrecord.UnregisterBrokerRecord{BrokerId: 4}},
		{Record: &logrecord.UnregisterControllerRecord{ControllerId: 4}},
		{Record: logrecord.NewBrokerRegistrationChangeRecord()},
		{Record: &logrecord.ClearElrRecord{TopicName: "nope"}},
	} {
		require.Error(t, NewDelta(base).Apply(3, 1, r), "%T", r.Record)
	}
}

func TestTransactionsTakeEffectAtTheirEndOrNever(t *testing.T) {
	begin, end := Record{Record: &logrecord.BeginTransactionRecord{}}, Record{Record: &logrecord.EndTransactionRecord{}}
	abort := Record{Record: &logrecord.AbortTransactionRecord{}}
	l := NewLoader(Empty())
	offset := int64(-1)
	load := func(records ...Record) {
		for _, r := range records {
			offset++
			require.NoError(t, l.Apply(offset, 1, r))
		}
	}
	load(topicRecord(1), begin, topicRecord(2))
	d, img := l.Take()
	require.Nil(t, d, "nothing is told while a transaction is open")
	require.Zero(t, img.TopicCount())
	load(partitionRecord(1, 0), end, topicRecord(3))
	d, img = l.Take()
	require.Len(t, d.Topics(), 3)
	require.Len(t, img.Topic("topic-1").Partitions, 1)

	load(topicRecord(4), configRecord("topic-1", "retention.ms", "1"), begin, topicRecord(5), changeRecord(1, 0),
		configRecord("topic-1", "retention.ms", "2"), Record{Record: &logrecord.RemoveTopicRecord{TopicId: id(3)}}, abort, topicRecord(6))
	d, img = l.Take()
	require.Len(t, d.Topics(), 2)
	require.Nil(t, img.Topic("topic-5"))
	require.NotNil(t, img.Topic("topic-3"))
	require.Equal(t, int32(1), img.Topic("topic-1").Partition(0).Leader)
	require.Equal(t, "1", img.Configs(config.Resource{Type: config.TopicResource, Name: "topic-1"})["retention.ms"])
	last, _ := img.Offset()
	require.Equal(t, offset, last)

	require.Error(t, l.Apply(offset, 1, end))
	require.Error(t, l.Apply(offset, 1, abort))
	load(begin)
	require.Error(t, l.Apply(offset, 1, begin))
}

func TestACheckpointOfEverythingGivesTheSameImage(t *testing.T) {
	rack := "r"
	b := Broker{ID: 3, Epoch: 9, IncarnationID: id(5), Rack: &rack, Endpoints: []Endpoint{{"PLAINTEXT", "h", 9, 0}},
		Features: SupportedFeatures(), Directories: []wire.UUID{id(6)}, CordonedDirectories: []wire.UUID{}}
	c := Controller{ID: 3, IncarnationID: id(8), Endpoints: []Endpoint{{"CONTROLLER", "h", 8, 0}}, Features: SupportedFeatures()}
	acl := &logrecord.AccessControlEntryRecord{Id: id(1), ResourceName: "x"}
	scram := &logrecord.UserScramCredentialRecord{Name: "u", Mechanism: 1}
	quota := &logrecord.ClientQuotaRecord{Entity: []logrecord.ClientQuotaRecordEntityData{{EntityType: "user"}}, Key: "producer_byte_rate", Value: 5}
	token := &logrecord.DelegationTokenRecord{TokenId: "t"}
	records := []Record{{Record: &logrecord.FeatureLevelRecord{Name: MetadataFeature, FeatureLevel: int16(MetadataVersionLatest)}},
		b.Record(MetadataVersionLatest), c.Record(), topicRecord(2), topicRecord(1), partitionRecord(1, 0), changeRecord(1, 0),
		configRecord("topic-1", "retention.ms", "5"), {Record: &logrecord.ProducerIdsRecord{NextProducerId: 5000}},
		{Record: acl}, {Record: scram}, {Record: quota}, {Record: token}}
	img, _ := apply(t, Empty(), records...)
	var checkpoint []Record
	for r := range img.Records() {
		checkpoint = append(checkpoint, r)
	}
	again, _ := apply(t, Empty(), checkpoint...)
	want, err := img.Hash()
	require.NoError(t, err)
	got, err := again.Hash()
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, img.Broker(3), again.Broker(3))
	require.Equal(t, img.Controller(3), again.Controller(3))

	gone, _ := apply(t, img, Record{Record: &logrecord.RemoveAccessControlEntryRecord{Id: id(1)}},
		Record{Record: &logrecord.RemoveUserScramCredentialRecord{Name: "u", Mechanism: 1}},
		Record{Record: &logrecord.RemoveDelegationTokenRecord{TokenId: "t"}},
		Record{Record: &logrecord.ClientQuotaRecord{Entity: quota.Entity, Key: quota.Key, Remove: true}})
	require.Zero(t, gone.others.Len())
}

func TestNamesThatDifferInDotAndUnderscoreOnlyAreSimilar(t *testing.T) {
	named := func(n int, name string) Record {
		return Record{Record: &logrecord.TopicRecord{Name: name, TopicId: id(n)}}
	}
	img, _ := apply(t, Empty(), named(1, "a.b"), named(2, "a_b"), named(3, "ab"))
	require.Equal(t, []string{"a.b", "a_b"}, img.Similar("a_b"))
	require.Nil(t, img.Similar("ab"))
	img, _ = apply(t, img, Record{Record: &logrecord.RemoveTopicRecord{TopicId: id(1)}})
	require.Equal(t, []string{"a_b"}, img.Similar("a.b"))
}

func TestPublishersAreToldInOrderOfTheirStages(t *testing.T) {
	var p Publishers
	var told []Stage
	for _, s := range []Stage{StageCache, StageReplicas, StageConfigs, StageCoordinators} {
		p.Add(s, PublisherFunc(func(*Delta, *Image) { told = append(told, s) }))
	}
	p.Publish(NewDelta(Empty()), Empty())
	require.Equal(t, []Stage{StageConfigs, StageReplicas, StageCoordinators, StageCache}, told)
}

func ExampleDelta() {
	base := Empty()
	d := NewDelta(base)
	for offset, r := range []Record{topicRecord(1), partitionRecord(1, 0), partitionRecord(1, 1)} {
		if err := d.Apply(int64(offset), 1, r); err != nil {
			panic(err)
		}
	}
	next := d.Image()
	for _, c := range d.Topics() {
		fmt.Println(c.Name(), c.Partitions())
	}
	fmt.Println(base.TopicCount(), next.TopicCount())
	// Output:
	// topic-1 [0 1]
	// 0 1
}

func ExamplePublishers() {
	var p Publishers
	p.Add(StageCache, PublisherFunc(func(*Delta, *Image) { fmt.Println("clients hear of it") }))
	p.Add(StageReplicas, PublisherFunc(func(*Delta, *Image) { fmt.Println("partitions are there") }))
	p.Publish(NewDelta(Empty()), Empty())
	// Output:
	// partitions are there
	// clients hear of it
}

func BenchmarkApplyThousandPartitions(b *testing.B) {
	records := []Record{topicRecord(1)}
	for n := range 1000 {
		records = append(records, partitionRecord(1, n))
	}
	b.ReportAllocs()
	for b.Loop() {
		apply(b, Empty(), records...)
	}
}

// One changed partition among 100,000 in 10,000 topics.
func BenchmarkApplyOneToALargeImage(b *testing.B) {
	var records []Record
	for t := range 10_000 {
		records = append(records, topicRecord(t))
		for n := range 10 {
			records = append(records, partitionRecord(t, n))
		}
	}
	img, _ := apply(b, Empty(), records...)
	b.ReportAllocs()
	for b.Loop() {
		apply(b, img, changeRecord(77, 3))
	}
}
