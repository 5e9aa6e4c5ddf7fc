package server

import "github.com/ottla-kafka/ottla/wire/message"

func handleLeaveGroup(b *Broker, r *Request) {
	handleByGroup(b, r, r.Body.(*message.LeaveGroupRequest).GroupId)
}
