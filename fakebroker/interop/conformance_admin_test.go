package interop

import (
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

func metadataVersions(c *conversation) {
	c.create("cf-metadata", 2)
	for _, v := range versions(wire.KeyMetadata) {
		ask := func(label string, auto bool, topics ...string) {
			req := message.NewMetadataRequest()
			req.AllowAutoTopicCreation = auto || v < 4
			req.Topics = []message.MetadataRequestTopic{}
			for _, t := range topics {
				req.Topics = append(req.Topics, message.MetadataRequestTopic{Name: &t})
			}
			c.ask(label, v, req)
		}
		ask("one", true, "cf-metadata")
		if v >= 1 {
			ask("none", true)
		}
		if v >= 4 {
			ask("absent", false, "cf-not-there")
			ask("bad name", false, "cf/bad")
			ask("bad name, auto create", true, strings.Repeat("x", 250))
			ask("twice", false, "cf-metadata", "cf-metadata")
		}
		if v >= 10 {
			req := message.NewMetadataRequest()
			req.Topics = []message.MetadataRequestTopic{{TopicId: c.topicIDs["cf-metadata"]}, {TopicId: wire.UUID{5}}}
			c.ask("by id", v, req)
		}
		if v >= 8 {
			req := message.NewMetadataRequest()
			req.IncludeTopicAuthorizedOperations = true
			req.IncludeClusterAuthorizedOperations = v <= 10
			name := "cf-metadata"
			req.Topics = []message.MetadataRequestTopic{{Name: &name}}
			c.ask("with operations", v, req)
		}
	}
	for v := range int16(3) {
		req := message.NewDescribeClusterRequest()
		c.ask("cluster", v, req)
		if v >= 1 {
			req.EndpointType = 2
			c.ask("controllers", v, req)
			req.EndpointType = 3
			c.ask("neither", v, req)
		}
	}
}

func createVersions(c *conversation) {
	text := func(s string) *string { return &s }
	for _, v := range versions(wire.KeyCreateTopics) {
		ask := func(label string, validate bool, topics ...message.CreatableTopic) {
			req := message.NewCreateTopicsRequest()
			req.TimeoutMs, req.ValidateOnly, req.Topics = 10000, validate, topics
			c.ask(label, v, req)
		}
		name := fmt.Sprint("cf-create-", v)
		ask("validate", true, message.CreatableTopic{Name: name, NumPartitions: 2, ReplicationFactor: 1})
		ask("create", false, message.CreatableTopic{Name: name, NumPartitions: 2, ReplicationFactor: 1,
			Configs: []message.CreatableTopicConfig{{Name: "retention.ms", Value: text("1000000")}, {Name: "cleanup.policy", Value: text("compact,delete")}}})
		ask("exists", false, message.CreatableTopic{Name: name, NumPartitions: 2, ReplicationFactor: 1})
		ask("collides", false, message.CreatableTopic{Name: strings.ReplaceAll(name, "-create-", "-create.") + "_x", NumPartitions: 1, ReplicationFactor: 1},
			message.CreatableTopic{Name: strings.ReplaceAll(name, "-create-", "-create_") + ".x", NumPartitions: 1, ReplicationFactor: 1})
		ask("no partitions", false, message.CreatableTopic{Name: name + "-z", NumPartitions: 0, ReplicationFactor: 1})
		ask("no replicas", false, message.CreatableTopic{Name: name + "-z", NumPartitions: 1, ReplicationFactor: 0})
		ask("too many replicas", false, message.CreatableTopic{Name: name + "-z", NumPartitions: 1, ReplicationFactor: 2})
		ask("unknown config", false, message.CreatableTopic{Name: name + "-z", NumPartitions: 1, ReplicationFactor: 1,
			Configs: []message.CreatableTopicConfig{{Name: "no.such.config", Value: text("1")}}})
		ask("null config", false, message.CreatableTopic{Name: name + "-z", NumPartitions: 1, ReplicationFactor: 1,
			Configs: []message.CreatableTopicConfig{{Name: "retention.ms"}}})
		for _, bad := range []string{"", ".", "..", "a b", strings.Repeat("y", 250), "__consumer_offsets2"} {
			ask(fmt.Sprintf("name %.20q", bad), true, message.CreatableTopic{Name: bad, NumPartitions: 1, ReplicationFactor: 1})
		}
		assign := func(parts ...[]int32) (a []message.CreatableReplicaAssignment) {
			for i, brokers := range parts {
				a = append(a, message.CreatableReplicaAssignment{PartitionIndex: int32(i), BrokerIds: brokers})
			}
			return a
		}
		ask("assigned", true, message.CreatableTopic{Name: name + "-a", NumPartitions: -1, ReplicationFactor: -1, Assignments: assign([]int32{1}, []int32{1})})
		ask("assigned twice", true, message.CreatableTopic{Name: name + "-a", NumPartitions: -1, ReplicationFactor: -1, Assignments: assign([]int32{1, 1})})
		ask("assigned nowhere", true, message.CreatableTopic{Name: name + "-a", NumPartitions: -1, ReplicationFactor: -1, Assignments: assign([]int32{7})})
		ask("assigned and counted", true, message.CreatableTopic{Name: name + "-a", NumPartitions: 1, ReplicationFactor: 1, Assignments: assign([]int32{1})})
		if v >= 4 {
			ask("defaults", true, message.CreatableTopic{Name: name + "-d", NumPartitions: -1, ReplicationFactor: -1})
		}
		ask("twice in one request", true, message.CreatableTopic{Name: name + "-t", NumPartitions: 1, ReplicationFactor: 1},
			message.CreatableTopic{Name: name + "-t", NumPartitions: 1, ReplicationFactor: 1})
	}
	for _, v := range versions(wire.KeyDeleteTopics) {
		req := message.NewDeleteTopicsRequest()
		req.TimeoutMs = 10000
		names := []string{fmt.Sprint("cf-create-", v), "cf-not-there", fmt.Sprintf("cf-create.%d_x", v)}
		if v >= 6 {
			for i := range names {
				req.Topics = append(req.Topics, message.DeleteTopicState{Name: &names[i]})
			}
			req.Topics = append(req.Topics, message.DeleteTopicState{TopicId: wire.UUID{1, 1}})
		} else {
			req.TopicNames = names
		}
		c.ask("delete", v, req)
	}
	for _, name := range []string{"cf-create-7", "cf-create.7_x"} {
		c.drop(name)
	}
}

func growTopics(c *conversation) {
	c.create("cf-grow", 1)
	for _, v := range versions(wire.KeyCreatePartitions) {
		ask := func(label string, topics ...message.CreatePartitionsTopic) {
			for _, validate := range []bool{true, false} {
				req := message.NewCreatePartitionsRequest()
				req.TimeoutMs, req.ValidateOnly, req.Topics = 5000, validate, topics
				c.ask(fmt.Sprint(label, " validate ", validate), v, req)
			}
		}
		n := int32(v) + 2
		ask("one more", message.CreatePartitionsTopic{Name: "cf-grow", Count: n})
		ask("the same", message.CreatePartitionsTopic{Name: "cf-grow", Count: n})
		ask("fewer", message.CreatePartitionsTopic{Name: "cf-grow", Count: 1})
		ask("none", message.CreatePartitionsTopic{Name: "cf-grow", Count: 0})
		ask("absent", message.CreatePartitionsTopic{Name: "cf-not-there", Count: 3})
		ask("wrong assignment", message.CreatePartitionsTopic{Name: "cf-grow", Count: n + 2, Assignments: []message.CreatePartitionsAssignment{{BrokerIds: []int32{1}}}})
		ask("assigned nowhere", message.CreatePartitionsTopic{Name: "cf-grow", Count: n + 1, Assignments: []message.CreatePartitionsAssignment{{BrokerIds: []int32{8}}}})
		ask("twice", message.CreatePartitionsTopic{Name: "cf-grow", Count: n + 5}, message.CreatePartitionsTopic{Name: "cf-grow", Count: n + 6})
	}
}

func describePages(c *conversation) {
	c.create("cf-page-a", 3)
	c.create("cf-page-b", 4)
	for _, limit := range []int32{0, 1, 2, 5, 2000} {
		req := message.NewDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit = limit
		req.Topics = []message.DescribeTopicPartitionsRequestTopicRequest{{Name: "cf-page-b"}, {Name: "cf-page-a"}, {Name: "cf-not-there"}}
		c.ask(fmt.Sprint("limit ", limit), 0, req)
		req.Cursor = &message.DescribeTopicPartitionsRequestCursor{TopicName: "cf-page-a", PartitionIndex: 2}
		c.ask(fmt.Sprint("limit ", limit, " from a cursor"), 0, req)
		req.Cursor.PartitionIndex = 9
		c.ask(fmt.Sprint("limit ", limit, " from a cursor behind the end"), 0, req)
	}
}

func configChanges(c *conversation) {
	c.create("cf-config", 1)
	describe := func(v int16, kind int8, name string, keys ...string) {
		req := message.NewDescribeConfigsRequest()
		req.IncludeSynonyms = true
		req.Resources = []message.DescribeConfigsResource{{ResourceType: kind, ResourceName: name, ConfigurationKeys: keys}}
		c.ask(fmt.Sprintf("describe %d %q", kind, name), v, req)
	}
	change := func(kind int8, name, key string, op int8, value string) {
		req := message.NewIncrementalAlterConfigsRequest()
		req.Resources = []message.IncrementalAlterConfigsRequestAlterConfigsResource{{ResourceType: kind, ResourceName: name,
			Configs: []message.IncrementalAlterConfigsRequestAlterableConfig{{Name: key, ConfigOperation: op, Value: &value}}}}
		c.ask(fmt.Sprintf("op %d on %s=%s of %q", op, key, value, name), 1, req)
	}
	for _, v := range versions(wire.KeyDescribeConfigs) {
		describe(v, 2, "cf-config", "retention.ms", "cleanup.policy", "no.such.key")
		describe(v, 4, "1", "log.retention.ms", "message.max.bytes", "num.io.threads")
		describe(v, 2, "cf-not-there")
		describe(v, 4, "9")
		describe(v, 4, "x")
		describe(v, 3, "x")
	}
	for _, s := range [][2]string{{"retention.ms", "5000000"}, {"retention.ms", "x"}, {"retention.ms", "-2"}, {"cleanup.policy", "compact"}, {"cleanup.policy", "nonsense"},
		{"compression.type", "zstd"}, {"compression.type", "brotli"}, {"min.insync.replicas", "0"}, {"segment.bytes", "10"}, {"no.such.key", "1"},
		{"message.timestamp.type", "LogAppendTime"}, {"unclean.leader.election.enable", "maybe"}, {"min.cleanable.dirty.ratio", "1.5"}} {
		change(2, "cf-config", s[0], 0, s[1])
	}
	// Apache Kafka answers when the controller has committed; the broker that describes hears of it a moment later, and of two topics,
	// one made after the other has a leader, later still.
	settled := 0
	settle := func() {
		for range 2 {
			settled++
			c.create(fmt.Sprint("cf-config-settled-", settled), 1)
		}
	}
	settle()
	describe(4, 2, "cf-config")
	change(2, "cf-config", "cleanup.policy", 2, "delete")
	change(2, "cf-config", "cleanup.policy", 3, "compact")
	change(2, "cf-config", "retention.ms", 2, "1")
	change(2, "cf-config", "retention.ms", 1, "")
	change(2, "cf-config", "retention.ms", 1, "")
	change(2, "cf-config", "retention.ms", 9, "1")
	change(2, "cf-not-there", "retention.ms", 0, "1")
	change(4, "1", "num.io.threads", 0, "9")
	change(4, "1", "node.id", 0, "9")
	change(4, "1", "num.io.threads", 1, "")
	change(4, "", "log.retention.ms", 0, "86400000")
	settle()
	describe(4, 4, "", "log.retention.ms")
	describe(4, 2, "cf-config", "retention.ms")
	change(4, "", "log.retention.ms", 1, "")
	all := message.NewAlterConfigsRequest()
	value := "7777777"
	all.Resources = []message.AlterConfigsRequestAlterConfigsResource{{ResourceType: 2, ResourceName: "cf-config",
		Configs: []message.AlterConfigsRequestAlterableConfig{{Name: "retention.ms", Value: &value}}}}
	c.ask("replace everything", 2, all)
	settle()
	describe(4, 2, "cf-config")
}

func timestampBounds(c *conversation) {
	c.create("cf-bounds", 1, "message.timestamp.before.max.ms", "1000000", "message.timestamp.after.max.ms", "1000000")
	now := time.Now().UnixMilli()
	for _, shift := range []int64{0, -10000000, 10000000} {
		rs := []record.Record{{Timestamp: now, Value: []byte("ok")}, {Timestamp: now + shift, Value: []byte("shifted")}, {Timestamp: now + shift, Value: []byte("too")}}
		c.ask(fmt.Sprint("shifted by ", shift), 12, c.produceRequest(12, "cf-bounds", 0, -1, batch{records: rs}.bytes(c.t)))
	}
	none := []record.Record{{Timestamp: -1, Value: []byte("none")}}
	c.ask("no timestamp", 12, c.produceRequest(12, "cf-bounds", 0, -1, batch{records: none}.bytes(c.t)))
}

func compactedKeys(c *conversation) {
	c.create("cf-compact", 1, "cleanup.policy", "compact")
	rs := []record.Record{{Timestamp: epoch, Key: []byte("k"), Value: []byte("1")}, {Timestamp: epoch, Value: []byte("2")}, {Timestamp: epoch, Key: []byte{}, Value: nil}, {Timestamp: epoch, Value: nil}}
	for _, v := range []int16{3, 7, 8, 12} {
		c.ask("some without a key", v, c.produceRequest(v, "cf-compact", 0, -1, batch{records: rs}.bytes(c.t)))
		c.ask("empty key and no value", v, c.produceRequest(v, "cf-compact", 0, -1, batch{records: rs[2:3]}.bytes(c.t)))
	}
}

func messageSizes(c *conversation) {
	c.create("cf-sizes", 1, "max.message.bytes", "2000")
	c.create("cf-segment", 1, "segment.bytes", "1048576", "max.message.bytes", "5000000")
	for _, n := range []int{100, 1900, 1930, 1931, 1932, 1933, 1934, 2500} {
		c.ask(fmt.Sprint(n, " bytes"), 12, c.produceRequest(12, "cf-sizes", 0, -1, batch{records: values(strings.Repeat("s", n))}.bytes(c.t)))
	}
	for _, n := range []int{1000000, 1048500, 1200000} {
		c.ask(fmt.Sprint(n, " bytes"), 12, c.produceRequest(12, "cf-segment", 0, -1, batch{records: values(strings.Repeat("s", n))}.bytes(c.t)))
	}
}

func minInsync(c *conversation) {
	c.create("cf-isr", 1, "min.insync.replicas", "2")
	for _, acks := range []int16{-1, 1} {
		c.ask(fmt.Sprint("acks ", acks), 12, c.produceRequest(12, "cf-isr", 0, acks, batch{records: values("x")}.bytes(c.t)))
	}
}

// absentVersions sends headers of versions and APIs that no broker has, by hand.
func absentVersions(c *conversation) {
	raw := func(label string, key, version int16, body ...byte) {
		frame := append(wire.AppendInt16(wire.AppendInt16(make([]byte, 4), key), version), 0, 0, 0, 77, 0xff, 0xff)
		answer := c.send(append(frame, body...))
		text := "closed"
		if answer != nil {
			text = fmt.Sprintf("%x", answer)
		}
		c.transcript = append(c.transcript, label+" | "+text)
	}
	raw("ApiVersions v99", 18, 99)
	raw("Metadata v99", 3, 99)
	raw("Produce v2", 0, 2)
	raw("Fetch v3", 1, 3)
	raw("key 999", 999, 0)
	raw("LeaderAndIsr", 4, 0)
	raw("empty Metadata v1", 3, 1)
}
