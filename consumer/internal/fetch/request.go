package fetch

import (
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/message"
)

// consumerReplica is the replica id of whoever is no broker.
const consumerReplica int32 = -1

// appendFetch writes a fetch request. Versions before 12 know no LastFetchedEpoch and versions before 7 no
// sessions; then every request is a full one.
func (d *Driver) appendFetch(f *machine.Fetch) func([]byte, int16) ([]byte, error) {
	return func(dst []byte, version int16) ([]byte, error) {
		req := message.NewFetchRequest()
		req.MaxWaitMs = int32(f.MaxWait.Milliseconds())
		req.MinBytes = d.opts.MinBytes
		req.MaxBytes = f.MaxBytes
		req.SessionId, req.SessionEpoch = f.SessionID, f.Epoch
		req.RackId = d.opts.Rack
		if d.opts.ReadCommitted {
			req.IsolationLevel = 1
		}
		req.Topics = make([]message.FetchRequestFetchTopic, 0, 1)
		for i := range f.Parts {
			appendPart(req, &f.Parts[i], version)
		}
		for _, g := range f.Forget {
			forget(req, g)
		}
		return req.AppendTo(dst, version)
	}
}

// appendPart adds a partition, next to the others of its topic if it comes right behind them. A topic may
// appear more than once: the order of partitions is the order in which the broker fills the answer.
func appendPart(req *message.FetchRequest, p *machine.FetchPart, version int16) {
	n := len(req.Topics)
	if n == 0 || req.Topics[n-1].Topic != p.Topic || req.Topics[n-1].TopicId != p.TopicID {
		req.Topics = append(req.Topics, message.FetchRequestFetchTopic{Topic: p.Topic, TopicId: p.TopicID})
		n++
	}
	t := &req.Topics[n-1]
	t.Partitions = append(t.Partitions, message.FetchRequestFetchPartition{})
	q := &t.Partitions[len(t.Partitions)-1]
	q.SetDefaults()
	q.Partition = p.Partition
	q.FetchOffset = p.Offset
	q.CurrentLeaderEpoch = p.LeaderEpoch
	q.PartitionMaxBytes = p.MaxBytes
	if version >= 12 {
		q.LastFetchedEpoch = p.FetchedEpoch
	}
}

// forget takes a partition out of the session.
func forget(req *message.FetchRequest, g machine.Forgotten) {
	n := len(req.ForgottenTopicsData)
	if n == 0 || req.ForgottenTopicsData[n-1].Topic != g.Topic || req.ForgottenTopicsData[n-1].TopicId != g.TopicID {
		req.ForgottenTopicsData = append(req.ForgottenTopicsData, message.FetchRequestForgottenTopic{Topic: g.Topic, TopicId: g.TopicID})
		n++
	}
	t := &req.ForgottenTopicsData[n-1]
	t.Partitions = append(t.Partitions, g.Partition)
}

// appendOffsets writes a ListOffsets request.
func (d *Driver) appendOffsets(l *machine.Lookup) func([]byte, int16) ([]byte, error) {
	return func(dst []byte, version int16) ([]byte, error) {
		req := message.NewListOffsetsRequest()
		req.ReplicaId = consumerReplica
		if d.opts.ReadCommitted {
			req.IsolationLevel = 1
		}
		at := map[string]int{}
		for _, p := range l.Parts {
			i, ok := at[p.Topic]
			if !ok {
				i = len(req.Topics)
				at[p.Topic] = i
				req.Topics = append(req.Topics, message.ListOffsetsTopic{Name: p.Topic})
			}
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, message.ListOffsetsPartition{PartitionIndex: p.Partition,
				CurrentLeaderEpoch: p.LeaderEpoch, Timestamp: p.Timestamp})
		}
		return req.AppendTo(dst, version)
	}
}

// appendEpochs writes an OffsetForLeaderEpoch request.
func appendEpochs(l *machine.Lookup) func([]byte, int16) ([]byte, error) {
	return func(dst []byte, version int16) ([]byte, error) {
		req := message.NewOffsetForLeaderEpochRequest()
		req.ReplicaId = consumerReplica
		at := map[string]int{}
		for _, p := range l.Parts {
			i, ok := at[p.Topic]
			if !ok {
				i = len(req.Topics)
				at[p.Topic] = i
				req.Topics = append(req.Topics, message.OffsetForLeaderTopic{Topic: p.Topic})
			}
			req.Topics[i].Partitions = append(req.Topics[i].Partitions, message.OffsetForLeaderPartition{Partition: p.Partition,
				CurrentLeaderEpoch: p.LeaderEpoch, LeaderEpoch: p.Epoch})
		}
		return req.AppendTo(dst, version)
	}
}
