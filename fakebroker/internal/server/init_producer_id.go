package server

import (
	"slices"
	"sync"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleInitProducerId gives an idempotent producer its id. Ids come from blocks that the controller hands out, so that
// no id is ever given twice, whatever restarts.
//
// With a transactional id the transaction coordinator would answer; this broker has none yet and says so.
func handleInitProducerId(b *Broker, r *Request) {
	req := r.Body.(*message.InitProducerIdRequest)
	respond := func(id int64, code errcode.Code) {
		resp := message.NewInitProducerIdResponse()
		resp.ErrorCode, resp.ProducerId = int16(code), id
		resp.ProducerEpoch = -1
		if code == errcode.None {
			resp.ProducerEpoch = 0
		}
		r.Respond(resp)
	}
	switch {
	case (req.ProducerId < 0) != (req.ProducerEpoch < 0):
		respond(-1, errcode.InvalidRequest)
	case req.TransactionalId != nil && *req.TransactionalId == "":
		respond(-1, errcode.InvalidRequest)
	case req.TransactionalId != nil && (req.TransactionTimeoutMs <= 0 || int64(req.TransactionTimeoutMs) > b.Config().Int("transaction.max.timeout.ms")):
		respond(-1, errcode.InvalidTransactionTimeout)
	case req.TransactionalId != nil:
		respond(-1, errcode.CoordinatorNotAvailable)
	default:
		b.producers.next(b, respond)
	}
}

// producerIDs hands out the ids of the current block and asks for the next one when it is used up. Requests that come
// meanwhile wait in line without holding a handler slot.
type producerIDs struct {
	mu      sync.Mutex
	id, end int64 // the next id and the end of the block; equal when it is used up
	asking  bool
	waiting []func(int64, errcode.Code)
}

func (p *producerIDs) next(b *Broker, respond func(int64, errcode.Code)) {
	p.mu.Lock()
	if len(p.waiting) == 0 && p.id < p.end {
		id := p.id
		p.id++
		p.mu.Unlock()
		respond(id, errcode.None)
		return
	}
	p.waiting = append(p.waiting, respond)
	ask := !p.asking
	p.asking = true
	p.mu.Unlock()
	if ask {
		p.ask(b)
	}
}

func (p *producerIDs) ask(b *Broker) {
	req := message.NewAllocateProducerIdsRequest()
	req.BrokerId, req.BrokerEpoch = b.opts.NodeID, b.epoch
	b.controller.Submit(req, func(resp message.Response, err error) {
		block, ok := resp.(*message.AllocateProducerIdsResponse)
		if err != nil || !ok || block.ErrorCode != 0 {
			b.log.Warn("no block of producer ids from the controller", "err", err)
			p.refuse()
			return
		}
		p.refill(b, block.ProducerIdStart, int64(block.ProducerIdLen))
	})
}

// refill serves who waited from a new block; if it was too small, another is asked for.
func (p *producerIDs) refill(b *Broker, start, n int64) {
	p.mu.Lock()
	p.id, p.end = start, start+n
	served := p.waiting[:min(int64(len(p.waiting)), n)]
	p.waiting = slices.Clone(p.waiting[len(served):])
	first := p.id
	p.id += int64(len(served))
	p.asking = len(p.waiting) > 0
	again := p.asking
	p.mu.Unlock()
	for i, respond := range served {
		respond(first+int64(i), errcode.None)
	}
	if again {
		p.ask(b)
	}
}

// refuse tells who waited to try again, as Apache Kafka does while it has no block.
func (p *producerIDs) refuse() {
	p.mu.Lock()
	waiting := p.waiting
	p.waiting, p.asking = nil, false
	p.mu.Unlock()
	for _, respond := range waiting {
		respond(-1, errcode.CoordinatorLoadInProgress)
	}
}
