package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleInitProducerId gives a producer its id and epoch: an idempotent one a new id out of this broker's block, one with
// a transactional id what the id's coordinator says, which ends what an older producer of that id has left open.
func handleInitProducerId(b *Broker, r *Request) {
	req := r.Body.(*message.InitProducerIdRequest)
	respond := func(p transaction.Producer, code errcode.Code) {
		if r.Version < 4 {
			code = oldFenced(code)
		}
		resp := message.NewInitProducerIdResponse()
		resp.ErrorCode, resp.ProducerId, resp.ProducerEpoch = int16(code), p.ID, p.Epoch
		r.Respond(resp)
	}
	expected := transaction.Producer{ID: req.ProducerId, Epoch: req.ProducerEpoch}
	switch {
	case (expected.ID == transaction.NoProducer.ID) != (expected.Epoch == transaction.NoProducer.Epoch):
		respond(transaction.NoProducer, errcode.InvalidRequest)
		return
	case req.TransactionalId == nil:
		b.producers.next(b, func(id int64, code errcode.Code) {
			if code != errcode.None {
				respond(transaction.NoProducer, code)
				return
			}
			respond(transaction.Producer{ID: id}, errcode.None)
		})
		return
	}
	body := transaction.InitProducerID{ID: *req.TransactionalId, TimeoutMs: req.TransactionTimeoutMs, Expected: expected,
		TwoPhase: req.Enable2Pc, KeepPrepared: req.KeepPreparedTxn, NewProducerID: transaction.NoProducer.ID}
	if code := body.Check(b.Config()); code != errcode.None {
		respond(transaction.NoProducer, code)
		return
	}
	b.askTransactions(body.ID, body, func(answer any, code errcode.Code) {
		p, ok := answer.(transaction.Producer)
		if !ok {
			p = transaction.NoProducer
		}
		respond(p, code)
	})
}

// oldFenced is what clients are told that do not know PRODUCER_FENCED (KIP-360 brought it).
func oldFenced(code errcode.Code) errcode.Code {
	if code == errcode.ProducerFenced {
		return errcode.InvalidProducerEpoch
	}
	return code
}
