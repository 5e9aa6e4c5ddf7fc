package server

import (
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// failedGroupResponse is the answer to a request about groups that failed as a whole; nil for other APIs.
func failedGroupResponse(r *Request, code errcode.Code) message.Response {
	c := int16(code)
	switch req := r.Body.(type) {
	case *message.JoinGroupRequest:
		resp := message.NewJoinGroupResponse()
		resp.ErrorCode, resp.MemberId, resp.ProtocolName = c, req.MemberId, nil
		if r.Version < 7 {
			resp.ProtocolName = new(string)
		}
		return resp
	case *message.SyncGroupRequest:
		return &message.SyncGroupResponse{ErrorCode: c, Assignment: []byte{}}
	case *message.HeartbeatRequest:
		return &message.HeartbeatResponse{ErrorCode: c}
	case *message.LeaveGroupRequest:
		return &message.LeaveGroupResponse{ErrorCode: c}
	case *message.OffsetDeleteRequest:
		return &message.OffsetDeleteResponse{ErrorCode: c}
	case *message.ListGroupsRequest:
		return &message.ListGroupsResponse{ErrorCode: c}
	case *message.OffsetCommitRequest:
		return failedOffsetCommit(req, c)
	case *message.OffsetFetchRequest:
		return failedOffsetFetch(r, req, c)
	case *message.ConsumerGroupHeartbeatRequest:
		resp := message.NewConsumerGroupHeartbeatResponse()
		resp.ErrorCode = c
		return resp
	case *message.FindCoordinatorRequest:
		keys := req.CoordinatorKeys
		if r.Version < 4 {
			keys = []string{req.CoordinatorKey}
		}
		return coordinatorsFound(r, keys, func(string) message.Coordinator { return noCoordinator(code, "") })
	case *message.DescribeGroupsRequest:
		resp := message.NewDescribeGroupsResponse()
		for _, id := range req.Groups {
			resp.Groups = append(resp.Groups, message.DescribeGroupsResponseDescribedGroup{ErrorCode: c, GroupId: id, AuthorizedOperations: notAsked})
		}
		return resp
	case *message.ConsumerGroupDescribeRequest:
		resp := message.NewConsumerGroupDescribeResponse()
		for _, id := range req.GroupIds {
			resp.Groups = append(resp.Groups, message.ConsumerGroupDescribeResponseDescribedGroup{ErrorCode: c, GroupId: id, AuthorizedOperations: notAsked})
		}
		return resp
	case *message.DeleteGroupsRequest:
		resp := message.NewDeleteGroupsResponse()
		for _, id := range req.GroupsNames {
			resp.Results = append(resp.Results, message.DeletableGroupResult{ErrorCode: c, GroupId: id})
		}
		return resp
	}
	return nil
}

func failedOffsetCommit(req *message.OffsetCommitRequest, c int16) *message.OffsetCommitResponse {
	resp := message.NewOffsetCommitResponse()
	for i := range req.Topics {
		t := message.OffsetCommitResponseTopic{Name: req.Topics[i].Name, TopicId: req.Topics[i].TopicId}
		for j := range req.Topics[i].Partitions {
			t.Partitions = append(t.Partitions, message.OffsetCommitResponsePartition{PartitionIndex: req.Topics[i].Partitions[j].PartitionIndex, ErrorCode: c})
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

func failedOffsetFetch(r *Request, req *message.OffsetFetchRequest, c int16) *message.OffsetFetchResponse {
	resp := message.NewOffsetFetchResponse()
	switch {
	case r.Version >= 8:
		for i := range req.Groups {
			resp.Groups = append(resp.Groups, message.OffsetFetchResponseGroup{GroupId: req.Groups[i].GroupId, ErrorCode: c})
		}
	case r.Version >= 2:
		resp.ErrorCode = c
	default:
		for i := range req.Topics {
			t := message.OffsetFetchResponseTopic{Name: req.Topics[i].Name}
			for _, p := range req.Topics[i].PartitionIndexes {
				t.Partitions = append(t.Partitions, message.OffsetFetchResponsePartition{PartitionIndex: p, CommittedOffset: -1, CommittedLeaderEpoch: -1, Metadata: new(string), ErrorCode: c})
			}
			resp.Topics = append(resp.Topics, t)
		}
	}
	return resp
}
