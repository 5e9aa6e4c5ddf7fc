package server

import "github.com/ottla-kafka/ottla/wire/message"

func handleOffsetDelete(b *Broker, r *Request) {
	handleByGroup(b, r, r.Body.(*message.OffsetDeleteRequest).GroupId)
}
