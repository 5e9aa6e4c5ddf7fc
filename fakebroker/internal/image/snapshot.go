package image

import (
	"iter"
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// Records writes the image as the records of a checkpoint, in Apache Kafka's order of parts: features, brokers,
// controllers, topics with their partitions, configs, quotas, producer ids, access control, credentials, tokens. Applied
// to the empty image they give this image again. Within a part the order is alphabetical, so that equal images give
// equal checkpoints.
func (i *Image) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for _, part := range []func(func(Record) bool) bool{
			i.featureRecords, i.brokerRecords, i.controllerRecords, i.topicRecords, i.configRecords, i.producerRecords,
			i.otherRecords,
		} {
			if !part(yield) {
				return
			}
		}
	}
}

// featureRecords puts metadata.version first: the versions of what follows depend on it.
func (i *Image) featureRecords(yield func(Record) bool) bool {
	names := slices.SortedFunc(maps.Keys(i.features), func(a, b string) int {
		switch {
		case a == b:
			return 0
		case a == MetadataFeature || b != MetadataFeature && a < b:
			return -1
		}
		return 1
	})
	for _, name := range names {
		if !yield(Record{&logrecord.FeatureLevelRecord{Name: name, FeatureLevel: i.features[name]}, 0}) {
			return false
		}
	}
	return true
}

func (i *Image) brokerRecords(yield func(Record) bool) bool {
	for _, b := range i.Brokers() {
		if !yield(b.Record(i.MetadataVersion())) {
			return false
		}
	}
	return true
}

// Record writes the registration as a record.
func (b *Broker) Record(v MetadataVersion) Record {
	r := logrecord.NewRegisterBrokerRecord()
	r.BrokerId, r.IncarnationId, r.BrokerEpoch = b.ID, b.IncarnationID, b.Epoch
	r.Rack, r.Fenced, r.InControlledShutdown = b.Rack, b.Fenced, b.InControlledShutdown
	for _, e := range b.Endpoints {
		r.EndPoints = append(r.EndPoints, logrecord.BrokerEndpoint{Name: e.Listener, Host: e.Host, Port: e.Port, SecurityProtocol: int16(e.Security)})
	}
	for _, f := range b.Features {
		r.Features = append(r.Features, logrecord.BrokerFeature{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
	}
	if v >= MetadataVersion37IV2 {
		r.LogDirs = b.Directories
	}
	if v.CordonedDirs() {
		r.CordonedLogDirs = b.CordonedDirectories
	}
	return Record{r, v.RegisterBroker()}
}

func (i *Image) controllerRecords(yield func(Record) bool) bool {
	for _, c := range i.Controllers() {
		if !yield(c.Record()) {
			return false
		}
	}
	return true
}

// Record writes the registration as a record.
func (c *Controller) Record() Record {
	r := logrecord.NewRegisterControllerRecord()
	r.ControllerId, r.IncarnationId, r.ZkMigrationReady = c.ID, c.IncarnationID, c.ZkMigrationReady
	for _, e := range c.Endpoints {
		r.EndPoints = append(r.EndPoints, logrecord.ControllerEndpoint{Name: e.Listener, Host: e.Host, Port: e.Port, SecurityProtocol: int16(e.Security)})
	}
	for _, f := range c.Features {
		r.Features = append(r.Features, logrecord.ControllerFeature{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
	}
	return Record{r, 0}
}

func (i *Image) topicRecords(yield func(Record) bool) bool {
	for _, name := range i.TopicNames() {
		t := i.Topic(name)
		if !yield(Record{&logrecord.TopicRecord{Name: t.Name, TopicId: t.ID}, 0}) {
			return false
		}
		for _, p := range t.Partitions {
			if p != nil && !yield(p.Record(t.ID, i.MetadataVersion())) {
				return false
			}
		}
	}
	return true
}

// Record writes the registration as a record of the topic with this id.
func (p *Partition) Record(topic wire.UUID, v MetadataVersion) Record {
	r := logrecord.NewPartitionRecord()
	r.PartitionId, r.TopicId = p.ID, topic
	r.Replicas, r.Isr, r.Leader = p.Replicas, p.ISR, p.Leader
	r.LeaderEpoch, r.PartitionEpoch, r.LeaderRecoveryState = p.LeaderEpoch, p.PartitionEpoch, p.LeaderRecoveryState
	r.AddingReplicas, r.RemovingReplicas = p.AddingReplicas, p.RemovingReplicas
	if v >= MetadataVersion37IV2 {
		r.Directories = p.Directories
	}
	if v >= MetadataVersion40IV1 { // an empty list is left out, which is what null says
		r.EligibleLeaderReplicas, r.LastKnownElr = orNull(p.ELR), orNull(p.LastKnownELR)
	}
	return Record{r, v.PartitionRecord()}
}

func orNull(ids []int32) []int32 {
	if len(ids) == 0 {
		return nil
	}
	return ids
}

func (i *Image) configRecords(yield func(Record) bool) bool {
	for _, resource := range i.ConfigResources() {
		values := i.Configs(resource)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			value := values[name]
			r := &logrecord.ConfigRecord{ResourceType: int8(resource.Type), ResourceName: resource.Name, Name: name, Value: &value}
			if !yield(Record{r, 0}) {
				return false
			}
		}
	}
	return true
}

// producerRecords names no broker: who held the last block does not matter any more.
func (i *Image) producerRecords(yield func(Record) bool) bool {
	if !i.producerIDs {
		return true
	}
	return yield(Record{&logrecord.ProducerIdsRecord{BrokerId: -1, BrokerEpoch: -1, NextProducerId: i.nextProducerID}, 0})
}

func (i *Image) otherRecords(yield func(Record) bool) bool {
	keys := make([]string, 0, i.others.Len())
	for k := range i.others.All() {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		r, _ := i.others.Get(k)
		if !yield(r) {
			return false
		}
	}
	return true
}
