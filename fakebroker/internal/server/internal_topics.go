package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/wire/message"
)

// shapeInternal gives a topic that the broker itself needs the partitions, replicas and configs that its own settings
// say; other topics get the defaults.
func (b *Broker) shapeInternal(t *message.CreatableTopic) {
	c := b.Config()
	shape := func(prefix string, configs ...message.CreatableTopicConfig) {
		t.NumPartitions = int32(c.Int(prefix + "num.partitions"))
		t.ReplicationFactor = int16(c.Int(prefix + "replication.factor"))
		segment := c.Value(prefix + "segment.bytes").Format(config.Int)
		t.Configs = append(configs, setting("segment.bytes", *segment))
	}
	switch t.Name {
	case "__consumer_offsets":
		shape("offsets.topic.", setting("cleanup.policy", "compact"), setting("compression.type", "producer"))
	case "__transaction_state":
		shape("transaction.state.log.", setting("cleanup.policy", "compact"), setting("compression.type", "uncompressed"),
			setting("min.insync.replicas", *c.Value("transaction.state.log.min.isr").Format(config.Int)), setting("unclean.leader.election.enable", "false"))
	case "__share_group_state":
		shape("share.coordinator.state.topic.", setting("cleanup.policy", "delete"), setting("retention.ms", "-1"),
			setting("min.insync.replicas", *c.Value("share.coordinator.state.topic.min.isr").Format(config.Short)))
	}
}

func setting(name, value string) message.CreatableTopicConfig {
	return message.CreatableTopicConfig{Name: name, Value: &value}
}
