package machine

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// The versions that the kind of the transaction decides about (KIP-890): from these on the broker takes it as implicit,
// and a broker whose transaction.version is lower must not see them.
const (
	implicitEndTxn       = 5
	implicitOffsetCommit = 5
	namedOffsetCommit    = 5 // later ones have topic ids instead of names
	clientAddPartitions  = 3 // later ones are for brokers
	epochInitProducerID  = 3 // takes the present epoch (KIP-360)
	stableInitProducerID = 5 // later ones are for two-phase commit (KIP-939)
)

// FencingOffsetCommit is the version of TxnOffsetCommit from which it takes the generation, and the coordinator checks it
// (KIP-447).
const FencingOffsetCommit = 3

// TooOldToFence says what can be done with a coordinator that has no such version.
const TooOldToFence = "offsets of a group's member take brokers from 2.5 on, older ones do not check its generation (KIP-447); without a member (the zero Generation, or a consumer that is assigned its partitions) use one transactional.id for each input partition"

// evidenceTimeout bounds the question who fenced us: an answer to the user must not wait long for it.
const evidenceTimeout = 5 * time.Second

// nextForTxn is what the transaction coordinator has to be asked next, nil if nothing.
func (m *Machine) nextForTxn(now time.Time) *Request {
	if m.tx.fence != nil {
		req := &message.DescribeTransactionsRequest{TransactionalIds: []string{m.cfg.ID}}
		return &Request{api: describe, Body: req, Timeout: evidenceTimeout}
	}
	switch m.state {
	case Initializing:
		return m.initRequest()
	case InTransaction, Committing:
		if len(m.tx.pending) > 0 {
			return m.addPartitionsRequest()
		}
		if len(m.jobs) > 0 && !m.implicit && !m.tx.groups[m.jobs[0].Group] {
			return m.addOffsetsRequest(m.jobs[0])
		}
		if m.state == Committing && m.readyToEnd() {
			return m.endRequest(true)
		}
	case Aborting:
		if m.tx.flushed && (m.implicit || m.group.air == nil) { // offsets must not come after the end of their transaction
			return m.endRequest(false)
		}
	}
	return nil
}

// issued notes what a request may do from now on.
func (m *Machine) issued(now time.Time, r *Request) {
	if r.api == commitOffsets && m.implicit {
		m.reached(now, false)
	}
}

func (m *Machine) initRequest() *Request {
	req := message.NewInitProducerIdRequest()
	id := m.cfg.ID
	req.TransactionalId, req.TransactionTimeoutMs = &id, int32(m.cfg.Timeout/time.Millisecond)
	r := &Request{api: initProducerID, Body: req, MaxVersion: stableInitProducerID}
	if m.producerID >= 0 {
		req.ProducerId, req.ProducerEpoch, r.MinVersion = m.producerID, m.epoch, epochInitProducerID
	}
	return r
}

func (m *Machine) addPartitionsRequest() *Request {
	req := message.NewAddPartitionsToTxnRequest()
	req.V3AndBelowTransactionalId, req.V3AndBelowProducerId, req.V3AndBelowProducerEpoch = m.cfg.ID, m.producerID, m.epoch
	parts := slices.Clone(m.tx.pending)
	at := map[string]int{}
	for _, tp := range parts {
		i, ok := at[tp.Topic]
		if !ok {
			i = len(req.V3AndBelowTopics)
			at[tp.Topic] = i
			req.V3AndBelowTopics = append(req.V3AndBelowTopics, message.AddPartitionsToTxnTopic{Name: tp.Topic})
		}
		req.V3AndBelowTopics[i].Partitions = append(req.V3AndBelowTopics[i].Partitions, tp.Partition)
	}
	return &Request{api: addPartitions, Body: req, MaxVersion: clientAddPartitions, parts: parts}
}

func (m *Machine) addOffsetsRequest(job *OffsetJob) *Request {
	req := message.NewAddOffsetsToTxnRequest()
	req.TransactionalId, req.ProducerId, req.ProducerEpoch, req.GroupId = m.cfg.ID, m.producerID, m.epoch, job.Group
	return &Request{api: addOffsets, Body: req, job: job}
}

func (m *Machine) endRequest(commit bool) *Request {
	req := message.NewEndTxnRequest()
	req.TransactionalId, req.ProducerId, req.ProducerEpoch, req.Committed = m.cfg.ID, m.producerID, m.epoch, commit
	r := &Request{api: endTxn, Body: req, MaxVersion: implicitEndTxn - 1}
	if m.implicit {
		r.MinVersion, r.MaxVersion = implicitEndTxn, implicitEndTxn
	}
	return r
}

// remove takes partitions out of a list.
func remove(list, gone []client.TopicPartition) []client.TopicPartition {
	return slices.DeleteFunc(list, func(tp client.TopicPartition) bool { return slices.Contains(gone, tp) })
}
