package server

import (
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleJoinGroup answers when the group's join phase ends. Up to version 6 there is no null protocol.
func handleJoinGroup(b *Broker, r *Request) {
	req := r.Body.(*message.JoinGroupRequest)
	b.askGroup(r, req.GroupId, req, func(response any, code errcode.Code) {
		resp, ok := response.(*message.JoinGroupResponse)
		if !ok {
			resp = failedGroupResponse(r, code).(*message.JoinGroupResponse)
		}
		if r.Version < 7 && resp.ProtocolName == nil {
			resp.ProtocolName = new(string)
		}
		r.Respond(resp)
	})
}
