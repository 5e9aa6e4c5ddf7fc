package server

import (
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/controller"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleMetadata answers where topics and brokers are, as seen through the listener that the client came by.
//
//	topics         version 0      from version 1
//	null           all topics     all topics
//	empty          all topics     none
//
// By id (from version 12) nothing is created; unknown ids come first in the answer. By name unknown topics are created if
// the broker and the client want it (auto.create.topics.enable, AllowAutoTopicCreation): the answer then still is
// UNKNOWN_TOPIC_OR_PARTITION, and the client finds the topic when it asks again.
func handleMetadata(b *Broker, r *Request) {
	req := r.Body.(*message.MetadataRequest)
	if code := refuseMetadata(req, r.Version); code != errcode.None {
		r.Respond(failedMetadata(req, r.Version, code))
		return
	}
	img := b.Image()
	view := metadataView{image: img, listener: r.Listener, version: r.Version}
	resp := message.NewMetadataResponse()
	resp.Brokers, resp.ControllerId = view.brokers()
	cluster := b.clusterID()
	resp.ClusterId = &cluster
	resp.ClusterAuthorizedOperations = operations(req.IncludeClusterAuthorizedOperations && r.Version >= 8 && r.Version <= 10, clusterOperations)
	resp.Topics = make([]message.MetadataResponseTopic, 0, len(req.Topics))

	var missing []string
	switch {
	case req.Topics == nil || r.Version == 0 && len(req.Topics) == 0:
		resp.Topics = make([]message.MetadataResponseTopic, 0, img.TopicCount())
		for t := range img.Topics() {
			resp.Topics = append(resp.Topics, view.topic(t))
		}
	case slices.ContainsFunc(req.Topics, func(t message.MetadataRequestTopic) bool { return !t.TopicId.IsZero() }):
		resp.Topics = view.byID(resp.Topics, req.Topics)
	default:
		resp.Topics, missing = view.byName(resp.Topics, req.Topics)
	}
	if !req.AllowAutoTopicCreation || !b.Config().Bool("auto.create.topics.enable") {
		missing = nil
	}
	for i := range resp.Topics {
		resp.Topics[i].TopicAuthorizedOperations = operations(req.IncludeTopicAuthorizedOperations, topicOperations)
	}
	b.createMissing(missing, func() { r.Respond(resp) })
}

// refuseMetadata checks what a version cannot say.
func refuseMetadata(req *message.MetadataRequest, version int16) errcode.Code {
	if version >= 12 {
		return errcode.None
	}
	for i := range req.Topics {
		if req.Topics[i].Name == nil || !req.Topics[i].TopicId.IsZero() {
			return errcode.InvalidRequest
		}
	}
	return errcode.None
}

func failedMetadata(req *message.MetadataRequest, version int16, code errcode.Code) *message.MetadataResponse {
	resp := message.NewMetadataResponse()
	resp.ControllerId = -1
	for i := range req.Topics {
		t := message.MetadataResponseTopic{ErrorCode: int16(code), Name: req.Topics[i].Name, TopicId: req.Topics[i].TopicId, TopicAuthorizedOperations: notAsked}
		if t.Name == nil && version < 12 {
			t.Name = new(string) // null does not exist in the answer of these versions
		}
		resp.Topics = append(resp.Topics, t)
	}
	if version >= 13 {
		resp.ErrorCode = int16(code)
	}
	return resp
}

// createMissing asks the controller for topics with the broker's defaults and goes on when it has answered, whatever it
// was: the client asks again and sees.
func (b *Broker) createMissing(names []string, then func()) {
	req := message.NewCreateTopicsRequest()
	for _, name := range names {
		t := message.CreatableTopic{Name: name, NumPartitions: -1, ReplicationFactor: -1}
		b.shapeInternal(&t)
		req.Topics = append(req.Topics, t)
	}
	if len(req.Topics) == 0 {
		then()
		return
	}
	b.controller.Submit(req, func(resp message.Response, err error) {
		if err != nil {
			b.log.Warn("topics were not created on demand", "topics", names, "err", err)
		} else {
			for _, t := range resp.(*message.CreateTopicsResponse).Topics {
				if t.ErrorCode != 0 && errcode.Code(t.ErrorCode) != errcode.TopicAlreadyExists {
					b.log.Warn("topic was not created on demand", "topic", t.Name, "code", errcode.Code(t.ErrorCode).Name())
				}
			}
		}
		then()
	})
}

// metadataView answers out of one image for one listener.
type metadataView struct {
	image    *image.Image
	listener string
	version  int16
}

// brokers lists the brokers that are alive and have the listener, and names one of them as controller: clients send
// admin requests there, and any broker passes them on.
func (v *metadataView) brokers() (all []message.MetadataResponseBroker, controllerID int32) {
	controllerID = -1
	all = []message.MetadataResponseBroker{}
	for _, b := range v.image.Brokers() {
		e, ok := b.Endpoint(v.listener)
		if b.Fenced || !ok {
			continue
		}
		if controllerID < 0 {
			controllerID = b.ID
		}
		all = append(all, message.MetadataResponseBroker{NodeId: b.ID, Host: e.Host, Port: int32(e.Port), Rack: b.Rack})
	}
	return all, controllerID
}

func (v *metadataView) byID(out []message.MetadataResponseTopic, asked []message.MetadataRequestTopic) []message.MetadataResponseTopic {
	var known []*image.Topic
	seen := make(map[wire.UUID]bool, len(asked))
	for i := range asked {
		id := asked[i].TopicId
		if id.IsZero() || seen[id] {
			continue
		}
		seen[id] = true
		if t := v.image.TopicByID(id); t != nil {
			known = append(known, t)
			continue
		}
		out = append(out, message.MetadataResponseTopic{ErrorCode: int16(errcode.UnknownTopicId), TopicId: id})
	}
	for _, t := range known {
		out = append(out, v.topic(t))
	}
	return out
}

// byName answers each name once; missing are valid names of topics that are not there.
func (v *metadataView) byName(out []message.MetadataResponseTopic, asked []message.MetadataRequestTopic) (_ []message.MetadataResponseTopic, missing []string) {
	seen := make(map[string]bool, len(asked))
	var unknown []message.MetadataResponseTopic
	for i := range asked {
		var name string
		if asked[i].Name != nil {
			name = *asked[i].Name
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		if t := v.image.Topic(name); t != nil {
			out = append(out, v.topic(t))
			continue
		}
		code := errcode.UnknownTopicOrPartition
		if controller.ValidateTopicName(name) != "" {
			code = errcode.InvalidTopicException
		} else {
			missing = append(missing, name)
		}
		unknown = append(unknown, message.MetadataResponseTopic{ErrorCode: int16(code), Name: &name, IsInternal: image.Internal(name)})
	}
	return append(out, unknown...), missing
}

func (v *metadataView) topic(t *image.Topic) message.MetadataResponseTopic {
	out := message.MetadataResponseTopic{Name: &t.Name, TopicId: t.ID, IsInternal: image.Internal(t.Name)}
	out.Partitions = make([]message.MetadataResponsePartition, 0, len(t.Partitions))
	for _, p := range t.Partitions {
		if p != nil {
			out.Partitions = append(out.Partitions, v.partition(p))
		}
	}
	return out
}

// partition leaves the replicas that are down out of the lists in version 0, which has no list of offline ones.
func (v *metadataView) partition(p *image.Partition) message.MetadataResponsePartition {
	out := message.MetadataResponsePartition{PartitionIndex: p.ID, LeaderEpoch: p.LeaderEpoch,
		ReplicaNodes: p.Replicas, IsrNodes: p.ISR, OfflineReplicas: v.offline(p)}
	filtered := false
	if v.version == 0 && len(out.OfflineReplicas) > 0 {
		down := func(id int32) bool { return slices.Contains(out.OfflineReplicas, id) }
		out.ReplicaNodes = slices.DeleteFunc(slices.Clone(p.Replicas), down)
		out.IsrNodes = slices.DeleteFunc(slices.Clone(p.ISR), down)
		filtered = true
	}
	code := v.leader(p)
	out.LeaderId = p.Leader
	switch {
	case code != errcode.None:
		out.LeaderId = image.NoLeader
	case filtered:
		code = errcode.ReplicaNotAvailable
	}
	out.ErrorCode = int16(code)
	return out
}

// leader reports why the leader cannot be named: there is none, or it has no such listener (up to version 5 both were
// one error).
func (v *metadataView) leader(p *image.Partition) errcode.Code {
	b := v.image.Broker(p.Leader)
	if b == nil || b.Fenced {
		return errcode.LeaderNotAvailable
	}
	if _, ok := b.Endpoint(v.listener); !ok {
		if v.version >= 6 {
			return errcode.ListenerNotFound
		}
		return errcode.LeaderNotAvailable
	}
	return errcode.None
}

func (v *metadataView) offline(p *image.Partition) []int32 {
	offline := []int32{}
	for _, id := range p.Replicas {
		if !v.image.Alive(id) {
			offline = append(offline, id)
			continue
		}
		if _, ok := v.image.Broker(id).Endpoint(v.listener); !ok {
			offline = append(offline, id)
		}
	}
	return offline
}
