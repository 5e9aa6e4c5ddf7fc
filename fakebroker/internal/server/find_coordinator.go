package server

import (
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/hash"
	"github.com/ottla-kafka/ottla/wire/message"
)

// The kinds of coordinator keys.
const (
	groupKey       int8 = 0
	transactionKey int8 = 1
	shareKey       int8 = 2 // group:topicId:partition, from version 6 on
)

// handleFindCoordinator names the broker that leads a key's partition of the internal topic. The topic, of the groups or of
// the transactions, is made when the first one asks. Apache Kafka answers COORDINATOR_NOT_AVAILABLE meanwhile; here the answer waits for it.
//
// This broker has no share coordinators: for their keys nobody is available.
func handleFindCoordinator(b *Broker, r *Request) {
	req := r.Body.(*message.FindCoordinatorRequest)
	kind, keys := req.KeyType, req.CoordinatorKeys
	if r.Version < 4 {
		keys = []string{req.CoordinatorKey}
	}
	known := kind == groupKey || kind == transactionKey || kind == shareKey && r.Version >= 6
	if !known {
		r.Respond(coordinatorsFound(r, keys, func(string) message.Coordinator { return noCoordinator(errcode.InvalidRequest, invalidRequestText) }))
		return
	}
	answer := func() {
		r.Respond(coordinatorsFound(r, keys, func(key string) message.Coordinator { return b.findCoordinator(r, kind, key) }))
	}
	if topic := coordinatorTopic(kind); topic != "" && len(keys) > 0 && b.Image().Topic(topic) == nil {
		b.createMissing([]string{topic}, answer)
		return
	}
	answer()
}

// coordinatorsFound puts what find says about each key into the form of the request's version.
func coordinatorsFound(r *Request, keys []string, find func(key string) message.Coordinator) *message.FindCoordinatorResponse {
	resp := message.NewFindCoordinatorResponse()
	if r.Version >= 4 {
		resp.Coordinators = make([]message.Coordinator, 0, len(keys))
		for _, key := range keys {
			c := find(key)
			c.Key = key
			resp.Coordinators = append(resp.Coordinators, c)
		}
		return resp
	}
	c := find(keys[0])
	text := *c.ErrorMessage
	if text == "" { // as Apache Kafka has it for NONE, too
		text = errcode.Code(c.ErrorCode).Name()
	}
	resp.ErrorCode, resp.ErrorMessage, resp.NodeId, resp.Host, resp.Port = c.ErrorCode, &text, c.NodeId, c.Host, c.Port
	return resp
}

func noCoordinator(code errcode.Code, text string) message.Coordinator {
	return message.Coordinator{NodeId: -1, Port: -1, ErrorCode: int16(code), ErrorMessage: &text}
}

func (b *Broker) findCoordinator(r *Request, kind int8, key string) message.Coordinator {
	if kind == shareKey && !validShareKey(key) {
		return noCoordinator(errcode.InvalidRequest, "")
	}
	img := b.Image()
	t := img.Topic(coordinatorTopic(kind))
	if t == nil {
		return noCoordinator(errcode.CoordinatorNotAvailable, "")
	}
	p := t.Partition(hash.CoordinatorPartition(key, int32(len(t.Partitions))))
	if p == nil || p.Leader == image.NoLeader {
		return noCoordinator(errcode.CoordinatorNotAvailable, "")
	}
	leader := img.Broker(p.Leader)
	if leader == nil || leader.Fenced {
		return noCoordinator(errcode.CoordinatorNotAvailable, "")
	}
	e, ok := leader.Endpoint(r.Listener)
	if !ok {
		return noCoordinator(errcode.CoordinatorNotAvailable, "")
	}
	none := ""
	return message.Coordinator{NodeId: p.Leader, Host: e.Host, Port: int32(e.Port), ErrorMessage: &none}
}

// coordinatorTopic is the topic whose partitions' leaders coordinate keys of a kind; empty when there is no such coordinator.
func coordinatorTopic(kind int8) string {
	switch kind {
	case groupKey:
		return offsetsTopic
	case transactionKey:
		return transactionsTopic
	}
	return ""
}

// validShareKey checks the form group:topicId:partition; the group may hold colons.
func validShareKey(key string) bool {
	parts := strings.Split(key, ":")
	if len(parts) < 3 || strings.Join(parts[:len(parts)-2], ":") == "" {
		return false
	}
	if _, err := wire.ParseUUID(parts[len(parts)-2]); err != nil {
		return false
	}
	for _, d := range parts[len(parts)-1] {
		if d < '0' || d > '9' {
			return false
		}
	}
	return parts[len(parts)-1] != ""
}
