package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/purgatory"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleProduce appends one batch to each partition of the request.
//
// The checks come in Apache Kafka's order: a transactional id for transactional batches (for the whole request), then for
// each partition topic, partition, the batch's outer form, whether it is in the transaction (transactional.go), acks,
// leadership, in-sync replicas, and last what the log itself checks. With acks=all the answer waits until the high
// watermark has passed what was appended.
func handleProduce(b *Broker, r *Request) {
	req := r.Body.(*message.ProduceRequest)
	mergeProduce(req)
	if hasTransactional(req) {
		b.produceTransactional(r, req)
		return
	}
	b.produce(r, req, nil)
}

// produce appends what a request brings; v is nil unless there are transactional batches.
func (b *Broker) produce(r *Request, req *message.ProduceRequest, v *verifying) {
	resp := &r.session.produced
	resp.ThrottleTimeMs, resp.NodeEndpoints = 0, nil
	resp.Responses = resized(resp.Responses, len(req.TopicData))
	now := time.Now()
	var waits []produceWait
	failed := errcode.None
	for i := range req.TopicData {
		td := &req.TopicData[i]
		out := &resp.Responses[i]
		out.Name, out.TopicId = td.Name, td.TopicId
		out.PartitionResponses = resized(out.PartitionResponses, len(td.PartitionData))
		t, unknown := b.produceTopic(r, td)
		for j := range td.PartitionData {
			pd, pr := &td.PartitionData[j], &out.PartitionResponses[j]
			pr.SetDefaults()
			pr.Index, pr.BaseOffset = pd.Index, -1
			if pd.Records == nil {
				// Apache Kafka's handler fails on null records and the client never hears of it; so it is here.
				b.neverAnswer(r, errors.New("null records in Produce"))
				return
			}
			code := unknown
			if v != nil && v.refused != errcode.None {
				code = v.refused
			}
			if code == errcode.None && t != nil {
				code = r.outcome.For(t.name)
			}
			if code == errcode.None {
				var w produceWait
				w, code = b.producePartition(r, req.Acks, now, t, pd, pr, v, v.at(i, j))
				if code == errcode.None && req.Acks == -1 {
					waits = append(waits, w)
				}
			}
			if pr.ErrorCode = int16(code); code != errcode.None {
				failed = code
				b.hintLeader(r, resp, t, pd.Index, pr)
			}
		}
	}
	switch {
	case req.Acks == 0 && failed != errcode.None:
		r.Close(fmt.Errorf("acks=0 and %s: closing is the only way to tell the producer", failed.Name()))
	case req.Acks == 0:
		r.NoResponse()
	case reached(waits): // always so on one node
		settle(waits)
		r.Respond(resp)
	default:
		b.awaitReplicas(waits, time.Duration(req.TimeoutMs)*time.Millisecond-time.Since(r.Received), func() { r.Respond(resp) })
	}
}

func mergeProduce(req *message.ProduceRequest) {
	req.TopicData = mergeTopics(req.TopicData,
		func(t *message.TopicProduceData) topicKey { return topicKey{t.Name, t.TopicId} },
		func(into, from *message.TopicProduceData) {
			into.PartitionData = append(into.PartitionData, from.PartitionData...)
		})
	for i := range req.TopicData {
		t := &req.TopicData[i]
		t.PartitionData = lastOfEach(t.PartitionData, func(p *message.PartitionProduceData) int32 { return p.Index })
	}
}

func (b *Broker) produceTopic(r *Request, td *message.TopicProduceData) (*topic, errcode.Code) {
	if r.Version < 13 {
		if t := b.table.named(td.Name); t != nil {
			return t, errcode.None
		}
		return nil, errcode.UnknownTopicOrPartition
	}
	if t := b.table.identified(td.TopicId); t != nil {
		return t, errcode.None
	}
	return nil, errcode.UnknownTopicId
}

// producePartition appends to one partition and fills in its answer but for the error code.
func (b *Broker) producePartition(r *Request, acks int16, now time.Time, t *topic, pd *message.PartitionProduceData, pr *message.PartitionProduceResponse, v *verifying, is verified) (produceWait, errcode.Code) {
	if t.partition(pd.Index) == nil {
		return produceWait{}, errcode.UnknownTopicOrPartition
	}
	if err := storage.ValidateProduce(pd.Records, r.Version); err != nil {
		if code := storage.CodeOf(err); code != errcode.CorruptMessage {
			return produceWait{}, code
		}
		pr.ErrorMessage = uncut(pd.Records) // only then Apache Kafka says why
		return produceWait{}, errcode.CorruptMessage
	}
	if is.code != errcode.None {
		if is.message != "" {
			pr.ErrorMessage = &is.message
		}
		return produceWait{}, is.code
	}
	if acks < -1 || acks > 1 {
		return produceWait{}, errcode.InvalidRequiredAcks
	}
	if image.Internal(t.name) && (r.ClientID == nil || *r.ClientID != "__admin_client") {
		return produceWait{}, errcode.InvalidTopicException
	}
	p, code := b.leads(t, pd.Index)
	if code != errcode.None {
		return produceWait{}, code
	}
	state := p.state.Load()
	if acks == -1 && state.inSync < p.minInSync(state) {
		return produceWait{}, errcode.NotEnoughReplicas
	}
	var info storage.AppendInfo
	var err error
	if v == nil {
		info, err = p.log.AppendAsLeader(pd.Records, state.leaderEpoch, storage.FromClient, now)
	} else {
		info, err = p.log.AppendTransactional(pd.Records, state.leaderEpoch, storage.FromClient, storage.Verification{Required: v.required, Guard: is.guard}, now)
	}
	pr.LogStartOffset = info.LogStartOffset
	if err != nil {
		return produceWait{}, b.refuseBatch(t, pr, err)
	}
	pr.BaseOffset, pr.LogAppendTimeMs = info.FirstOffset, info.LogAppendTime
	if !info.Duplicate {
		p.advance(info.Bytes)
		b.waiting.Check(p)
	}
	return produceWait{p: p, offset: info.LastOffset + 1, epoch: state.leaderEpoch, code: &pr.ErrorCode}, errcode.None
}

