package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleDescribeGroups describes classic groups.
func handleDescribeGroups(b *Broker, r *Request) {
	req := r.Body.(*message.DescribeGroupsRequest)
	resp := message.NewDescribeGroupsResponse()
	resp.Groups = make([]message.DescribeGroupsResponseDescribedGroup, len(req.Groups))
	gather(len(req.Groups), func(i int, done func()) {
		d := &resp.Groups[i]
		d.SetDefaults()
		d.GroupId = req.Groups[i]
		b.askGroup(r, d.GroupId, group.Describe{Group: d.GroupId}, func(response any, code errcode.Code) {
			if code != errcode.None {
				d.ErrorCode = int16(code)
			} else {
				*d = response.(message.DescribeGroupsResponseDescribedGroup)
				if d.ErrorCode == 0 {
					d.AuthorizedOperations = operations(req.IncludeAuthorizedOperations, groupOperations)
				}
			}
			done()
		})
	}, func() { r.Respond(resp) })
}

// groupOperations are the operations that exist on a group.
const groupOperations int32 = 1<<opRead | 1<<opDelete | 1<<opDescribe | 1<<opDescribeConfigs | 1<<opAlterConfigs
