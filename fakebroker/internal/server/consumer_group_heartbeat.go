package server

import "github.com/ottla-kafka/ottla/wire/message"

// handleConsumerGroupHeartbeat is the one request of the members of consumer groups (KIP-848).
func handleConsumerGroupHeartbeat(b *Broker, r *Request) {
	handleByGroup(b, r, r.Body.(*message.ConsumerGroupHeartbeatRequest).GroupId)
}
