package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleEndTxn commits or aborts a transaction. The answer comes when the outcome is decided; the markers are written
// after it. From version 5 on the end bumps the epoch, and the answer says to what (KIP-890).
func handleEndTxn(b *Broker, r *Request) {
	req := r.Body.(*message.EndTxnRequest)
	body := transaction.EndTxn{ID: req.TransactionalId, Producer: transaction.Producer{ID: req.ProducerId, Epoch: req.ProducerEpoch},
		Commit: req.Committed, NewProducerID: transaction.NoProducer.ID}
	if r.Version >= 5 {
		body.Version = 2
	}
	b.askTransactions(body.ID, body, func(answer any, code errcode.Code) {
		if r.Version < 2 {
			code = oldFenced(code)
		}
		resp := message.NewEndTxnResponse()
		resp.ErrorCode = int16(code)
		if p, ok := answer.(transaction.Producer); ok && code == errcode.None {
			resp.ProducerId, resp.ProducerEpoch = p.ID, p.Epoch
		}
		r.Respond(resp)
	})
}
