package admin

import "github.com/ottla-kafka/ottla/wire/message"

// The requests below have fields that older brokers' versions lack. The version is known only when the request is
// written, so each leaves out what its version cannot carry; without the field the broker's answer says the same, or less.

// deleteTopics names topics in the field that the version has (topics by id or name from version 6).
type deleteTopics struct{ *message.DeleteTopicsRequest }

func (r deleteTopics) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.DeleteTopicsRequest
	if version < 6 {
		old.Topics = nil
	}
	return old.AppendTo(dst, version)
}

// describeConfigs asks for documentation where there is any (from version 3, brokers from 2.6).
type describeConfigs struct{ *message.DescribeConfigsRequest }

func (r describeConfigs) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.DescribeConfigsRequest
	old.IncludeDocumentation = old.IncludeDocumentation && version >= 3
	return old.AppendTo(dst, version)
}

// describeCluster asks for fenced brokers where they are told (from version 2, brokers from 4.0).
type describeCluster struct{ *message.DescribeClusterRequest }

func (r describeCluster) AppendTo(dst []byte, version int16) ([]byte, error) {
	old := *r.DescribeClusterRequest
	old.IncludeFencedBrokers = old.IncludeFencedBrokers && version >= 2
	return old.AppendTo(dst, version)
}
