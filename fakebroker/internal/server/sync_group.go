package server

import "github.com/ottla-kafka/ottla/wire/message"

// handleSyncGroup answers when the leader's assignment is in the log.
func handleSyncGroup(b *Broker, r *Request) {
	handleByGroup(b, r, r.Body.(*message.SyncGroupRequest).GroupId)
}
