package driver

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/raft"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// KRaftVersion is the level of kraft.version that the folder has: 1 when the voters stand in the log.
func (d *Driver) KRaftVersion() int16 { return d.quorum.KRaftVersion() }

// describeQuorum answers about the one partition there is; it is the quorum's business, not the machine's.
func (d *Driver) describeQuorum(now time.Time, req *message.DescribeQuorumRequest) *message.DescribeQuorumResponse {
	none := ""
	resp := &message.DescribeQuorumResponse{ErrorMessage: &none}
	if len(req.Topics) != 1 || req.Topics[0].TopicName != storage.MetadataTopic ||
		len(req.Topics[0].Partitions) != 1 || req.Topics[0].Partitions[0].PartitionIndex != 0 {
		return refuseQuorum(req, resp)
	}
	leader := d.quorum.Leader()
	p := message.DescribeQuorumResponsePartitionData{ErrorMessage: &none, LeaderId: leader.LeaderID, LeaderEpoch: leader.Epoch,
		HighWatermark: d.quorum.HighWatermark(), Observers: []message.DescribeQuorumResponseReplicaState{}}
	for _, v := range d.quorum.Voters() {
		p.CurrentVoters = append(p.CurrentVoters, message.DescribeQuorumResponseReplicaState{ReplicaId: v.ID,
			ReplicaDirectoryId: v.DirectoryID, LogEndOffset: d.quorum.EndOffset(),
			LastFetchTimestamp: now.UnixMilli(), LastCaughtUpTimestamp: now.UnixMilli()})
		resp.Nodes = append(resp.Nodes, nodeOf(v))
	}
	resp.Topics = []message.DescribeQuorumResponseTopicData{{TopicName: storage.MetadataTopic,
		Partitions: []message.DescribeQuorumResponsePartitionData{p}}}
	return resp
}

func nodeOf(v raft.Voter) message.Node {
	n := message.Node{NodeId: v.ID}
	for _, e := range v.Endpoints {
		n.Listeners = append(n.Listeners, message.DescribeQuorumResponseListener{Name: e.Name, Host: e.Host, Port: e.Port})
	}
	return n
}

// refuseQuorum answers every named partition with UNKNOWN_TOPIC_OR_PARTITION.
func refuseQuorum(req *message.DescribeQuorumRequest, resp *message.DescribeQuorumResponse) *message.DescribeQuorumResponse {
	for _, t := range req.Topics {
		answer := message.DescribeQuorumResponseTopicData{TopicName: t.TopicName}
		for _, p := range t.Partitions {
			answer.Partitions = append(answer.Partitions, message.DescribeQuorumResponsePartitionData{PartitionIndex: p.PartitionIndex,
				ErrorCode: int16(errcode.UnknownTopicOrPartition), ErrorMessage: new("This server does not host this topic-partition.")})
		}
		resp.Topics = append(resp.Topics, answer)
	}
	return resp
}
