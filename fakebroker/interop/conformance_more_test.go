package interop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

func init() {
	for name, scenario := range map[string]func(*conversation){
		"api versions":             apiVersionAnswers,
		"producer ids":             producerIDsGiven,
		"active producers":         activeProducers,
		"reassignments":            reassignments,
		"config resources":         configResources,
		"feature updates":          featureUpdates,
		"quorum":                   quorum,
		"sasl where there is none": saslWithoutSASL,
		"replaced configs":         replacedConfigs,
	} {
		scenarios[name] = scenario
	}
}

// TestSASLConformance holds whole logins against each other, on listeners that demand one.
func TestSASLConformance(t *testing.T) {
	ottla := startOttla(t, "--sasl", saslUser+":"+saslPassword)
	learnOttlaAPIs(t, ottla.addr)
	talk := func(addr string) []string {
		c := newConversation(t, addr)
		saslLogins(c)
		return c.transcript
	}
	theirs := talk(kafkaListeners["SASL_PLAINTEXT"])
	require.NotEmpty(t, theirs)
	requireSameTranscripts(t, theirs, talk(ottla.addr))
}

func saslLogins(c *conversation) {
	handshake := func(label, mechanism string, version int16) {
		c.ask(label, version, &message.SaslHandshakeRequest{Mechanism: mechanism})
	}
	login := func(label, user, password string, version int16) {
		c.ask(label, version, &message.SaslAuthenticateRequest{AuthBytes: []byte("\x00" + user + "\x00" + password)})
	}
	again := func() { c.conn.Close(); c.dial() }
	c.ask("metadata before the login", 12, message.NewMetadataRequest())
	c.ask("api versions before the login", 3, &message.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1"})
	again()
	handshake("mechanism that is not there", "SCRAM-SHA-256", 1)
	again()
	login("login without a handshake", saslUser, saslPassword, 2)
	again()
	for v := range int16(3) {
		handshake("handshake", "PLAIN", 1)
		login("wrong password", saslUser, "wrong", v)
		again()
		handshake("handshake", "PLAIN", 1)
		login("wrong user", "nobody", saslPassword, v)
		again()
		handshake("handshake", "PLAIN", 1)
		login("no user", "", saslPassword, v)
		again()
		handshake("handshake", "PLAIN", 1)
		c.ask("no PLAIN message", v, &message.SaslAuthenticateRequest{AuthBytes: []byte("what")})
		again()
		handshake("handshake", "PLAIN", 1)
		c.ask("as somebody else", v, &message.SaslAuthenticateRequest{AuthBytes: []byte("bob\x00" + saslUser + "\x00" + saslPassword)})
		again()
		handshake("handshake", "PLAIN", 1)
		login("right", saslUser, saslPassword, v)
		c.ask("cluster after the login", 0, message.NewDescribeClusterRequest())
		handshake("handshake after the login", "PLAIN", 1)
		again()
		handshake("handshake", "PLAIN", 1)
		handshake("handshake twice", "PLAIN", 1)
		again()
		handshake("handshake", "PLAIN", 1)
		c.ask("cluster instead of the login", 0, message.NewDescribeClusterRequest())
		again()
		handshake("handshake", "PLAIN", 1)
		c.ask("api versions instead of the login", 3, &message.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1"})
		again()
	}
}

func apiVersionAnswers(c *conversation) {
	for _, v := range versions(wire.KeyApiVersions) {
		ask := func(label, name, version string) {
			c.ask(label, v, &message.ApiVersionsRequest{ClientSoftwareName: name, ClientSoftwareVersion: version, NodeId: -1})
		}
		ask("usual", "ottla", "1.0")
		ask("no name", "", "1.0")
		ask("no version", "ottla", "")
		ask("strange name", "ottla client", "1.0")
		ask("strange version", "ottla", "1.0_β")
		if v >= 5 {
			c.ask("another node", v, &message.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1", NodeId: 7})
			c.ask("this node of no cluster", v, &message.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1", NodeId: 1})
			c.ask("some node of a cluster", v, &message.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1", NodeId: -1, ClusterId: new("AAAAAAAAAAAAAAAAAAAAAA")})
			c.ask("another cluster", v, &message.ApiVersionsRequest{ClientSoftwareName: "x", ClientSoftwareVersion: "1", NodeId: 1, ClusterId: new("AAAAAAAAAAAAAAAAAAAAAA")})
		}
	}
}

func producerIDsGiven(c *conversation) {
	awaitProducerIDs(c)
	for v := range int16(6) {
		req := message.NewInitProducerIdRequest()
		c.ask("no timeout", v, req)
		req.TransactionTimeoutMs = -1
		c.ask("negative timeout", v, req)
		req.TransactionTimeoutMs = 60000
		first := c.ask("usual", v, req).(*message.InitProducerIdResponse)
		c.ask("another", v, req)
		if v >= 3 {
			req.ProducerId, req.ProducerEpoch = first.ProducerId, first.ProducerEpoch
			c.ask("of an id that it has", v, req)
			req.ProducerEpoch = -1
			c.ask("of an id without epoch", v, req)
			req.ProducerId, req.ProducerEpoch = -1, 3
			c.ask("of an epoch without id", v, req)
		}
		req = message.NewInitProducerIdRequest()
		req.TransactionalId, req.TransactionTimeoutMs = new(""), 1000
		c.ask("empty transactional id", v, req)
	}
}

func activeProducers(c *conversation) {
	c.create("cf-producers", 2)
	id, producerEpoch := c.initProducer(4)
	for i := range int32(3) {
		c.ask("produce", 12, c.produceRequest(12, "cf-producers", 0, -1, c.idempotent(id, producerEpoch, 4*i, 4)))
	}
	c.ask("producers", 0, &message.DescribeProducersRequest{Topics: []message.DescribeProducersRequestTopicRequest{
		{Name: "cf-producers", PartitionIndexes: []int32{0, 1, 9}}, {Name: "cf-not-there", PartitionIndexes: []int32{0}}, {Name: "cf-producers"}}})
}

func reassignments(c *conversation) {
	c.create("cf-reassign", 2)
	req := message.NewListPartitionReassignmentsRequest()
	c.ask("all", 0, req)
	req.Topics = []message.ListPartitionReassignmentsTopics{{Name: "cf-reassign", PartitionIndexes: []int32{0, 1}}, {Name: "cf-not-there", PartitionIndexes: []int32{0}}}
	c.ask("some", 0, req)
	req.Topics = []message.ListPartitionReassignmentsTopics{}
	c.ask("none", 0, req)
}

func configResources(c *conversation) {
	c.create("cf-resources", 1, "retention.ms", "100000000")
	c.ask("client metrics", 0, message.NewListConfigResourcesRequest())
	for _, kinds := range [][]int8{{2}, {4}, {8}, {16}, {32}, {2, 4}, {1}, {77}, {4, 99}} {
		c.ask(fmt.Sprint("kinds ", kinds), 1, &message.ListConfigResourcesRequest{ResourceTypes: kinds})
	}
}

// featureUpdates asks for what is refused, or only whether it would be done: the features of the brokers stay as they are.
func featureUpdates(c *conversation) {
	for v := range int16(3) {
		try := func(label string, updates ...message.FeatureUpdateKey) {
			c.ask(label, v, &message.UpdateFeaturesRequest{TimeoutMs: 5000, FeatureUpdates: updates, ValidateOnly: v >= 1})
		}
		update := func(name string, level int16, upgrade int8) message.FeatureUpdateKey {
			return message.FeatureUpdateKey{Feature: name, MaxVersionLevel: level, UpgradeType: upgrade}
		}
		try("none")
		try("unknown", update("no.such.feature", 1, 1))
		try("too high", update("group.version", 99, 1))
		try("negative", update("group.version", -1, 1))
		try("metadata too high", update("metadata.version", 1000, 1))
		try("the same twice", update("group.version", 1, 1), update("group.version", 1, 1))
		try("as it is", update("group.version", 1, 1))
		if v >= 1 {
			try("down by an upgrade", update("group.version", 0, 1))
			try("down safely", update("group.version", 0, 2))
			try("down unsafely", update("group.version", 0, 3))
			try("metadata down", update("metadata.version", 7, 2))
			try("in an unknown way", update("group.version", 0, 9))
			try("one good, one bad", update("group.version", 1, 1), update("no.such.feature", 1, 1))
		}
	}
}

func quorum(c *conversation) {
	for v := range int16(3) {
		ask := func(topic string, partitions ...int32) {
			data := message.DescribeQuorumRequestTopicData{TopicName: topic}
			for _, p := range partitions {
				data.Partitions = append(data.Partitions, message.DescribeQuorumRequestPartitionData{PartitionIndex: p})
			}
			c.ask(fmt.Sprint(topic, partitions), v, &message.DescribeQuorumRequest{Topics: []message.DescribeQuorumRequestTopicData{data}})
		}
		ask("__cluster_metadata", 0)
		ask("__cluster_metadata", 1)
		ask("__cluster_metadata")
		ask("cf-not-there", 0)
	}
}

func saslWithoutSASL(c *conversation) {
	for v := range int16(2) {
		c.ask("handshake", v, &message.SaslHandshakeRequest{Mechanism: "PLAIN"})
	}
	for v := range int16(3) {
		c.ask("login", v, &message.SaslAuthenticateRequest{AuthBytes: []byte("\x00ann\x00secret")})
	}
}

func replacedConfigs(c *conversation) {
	c.create("cf-replace", 1)
	for v := range int16(3) {
		for _, validate := range []bool{true, false} {
			try := func(label string, kind int8, name string, pairs ...string) {
				r := message.AlterConfigsRequestAlterConfigsResource{ResourceType: kind, ResourceName: name}
				for i := 0; i+1 < len(pairs); i += 2 {
					r.Configs = append(r.Configs, message.AlterConfigsRequestAlterableConfig{Name: pairs[i], Value: &pairs[i+1]})
				}
				c.ask(fmt.Sprint(label, " validate ", validate), v, &message.AlterConfigsRequest{Resources: []message.AlterConfigsRequestAlterConfigsResource{r}, ValidateOnly: validate})
			}
			try("one", 2, "cf-replace", "retention.ms", "2000000")
			try("nothing", 2, "cf-replace")
			try("bad value", 2, "cf-replace", "retention.ms", "soon")
			try("bad key", 2, "cf-replace", "no.such.key", "1")
			try("same key twice", 2, "cf-replace", "retention.ms", "1000000", "retention.ms", "3000000")
			try("absent topic", 2, "cf-not-there", "retention.ms", "2000000")
			try("bad topic name", 2, strings.Repeat("z", 300), "retention.ms", "2000000")
			try("no such broker", 4, "77", "log.cleaner.threads", "2")
			try("read-only", 4, "1", "node.id", "9")
			try("a kind that is none", 99, "x", "a", "b")
		}
	}
}
