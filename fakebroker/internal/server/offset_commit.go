package server

import "github.com/ottla-kafka/ottla/wire/message"

// handleOffsetCommit answers when the offsets are committed to __consumer_offsets.
func handleOffsetCommit(b *Broker, r *Request) {
	handleByGroup(b, r, r.Body.(*message.OffsetCommitRequest).GroupId)
}
