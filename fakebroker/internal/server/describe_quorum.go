package server

import "github.com/ottla-kafka/ottla/wire/message"

// handleDescribeQuorum asks the controller, which knows no versions, and takes out of the answer what older ones have no
// field for.
func handleDescribeQuorum(b *Broker, r *Request) {
	version := r.Version
	b.propose(r, func(answer message.Response) {
		resp := answer.(*message.DescribeQuorumResponse)
		if version < 2 {
			resp.Nodes = nil
			for i := range resp.Topics {
				for j := range resp.Topics[i].Partitions {
					p := &resp.Topics[i].Partitions[j]
					plainReplicas(p.CurrentVoters, version)
					plainReplicas(p.Observers, version)
				}
			}
		}
		r.Respond(resp)
	})
}

// plainReplicas leaves of replicas what version 0 (times came with 1) or 1 (folders came with 2) can say.
func plainReplicas(list []message.DescribeQuorumResponseReplicaState, version int16) {
	for i := range list {
		s := &list[i]
		plain := message.DescribeQuorumResponseReplicaState{}
		plain.SetDefaults()
		plain.ReplicaId, plain.LogEndOffset = s.ReplicaId, s.LogEndOffset
		if version >= 1 {
			plain.LastFetchTimestamp, plain.LastCaughtUpTimestamp = s.LastFetchTimestamp, s.LastCaughtUpTimestamp
		}
		*s = plain
	}
}
