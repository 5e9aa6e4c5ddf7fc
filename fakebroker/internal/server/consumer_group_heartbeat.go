package server

import (
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// groupFeature switches the consumer protocol on for the cluster; it is by default.
const groupFeature = "group.version"

// handleConsumerGroupHeartbeat is the one request of the members of consumer groups (KIP-848).
func handleConsumerGroupHeartbeat(b *Broker, r *Request) {
	if b.Image().Feature(groupFeature) < 1 {
		r.Respond(failedGroupResponse(r, errcode.UnsupportedVersion))
		return
	}
	handleByGroup(b, r, r.Body.(*message.ConsumerGroupHeartbeatRequest).GroupId)
}
