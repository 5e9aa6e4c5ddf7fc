package group

import (
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// notAsked is the set of authorized operations that nobody asked for.
const notAsked int32 = -1 << 31

// Describe asks for one group of a DescribeGroups request. The answer is a message.DescribeGroupsResponseDescribedGroup.
type Describe struct{ Group string }

// describe answers about classic groups. A group that is not there, or of another kind, was Dead without an error up to
// version 5, and is an error since.
func (m *Machine) describe(r coordinator.Request, req Describe, out *coordinator.Result) {
	d := message.DescribeGroupsResponseDescribedGroup{GroupId: req.Group, GroupState: string(Dead), AuthorizedOperations: notAsked}
	g := m.groups[req.Group]
	if g == nil || g.classic == nil {
		if r.Version >= 6 {
			text := fmt.Sprintf("Group %s not found.", req.Group)
			if g != nil {
				text = fmt.Sprintf("Group %s is not a classic group.", req.Group)
			}
			d.ErrorCode, d.ErrorMessage = int16(errcode.GroupIdNotFound), &text
		}
		out.Reply(r.Ticket, d)
		return
	}
	c := g.classic
	d.GroupState, d.ProtocolType = string(c.state), c.protocolType
	if c.state == Stable {
		d.ProtocolData = c.protocol
	}
	for _, x := range c.members {
		member := message.DescribedGroupMember{MemberId: x.id, GroupInstanceId: x.instance, ClientId: x.clientID, ClientHost: x.clientHost}
		if c.state == Stable {
			member.MemberMetadata = append([]byte{}, x.metadata(c.protocol)...)
		}
		member.MemberAssignment = append([]byte{}, x.assignment...)
		d.Members = append(d.Members, member)
	}
	out.Reply(r.Ticket, d)
}