// uncut says in Apache Kafka's words why bytes cannot even be cut into batches: the size or the magic of the first. A batch
// that can be cut and is still too small for its header has no text.
func uncut(records []byte) *string {
	const sizeAt, minimum, magicAt = 8, 14, 16
	if size := int32(binary.BigEndian.Uint32(records[sizeAt:])); size < minimum {
		return new(fmt.Sprintf("Record size %d is less than the minimum record overhead (%d)", size, minimum))
	}
	if magic := int8(records[magicAt]); magic < 0 || magic > 2 {
		return new(fmt.Sprintf("Invalid magic found in record: %d", magic))
	}
	return nil
}

// refuseBatch turns a log's refusal into an answer. Only refusals that name records have a text for the client.
func (b *Broker) refuseBatch(t *topic, pr *message.PartitionProduceResponse, err error) errcode.Code {
	var refusal *storage.Error
	if errors.As(err, &refusal) && len(refusal.Records) > 0 {
		pr.RecordErrors = make([]message.BatchIndexAndErrorMessage, len(refusal.Records))
		for i, re := range refusal.Records {
			pr.RecordErrors[i] = message.BatchIndexAndErrorMessage{BatchIndex: re.BatchIndex, BatchIndexErrorMessage: &re.Message}
		}
		pr.ErrorMessage = &refusal.Message
	}
	code := storage.CodeOf(err)
	if code == errcode.KafkaStorageError {
		b.log.Error("append failed", "topic", t.name, "partition", pr.Index, "err", err)
	} else {
		b.log.Debug("batch refused", "topic", t.name, "partition", pr.Index, "err", err)
	}
	return code
}

// minInSync is the effective min.insync.replicas: never more than there are replicas.
func (p *partition) minInSync(s *partitionState) int {
	return min(p.topic.config.Load().minInSyncReplicas, len(s.replicas))
}

// A produceWait is one partition whose batch, or marker, has to be replicated before whoever sent it hears of it.
type produceWait struct {
	p      *partition
	offset int64  // the high watermark that is waited for
	epoch  int32  // leader epoch of the append
	code   *int16 // where an error goes
}

// reached reports whether the wait is over, with which code.
func (w *produceWait) reached() (bool, errcode.Code) {
	switch s := w.p.state.Load(); {
	case w.p.gone.Load():
		return true, errcode.UnknownTopicOrPartition
	case s.leaderEpoch != w.epoch:
		return true, errcode.NotLeaderOrFollower
	case w.p.log.HighWatermark() < w.offset:
		return false, errcode.None
	case s.inSync < w.p.minInSync(s):
		return true, errcode.NotEnoughReplicasAfterAppend
	}
	return true, errcode.None
}

// reached reports whether every wait is over.
func reached(waits []produceWait) bool {
	for i := range waits {
		if over, _ := waits[i].reached(); !over {
			return false
		}
	}
	return true
}

// awaitReplicas calls then, once, when every wait is over or the timeout has passed.
func (b *Broker) awaitReplicas(waits []produceWait, timeout time.Duration, then func()) {
	if reached(waits) {
		settle(waits)
		then()
		return
	}
	keys := make([]*partition, len(waits))
	for i := range waits {
		keys[i] = waits[i].p
	}
	b.waiting.Watch(&purgatory.Operation{Try: func() bool { return reached(waits) }, Done: func(purgatory.Outcome) {
		settle(waits)
		then()
	}}, timeout, keys...)
}

func settle(waits []produceWait) {
	for i := range waits {
		over, code := waits[i].reached()
		if !over {
			code = errcode.RequestTimedOut
		}
		if code != errcode.None {
			*waits[i].code = int16(code)
		}
	}
}

// hintLeader adds the current leader and where to find it (KIP-951) to an answer that says this is not it.
func (b *Broker) hintLeader(r *Request, resp *message.ProduceResponse, t *topic, index int32, pr *message.PartitionProduceResponse) {
	if r.Version < 10 || errcode.Code(pr.ErrorCode) != errcode.NotLeaderOrFollower {
		return
	}
	leader, epoch, node := b.currentLeader(r.Listener, t, index)
	pr.CurrentLeader.LeaderId, pr.CurrentLeader.LeaderEpoch = leader, epoch
	if node == nil {
		return
	}
	for i := range resp.NodeEndpoints {
		if resp.NodeEndpoints[i].NodeId == leader {
			return
		}
	}
	resp.NodeEndpoints = append(resp.NodeEndpoints, message.ProduceResponseNodeEndpoint{
		NodeId: leader, Host: node.host, Port: node.port, Rack: node.rack,
	})
}

// resized returns s with n elements, reusing its memory; elements keep what they had.
func resized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n)
}
