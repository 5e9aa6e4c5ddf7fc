package server

import (
	"sync"

	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleOffsetFetch asks the coordinator of each group of the request, one group up to version 7.
func handleOffsetFetch(b *Broker, r *Request) {
	req := r.Body.(*message.OffsetFetchRequest)
	groups := req.Groups
	if r.Version < 8 {
		groups = []message.OffsetFetchRequestGroup{offsetFetchGroup(req)}
	}
	if len(groups) == 0 {
		r.Respond(message.NewOffsetFetchResponse())
		return
	}
	answers := make([]message.OffsetFetchResponseGroup, len(groups))
	gather(len(groups), func(i int, done func()) {
		b.askGroup(r, groups[i].GroupId, group.FetchOffsets{Group: groups[i], RequireStable: req.RequireStable}, func(response any, code errcode.Code) {
			var ok bool
			if answers[i], ok = response.(message.OffsetFetchResponseGroup); !ok {
				answers[i] = message.OffsetFetchResponseGroup{GroupId: groups[i].GroupId, ErrorCode: int16(code)}
			}
			done()
		})
	}, func() { r.Respond(offsetFetchResponse(r, answers)) })
}

// offsetFetchGroup is a request of the older form as one group of the newer.
func offsetFetchGroup(req *message.OffsetFetchRequest) message.OffsetFetchRequestGroup {
	g := message.OffsetFetchRequestGroup{GroupId: req.GroupId, MemberEpoch: -1}
	if req.Topics != nil {
		g.Topics = make([]message.OffsetFetchRequestTopics, len(req.Topics))
		for i := range req.Topics {
			g.Topics[i] = message.OffsetFetchRequestTopics{Name: req.Topics[i].Name, PartitionIndexes: req.Topics[i].PartitionIndexes}
		}
	}
	return g
}

// offsetFetchResponse puts the groups' answers into the form of the request's version. Version 1 has errors on partitions
// only.
func offsetFetchResponse(r *Request, answers []message.OffsetFetchResponseGroup) *message.OffsetFetchResponse {
	resp := message.NewOffsetFetchResponse()
	if r.Version >= 8 {
		resp.Groups = answers
		return resp
	}
	a := &answers[0]
	resp.ErrorCode = a.ErrorCode
	if a.ErrorCode != 0 && r.Version < 2 {
		return failedGroupResponse(r, errcode.Code(a.ErrorCode)).(*message.OffsetFetchResponse)
	}
	resp.Topics = make([]message.OffsetFetchResponseTopic, len(a.Topics))
	for i := range a.Topics {
		t := &resp.Topics[i]
		t.Name = a.Topics[i].Name
		t.Partitions = make([]message.OffsetFetchResponsePartition, len(a.Topics[i].Partitions))
		for j, p := range a.Topics[i].Partitions {
			t.Partitions[j] = message.OffsetFetchResponsePartition{PartitionIndex: p.PartitionIndex, CommittedOffset: p.CommittedOffset,
				CommittedLeaderEpoch: p.CommittedLeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode}
		}
	}
	return resp
}

// gather asks n questions and calls then once when all are answered. ask must have done called exactly once, from
// whatever goroutine.
func gather(n int, ask func(i int, done func()), then func()) {
	var mu sync.Mutex
	left := n
	one := func() {
		mu.Lock()
		left--
		last := left == 0
		mu.Unlock()
		if last {
			then()
		}
	}
	if n == 0 {
		then()
		return
	}
	for i := range n {
		ask(i, one)
	}
}
