package controller

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

func itoa(n int) string { return strconv.Itoa(n) }

// createTopics judges the topics one by one, all against the image before the request: a topic that fails does not stop
// the others. With validateOnly the answers are the same and no record is proposed.
func (c *Controller) createTopics(v View, r *message.CreateTopicsRequest) Result {
	resp := &message.CreateTopicsResponse{Topics: make([]message.CreatableTopicResult, 0, len(r.Topics))}
	var records []image.Record
	layers := c.layers(v.Image)
	twice := duplicates(r.Topics, func(t *message.CreatableTopic) string { return t.Name })
	refused := func(name string, e apiError) { resp.Topics = append(resp.Topics, refusedTopic(name, e)) }
	if totalPartitions(layers, r.Topics) > maxPartitions {
		return failAll(r, tooManyPartitions)
	}
	metadataNamed := false
	for i := range r.Topics {
		t := &r.Topics[i]
		if twice[t.Name] {
			continue
		}
		if t.Name == metadataTopic {
			metadataNamed = true
			continue
		}
		add, result, err := c.createTopic(v.Image, layers, t)
		if err.failed() {
			refused(t.Name, err)
			continue
		}
		if records = append(records, add...); len(records) > maxRecords {
			return failAll(r, tooManyRecords)
		}
		resp.Topics = append(resp.Topics, result)
	}
	for _, name := range inOrder(r.Topics, twice, func(t *message.CreatableTopic) string { return t.Name }) {
		refused(name, refuse(errcode.InvalidRequest, "Duplicate topic name."))
	}
	if metadataNamed {
		refused(metadataTopic, refuse(errcode.InvalidRequest, "Creation of internal topic %s is prohibited.", metadataTopic))
	}
	if r.ValidateOnly {
		records = nil
	}
	return Result{Records: records, Response: resp}
}

func totalPartitions(l *config.Layers, topics []message.CreatableTopic) (n int) {
	for i := range topics {
		switch t := &topics[i]; {
		case len(t.Assignments) > 0:
			n += len(t.Assignments)
		case t.NumPartitions == -1:
			n += int(l.Int("num.partitions"))
		case t.NumPartitions > 0:
			n += int(t.NumPartitions)
		}
	}
	return n
}

// duplicates returns the names that occur more than once.
func duplicates[T any](list []T, name func(*T) string) map[string]bool {
	seen, twice := make(map[string]bool, len(list)), make(map[string]bool)
	for i := range list {
		n := name(&list[i])
		if seen[n] {
			twice[n] = true
		}
		seen[n] = true
	}
	return twice
}

