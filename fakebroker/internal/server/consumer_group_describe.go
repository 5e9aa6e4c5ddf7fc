package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleConsumerGroupDescribe describes consumer groups.
func handleConsumerGroupDescribe(b *Broker, r *Request) {
	req := r.Body.(*message.ConsumerGroupDescribeRequest)
	resp := message.NewConsumerGroupDescribeResponse()
	resp.Groups = make([]message.ConsumerGroupDescribeResponseDescribedGroup, len(req.GroupIds))
	gather(len(req.GroupIds), func(i int, done func()) {
		d := &resp.Groups[i]
		d.SetDefaults()
		d.GroupId = req.GroupIds[i]
		if d.GroupId == "" {
			d.ErrorCode = int16(errcode.InvalidGroupId)
			done()
			return
		}
		b.askGroup(r, d.GroupId, group.DescribeConsumer{Group: d.GroupId}, func(response any, code errcode.Code) {
			if code != errcode.None {
				d.ErrorCode = int16(code)
			} else {
				*d = response.(message.ConsumerGroupDescribeResponseDescribedGroup)
				if d.ErrorCode == 0 {
					d.AuthorizedOperations = operations(req.IncludeAuthorizedOperations, groupOperations)
				}
			}
			done()
		})
	}, func() { r.Respond(resp) })
}
