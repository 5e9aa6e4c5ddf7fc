package group

import (
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Group types as ListGroups names them.
const (
	classicType  = "classic"
	consumerType = "consumer"
)

// list answers ListGroups for this partition. Filters do not mind case; no filter lets all pass.
func (m *Machine) list(r coordinator.Request, req *message.ListGroupsRequest, out *coordinator.Result) {
	resp := &message.ListGroupsResponse{Groups: []message.ListedGroup{}}
	for _, g := range m.sorted() {
		l := message.ListedGroup{GroupId: g.id, GroupState: string(g.state()), GroupType: classicType}
		switch {
		case g.classic != nil:
			l.ProtocolType = g.classic.protocolType
		case g.consumer != nil:
			l.ProtocolType, l.GroupType = consumerProtocol, consumerType
		default:
			continue
		}
		if passes(req.StatesFilter, l.GroupState) && passes(req.TypesFilter, l.GroupType) {
			resp.Groups = append(resp.Groups, l)
		}
	}
	out.Reply(r.Ticket, resp)
}

func passes(filter []string, value string) bool {
	if len(filter) == 0 {
		return true
	}
	for _, f := range filter {
		if strings.EqualFold(f, value) {
			return true
		}
	}
	return false
}

// state is the state of a group of either kind.
func (g *group) state() State {
	switch {
	case g == nil:
		return Dead
	case g.classic != nil:
		return g.classic.state
	case g.consumer != nil:
		return g.consumer.state()
	}
	return Dead
}
