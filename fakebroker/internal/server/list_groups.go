package server

import (
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleListGroups lists the groups that this broker coordinates. While one of its partitions is loading the list would
// not be whole, and the client has to come back.
func handleListGroups(b *Broker, r *Request) {
	req := r.Body.(*message.ListGroupsRequest)
	b.groups.runtime.SubmitAll(coordinator.Request{Body: req, Version: r.Version}, func(answers map[int32]coordinator.Reply) {
		resp := message.NewListGroupsResponse()
		for _, partition := range slices.Sorted(maps.Keys(answers)) {
			a := answers[partition]
			if a.Code == errcode.NotCoordinator { // it has just gone elsewhere, and another broker lists it
				continue
			}
			if a.Code != errcode.None {
				r.Respond(failedGroupResponse(r, a.Code))
				return
			}
			resp.Groups = append(resp.Groups, a.Response.(*message.ListGroupsResponse).Groups...)
		}
		r.Respond(resp)
	})
}