// inOrder returns the members of set in order of their first occurrence in list.
func inOrder[T any](list []T, set map[string]bool, name func(*T) string) (names []string) {
	for i := range list {
		if n := name(&list[i]); set[n] && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// createTopic checks in Apache Kafka's order: name, configs, then the partitions.
func (c *Controller) createTopic(i *image.Image, l *config.Layers, t *message.CreatableTopic) ([]image.Record, message.CreatableTopicResult, apiError) {
	var none message.CreatableTopicResult
	if err := checkNewName(i, t.Name); err.failed() {
		return nil, none, err
	}
	overrides, err := newOverrides(l, t.Configs)
	if err.failed() {
		return nil, none, err
	}
	partitions, err := c.newPartitions(i, l, t)
	if err.failed() {
		return nil, none, err
	}

	id := c.opts.NewUUID()
	records := make([]image.Record, 0, 1+len(t.Configs)+len(partitions))
	records = append(records, image.Record{Record: &logrecord.TopicRecord{Name: t.Name, TopicId: id}})
	for _, set := range t.Configs {
		if value, ok := overrides[set.Name]; ok { // the last of several values of a config counts, once
			records = append(records, configRecord(config.Resource{Type: config.TopicResource, Name: t.Name}, set.Name, &value))
			delete(overrides, set.Name)
		}
	}
	records = appendPartitions(records, i, id, partitions)

	result := message.CreatableTopicResult{Name: t.Name, TopicId: id, NumPartitions: int32(len(partitions)),
		ReplicationFactor: int16(len(partitions[0].Replicas))}
	for _, d := range l.EffectiveTopic(asMap(t.Configs)) {
		result.Configs = append(result.Configs, message.CreatableTopicConfigs{
			Name: d.Name, Value: d.Value, ReadOnly: d.ReadOnly, ConfigSource: int8(d.Source), IsSensitive: d.Sensitive})
	}
	return records, result, apiError{}
}

func asMap(configs []message.CreatableTopicConfig) map[string]string {
	m := make(map[string]string, len(configs))
	for _, c := range configs {
		if c.Value != nil {
			m[c.Name] = *c.Value
		}
	}
	return m
}

// newOverrides checks the configs of a new topic.
func newOverrides(l *config.Layers, configs []message.CreatableTopicConfig) (map[string]string, apiError) {
	var null []string
	for _, c := range configs {
		if c.Value == nil {
			null = append(null, c.Name)
		}
	}
	if len(null) > 0 {
		return nil, refuse(errcode.InvalidConfig, "Null value not supported for topic configs: %s", strings.Join(null, ","))
	}
	overrides := asMap(configs)
	if len(overrides) > 0 {
		if err := l.CheckTopic(overrides); err != nil {
			return nil, refuse(errcode.InvalidConfig, "%s", err)
		}
	}
	return overrides, apiError{}
}

// newPartitions works out the partitions of a new topic: as assigned by hand, or placed.
func (c *Controller) newPartitions(i *image.Image, l *config.Layers, t *message.CreatableTopic) ([]*image.Partition, apiError) {
	if len(t.Assignments) > 0 {
		return assignedPartitions(i, t)
	}
	switch {
	case t.ReplicationFactor < -1 || t.ReplicationFactor == 0:
		return nil, refuse(errcode.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	case t.NumPartitions < -1 || t.NumPartitions == 0:
		return nil, refuse(errcode.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	}
	n, factor := int(t.NumPartitions), int(t.ReplicationFactor)
	if n == -1 {
		n = int(l.Int("num.partitions"))
	}
	if factor == -1 {
		factor = int(l.Int("default.replication.factor"))
	}
	return c.placedPartitions(i, 0, n, factor)
}

// Apache Kafka's bounds of one request: its records go into one batch of the metadata log.
const (
	maxPartitions = 10_000 // to be made
	maxRecords    = 10_000
)

// Texts of POLICY_VIOLATION beyond the bounds. The whole request gets it.
const (
	tooManyPartitions = "Excessively large number of partitions per request."
	tooManyMore       = "Excessively large number of additional partitions per request."
	tooManyRecords    = "Unable to perform excessively large batch operation."
)

// failAll is the answer of a request that is refused as a whole.
func failAll(r *message.CreateTopicsRequest, why string) Result {
	resp := &message.CreateTopicsResponse{}
	for i := range r.Topics {
		resp.Topics = append(resp.Topics, refusedTopic(r.Topics[i].Name, refuse(errcode.PolicyViolation, "%s", why)))
	}
	return Result{Response: resp}
}

func refusedTopic(name string, e apiError) message.CreatableTopicResult {
	return message.CreatableTopicResult{Name: name, ErrorCode: int16(e.code), ErrorMessage: e.message,
		NumPartitions: -1, ReplicationFactor: -1, Configs: []message.CreatableTopicConfigs{}}
}

func (c *Controller) placedPartitions(i *image.Image, from, n, factor int) ([]*image.Partition, apiError) {
	placed, why := c.place(i, n, factor)
	if why != "" {
		return nil, refuse(errcode.InvalidReplicationFactor, "Unable to replicate the partition %d time(s): %s", factor, why)
	}
	partitions := make([]*image.Partition, n)
	for p, replicas := range placed {
		partitions[p] = newPartition(i, int32(from+p), replicas)
	}
	return partitions, apiError{}
}

func assignedPartitions(i *image.Image, t *message.CreatableTopic) ([]*image.Partition, apiError) {
	if t.ReplicationFactor != -1 {
		return nil, refuse(errcode.InvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
	}
	if t.NumPartitions != -1 {
		return nil, refuse(errcode.InvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	byID := make(map[int32]*image.Partition, len(t.Assignments))
	factor := 0
	for _, a := range t.Assignments {
		if byID[a.PartitionIndex] != nil {
			return nil, refuse(errcode.InvalidReplicaAssignment, "Found multiple manual partition assignments for partition %d", a.PartitionIndex)
		}
		if err := checkAssignment(i, a.BrokerIds, factor); err.failed() {
			return nil, err
		}
		factor = len(a.BrokerIds)
		p := newPartition(i, a.PartitionIndex, slices.Clone(a.BrokerIds))
		if p == nil {
			return nil, refuse(errcode.InvalidReplicaAssignment,
				"All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", a.PartitionIndex)
		}
		byID[a.PartitionIndex] = p
	}
	partitions := make([]*image.Partition, len(byID))
	for n := range partitions {
		if partitions[n] = byID[int32(n)]; partitions[n] == nil {
			return nil, refuse(errcode.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
	}
	return partitions, apiError{}
}

func appendPartitions(records []image.Record, i *image.Image, topic wire.UUID, partitions []*image.Partition) []image.Record {
	version := i.MetadataVersion()
	for _, p := range partitions {
		records = append(records, p.Record(topic, version))
	}
	return records
}
