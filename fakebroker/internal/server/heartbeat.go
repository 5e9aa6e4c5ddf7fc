package server

import "github.com/ottla-kafka/ottla/wire/message"

func handleHeartbeat(b *Broker, r *Request) {
	handleByGroup(b, r, r.Body.(*message.HeartbeatRequest).GroupId)
}
