package server

import (
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleDeleteGroups asks each coordinator once, for all of its groups.
func handleDeleteGroups(b *Broker, r *Request) {
	req := r.Body.(*message.DeleteGroupsRequest)
	byPartition := make(map[int32][]string)
	for _, id := range req.GroupsNames {
		p := b.groups.partitionOf(id)
		byPartition[p] = append(byPartition[p], id)
	}
	partitions := slices.Sorted(maps.Keys(byPartition))
	results := make([][]message.DeletableGroupResult, len(partitions))
	gather(len(partitions), func(i int, done func()) {
		ids := byPartition[partitions[i]]
		b.groups.runtime.Submit(partitions[i], coordinator.Request{Body: group.Delete{Groups: ids}, Version: r.Version}, func(response any, code errcode.Code) {
			codes, _ := response.([]errcode.Code)
			for j, id := range ids {
				if codes != nil {
					code = codes[j]
				}
				results[i] = append(results[i], message.DeletableGroupResult{GroupId: id, ErrorCode: int16(code)})
			}
			done()
		})
	}, func() {
		resp := message.NewDeleteGroupsResponse()
		resp.Results = slices.Concat(results...)
		r.Respond(resp)
	})
}
