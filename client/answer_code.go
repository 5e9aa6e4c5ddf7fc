package client

import (
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// answerCode is the error code of an answer that concerns the request as a whole: the one at its top, or one at its
// items that says that the request went to the wrong broker. Codes of single items are the caller's business.
//
// Fetch and produce answers are left out: their codes are sorted out by consumer and producer.
func answerCode(resp message.Response) errcode.Code {
	if code := topCode(resp); code != errcode.None {
		return code
	}
	return misrouted(resp)
}

func topCode(resp message.Response) errcode.Code {
	switch r := resp.(type) {
	case *message.MetadataResponse:
		return errcode.Code(r.ErrorCode)
	case *message.OffsetFetchResponse:
		return errcode.Code(r.ErrorCode)
	case *message.FindCoordinatorResponse:
		return errcode.Code(r.ErrorCode)
	case *message.JoinGroupResponse:
		return errcode.Code(r.ErrorCode)
	case *message.HeartbeatResponse:
		return errcode.Code(r.ErrorCode)
	case *message.LeaveGroupResponse:
		return errcode.Code(r.ErrorCode)
	case *message.SyncGroupResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ListGroupsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ApiVersionsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.InitProducerIdResponse:
		return errcode.Code(r.ErrorCode)
	case *message.AddPartitionsToTxnResponse:
		return errcode.Code(r.ErrorCode)
	case *message.AddOffsetsToTxnResponse:
		return errcode.Code(r.ErrorCode)
	case *message.EndTxnResponse:
		return errcode.Code(r.ErrorCode)
	case *message.DescribeAclsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.DescribeLogDirsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.CreateDelegationTokenResponse:
		return errcode.Code(r.ErrorCode)
	case *message.RenewDelegationTokenResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ExpireDelegationTokenResponse:
		return errcode.Code(r.ErrorCode)
	case *message.DescribeDelegationTokenResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ElectLeadersResponse:
		return errcode.Code(r.ErrorCode)
	case *message.AlterPartitionReassignmentsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ListPartitionReassignmentsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.OffsetDeleteResponse:
		return errcode.Code(r.ErrorCode)
	case *message.DescribeClientQuotasResponse:
		return errcode.Code(r.ErrorCode)
	case *message.DescribeUserScramCredentialsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.DescribeQuorumResponse:
		return errcode.Code(r.ErrorCode)
	case *message.UpdateFeaturesResponse:
		return errcode.Code(r.ErrorCode)
	case *message.DescribeClusterResponse:
		return errcode.Code(r.ErrorCode)
	case *message.UnregisterBrokerResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ListTransactionsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ConsumerGroupHeartbeatResponse:
		return errcode.Code(r.ErrorCode)
	case *message.GetTelemetrySubscriptionsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.PushTelemetryResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ListConfigResourcesResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ShareGroupHeartbeatResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ShareFetchResponse:
		return errcode.Code(r.ErrorCode)
	case *message.ShareAcknowledgeResponse:
		return errcode.Code(r.ErrorCode)
	case *message.AddRaftVoterResponse:
		return errcode.Code(r.ErrorCode)
	case *message.RemoveRaftVoterResponse:
		return errcode.Code(r.ErrorCode)
	case *message.StreamsGroupHeartbeatResponse:
		return errcode.Code(r.ErrorCode)
	case *message.AlterShareGroupOffsetsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.DeleteShareGroupOffsetsResponse:
		return errcode.Code(r.ErrorCode)
	case *message.StreamsGroupTopologyDescriptionUpdateResponse:
		return errcode.Code(r.ErrorCode)
	case *message.UnregisterControllerResponse:
		return errcode.Code(r.ErrorCode)
	}
	return errcode.None
}

// misrouted finds a code at an item that says that another broker has to be asked, or this one later: then no item
// was carried out, because a broker that is not the controller or coordinator refuses them all.
func misrouted(resp message.Response) errcode.Code {
	var found errcode.Code
	look := func(code int16) {
		switch c := errcode.Code(code); c {
		case errcode.NotController, errcode.NotCoordinator, errcode.CoordinatorNotAvailable, errcode.CoordinatorLoadInProgress:
			found = c
		}
	}
	switch r := resp.(type) {
	case *message.CreateTopicsResponse:
		for i := range r.Topics {
			look(r.Topics[i].ErrorCode)
		}
	case *message.DeleteTopicsResponse:
		for i := range r.Responses {
			look(r.Responses[i].ErrorCode)
		}
	case *message.CreatePartitionsResponse:
		for i := range r.Results {
			look(r.Results[i].ErrorCode)
		}
	case *message.AlterConfigsResponse:
		for i := range r.Responses {
			look(r.Responses[i].ErrorCode)
		}
	case *message.IncrementalAlterConfigsResponse:
		for i := range r.Responses {
			look(r.Responses[i].ErrorCode)
		}
	case *message.AlterClientQuotasResponse:
		for i := range r.Entries {
			look(r.Entries[i].ErrorCode)
		}
	case *message.AlterUserScramCredentialsResponse:
		for i := range r.Results {
			look(r.Results[i].ErrorCode)
		}
	case *message.CreateAclsResponse:
		for i := range r.Results {
			look(r.Results[i].ErrorCode)
		}
	case *message.DeleteAclsResponse:
		for i := range r.FilterResults {
			look(r.FilterResults[i].ErrorCode)
		}
	case *message.DescribeGroupsResponse:
		for i := range r.Groups {
			look(r.Groups[i].ErrorCode)
		}
	case *message.DeleteGroupsResponse:
		for i := range r.Results {
			look(r.Results[i].ErrorCode)
		}
	case *message.ConsumerGroupDescribeResponse:
		for i := range r.Groups {
			look(r.Groups[i].ErrorCode)
		}
	case *message.OffsetFetchResponse:
		for i := range r.Groups {
			look(r.Groups[i].ErrorCode)
		}
	case *message.OffsetCommitResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				look(r.Topics[i].Partitions[j].ErrorCode)
			}
		}
	case *message.TxnOffsetCommitResponse:
		for i := range r.Topics {
			for j := range r.Topics[i].Partitions {
				look(r.Topics[i].Partitions[j].ErrorCode)
			}
		}
	}
	return found
}
