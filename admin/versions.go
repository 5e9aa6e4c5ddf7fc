package admin

import (
	"fmt"
	"slices"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// The requests below have fields that older brokers' versions lack. The version is known only when the request is
// written, so each leaves out what its version cannot carry, where the answer then says the same or less, and fails where
// the broker would do something else than was asked.

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
