package controller

import (
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// createPartitions adds partitions to topics, each topic on its own.
func (c *Controller) createPartitions(v View, r *message.CreatePartitionsRequest) Result {
	resp := &message.CreatePartitionsResponse{Results: make([]message.CreatePartitionsTopicResult, 0, len(r.Topics))}
	answer := func(name string, e apiError) {
		resp.Results = append(resp.Results, message.CreatePartitionsTopicResult{Name: name, ErrorCode: int16(e.code), ErrorMessage: e.message})
	}
	name := func(t *message.CreatePartitionsTopic) string { return t.Name }
	twice := duplicates(r.Topics, name)
	for _, n := range inOrder(r.Topics, twice, name) {
		answer(n, refuse(errcode.InvalidRequest, "Duplicate topic name."))
	}
	total := 0
	for i := range r.Topics {
		if t := v.Image.Topic(r.Topics[i].Name); t != nil {
			total += max(0, int(r.Topics[i].Count)-len(t.Partitions))
		}
	}
	if total > maxPartitions {
		resp.Results = resp.Results[:0]
		for i := range r.Topics {
			answer(r.Topics[i].Name, refuse(errcode.PolicyViolation, tooManyMore))
		}
		return Result{Response: resp}
	}
	var records []image.Record
	for i := range r.Topics {
		t := &r.Topics[i]
		if twice[t.Name] {
			continue
		}
		partitions, err := c.morePartitions(v.Image, t)
		if !err.failed() {
			records = appendPartitions(records, v.Image, v.Image.Topic(t.Name).ID, partitions)
		}
		answer(t.Name, err)
	}
	if r.ValidateOnly {
		records = nil
	}
	return Result{Records: records, Response: resp}
}

func (c *Controller) morePartitions(i *image.Image, r *message.CreatePartitionsTopic) ([]*image.Partition, apiError) {
	t := i.Topic(r.Name)
	if t == nil {
		return nil, apiError{code: errcode.UnknownTopicOrPartition} // without a text, as Apache Kafka answers
	}
	have, add := len(t.Partitions), int(r.Count)-len(t.Partitions)
	switch {
	case add == 0:
		return nil, refuse(errcode.InvalidPartitions, "Topic already has %d partition(s).", have)
	case add < 0:
		return nil, refuse(errcode.InvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", r.Name, have, r.Count)
	case r.Assignments != nil && len(r.Assignments) != add:
		return nil, refuse(errcode.InvalidReplicaAssignment,
			"Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", add, len(r.Assignments))
	}
	factor := len(t.Partitions[0].Replicas)
	if r.Assignments == nil {
		return c.placedPartitions(i, have, add, factor)
	}
	var partitions []*image.Partition
	for n, a := range r.Assignments {
		if err := checkAssignment(i, a.BrokerIds, factor); err.failed() {
			return nil, err
		}
		p := newPartition(i, int32(have+n), slices.Clone(a.BrokerIds))
		if p == nil {
			return nil, refuse(errcode.InvalidReplicaAssignment,
				"All brokers specified in the manual partition assignment for partition %d are fenced or in controlled shutdown.", have+n)
		}
		partitions = append(partitions, p)
	}
	return partitions, apiError{}
}
