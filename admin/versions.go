package admin

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// The requests below have fields that older brokers' versions lack. The version is known only when the request is
// written, so each leaves out what its version cannot carry, where the answer then says the same or less, and fails where
// the broker would do something else than was asked.

// takes is from which Kafka on brokers know a request, or a version of it, that 2.1 does not know.
var takes = map[wire.Key]map[int16]string{
	wire.KeyIncrementalAlterConfigs: {0: "2.3"}, wire.KeyOffsetDelete: {0: "2.4"}, wire.KeyDescribeProducers: {0: "2.8"}, wire.KeyWriteTxnMarkers: {0: "2.8"},
	wire.KeyListTransactions: {0: "3.0"}, wire.KeyDescribeTransactions: {0: "3.0"}, wire.KeyListConfigResources: {0: "4.1"},
	wire.KeyListOffsets: {MaxTimestamp.since: "3.0", EarliestLocal.since: "3.5", LatestTiered.since: "3.9"},
}

// tooOld adds to the error of a request in version least or later what brokers it takes.
func tooOld(err error, key wire.Key, least int16) error {
	var op *client.OpError
	if from := takes[key][least]; from != "" && unsupported(err) && errors.As(err, &op) && op.Hint == "" {
		op.Hint = "it takes brokers from " + from + " on"
	}
	return err
}

// createTopics lets the broker choose numbers of partitions and replicas where it can (KIP-464, from version 4 on).
type createTopics struct{ *message.CreateTopicsRequest }

func (r createTopics) AppendTo(dst []byte, version int16) ([]byte, error) {
	if version < 4 {
		for _, t := range r.Topics {
			if len(t.Assignments) == 0 && (t.NumPartitions == -1 || t.ReplicationFactor == -1) {
				return dst, fmt.Errorf("%w that leaves Partitions or Replicas to the broker: name both for topic %q, brokers before 2.4 have no default for created topics",
					client.ErrUnsupportedVersion, t.Name)
			}
		}
	}
	return r.CreateTopicsRequest.AppendTo(dst, version)
}

// deleteTopics names topics in the field that the version has (by id or name from version 6 on).
type deleteTopics struct{ *message.DeleteTopicsRequest }

func (r deleteTopics) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.DeleteTopicsRequest
	if version < 6 {
		old.Topics = nil
	}
	return old.AppendTo(dst, version)
}

// describeConfigs asks for documentation where there is any (from version 3 on, brokers from 2.6).
type describeConfigs struct {
	*message.DescribeConfigsRequest
}

func (r describeConfigs) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.DescribeConfigsRequest
	old.IncludeDocumentation = old.IncludeDocumentation && version >= 3
	return old.AppendTo(dst, version)
}

// listConfigResources is ListClientMetricsResources in version 0, before KIP-1142: it lists that kind and takes none.
type listConfigResources struct {
	*message.ListConfigResourcesRequest
}

func (r listConfigResources) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.ListConfigResourcesRequest
	if version < 1 {
		if !slices.Equal(old.ResourceTypes, []int8{int8(ClientMetricsResource)}) {
			return dst, fmt.Errorf("%w for other kinds than %s, which takes brokers from 4.1 on", client.ErrUnsupportedVersion, ClientMetricsResource)
		}
		old.ResourceTypes = nil
	}
	return old.AppendTo(dst, version)
}

// describeCluster asks for fenced brokers where they are told (from version 2 on, brokers from 4.0).
type describeCluster struct {
	*message.DescribeClusterRequest
}

func (r describeCluster) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.DescribeClusterRequest
	old.IncludeFencedBrokers = old.IncludeFencedBrokers && version >= 2
	return old.AppendTo(dst, version)
}

// listGroups leaves out filters that a version lacks: before version 5 every group is a classic one, so that filter can be
// dropped where it lets those through; before version 4 states are not known.
type listGroups struct{ *message.ListGroupsRequest }

func (r listGroups) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.ListGroupsRequest
	if version < 4 && len(old.StatesFilter) > 0 {
		return dst, fmt.Errorf("%w that filters by state, which takes brokers from 2.6 on", client.ErrUnsupportedVersion)
	}
	if version < 5 && len(old.TypesFilter) > 0 {
		if !slices.Contains(old.TypesFilter, string(ClassicGroup)) {
			return dst, fmt.Errorf("%w that filters by type, which takes brokers from 3.8 on", client.ErrUnsupportedVersion)
		}
		old.TypesFilter = nil
	}
	return old.AppendTo(dst, version)
}

// listTransactions leaves no filter out: the list would be longer than what was asked for (durations from version 1 on, brokers
// from 3.8; patterns from version 2 on, brokers from 4.1).
type listTransactions struct {
	*message.ListTransactionsRequest
}

func (r listTransactions) AppendTo(dst []byte, version int16) ([]byte, error) {
	if version < 1 && r.DurationFilter >= 0 {
		return dst, fmt.Errorf("%w that filters by duration, which takes brokers from 3.8 on", client.ErrUnsupportedVersion)
	}
	if version < 2 && r.TransactionalIdPattern != nil {
		return dst, fmt.Errorf("%w that filters by pattern, which takes brokers from 4.1 on", client.ErrUnsupportedVersion)
	}
	return r.ListTransactionsRequest.AppendTo(dst, version)
}

// leaveGroup takes out one member by its id where there is no list of them (before version 3, brokers before 2.4).
type leaveGroup struct{ *message.LeaveGroupRequest }

func (r leaveGroup) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.LeaveGroupRequest
	old.Members = slices.Clone(old.Members)
	for i := range old.Members {
		if version < 5 {
			old.Members[i].Reason = nil
		}
	}
	if version < 3 {
		if len(old.Members) != 1 || old.Members[0].GroupInstanceId != nil {
			return dst, fmt.Errorf("%w for several members or by instance id, which takes brokers from 2.4 on: remove one at a time, by member id", client.ErrUnsupportedVersion)
		}
		old.MemberId, old.Members = old.Members[0].MemberId, nil
	}
	return old.AppendTo(dst, version)
}

// offsetFetch asks about one group in the fields that the version has (a list of groups from version 8 on). Topics go by
// name in all versions up to 9, the last one that request uses.
type offsetFetch struct{ *message.OffsetFetchRequest }

func (r offsetFetch) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.OffsetFetchRequest
	if version < 8 {
		old.Groups = nil
	} else {
		old.GroupId, old.Topics = "", []message.OffsetFetchRequestTopic{} // null would mean all topics
	}
	return old.AppendTo(dst, version)
}

// offsetCommit leaves the leader's epoch out where there is no field for it (before version 6, brokers before 2.1).
type offsetCommit struct{ *message.OffsetCommitRequest }

func (r offsetCommit) AppendTo(dst []byte, version int16) ([]byte, error) {
	if version >= 6 {
		return r.OffsetCommitRequest.AppendTo(dst, version)
	}
	old := *r.OffsetCommitRequest
	old.Topics = slices.Clone(old.Topics)
	for i := range old.Topics {
		old.Topics[i].Partitions = slices.Clone(old.Topics[i].Partitions)
		for j := range old.Topics[i].Partitions {
			old.Topics[i].Partitions[j].CommittedLeaderEpoch = -1
		}
	}
	return old.AppendTo(dst, version)
}
