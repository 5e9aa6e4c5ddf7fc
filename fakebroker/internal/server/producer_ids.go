package server

import (
	"slices"
	"sync"

	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// producerIDs hands out the ids of the current block and asks the controller for the next one when it is used up.
// Requests that come meanwhile wait in line without holding a handler slot. No id is ever given twice, whatever restarts:
// what is left of a block when the broker stops is lost.
type producerIDs struct {
	mu      sync.Mutex
	id, end int64 // the next id and the end of the block; equal when it is used up
	asking  bool
	waiting []func(int64, errcode.Code)
}

// next calls respond once with a new producer id, or with the code that Apache Kafka has while there is no block. It may
// call it at once.
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
	req.BrokerId, req.BrokerEpoch = b.opts.NodeID, b.epoch.Load()
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
	if b.opts.Bugs.Has(bug.ProducerIDAgain) {
		start = 0
	}
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
