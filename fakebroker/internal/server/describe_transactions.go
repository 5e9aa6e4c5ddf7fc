package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleDescribeTransactions describes transactional ids that this broker coordinates (KIP-664).
func handleDescribeTransactions(b *Broker, r *Request) {
	req := r.Body.(*message.DescribeTransactionsRequest)
	resp := message.NewDescribeTransactionsResponse()
	resp.TransactionStates = make([]message.DescribeTransactionsResponseTransactionState, len(req.TransactionalIds))
	gather(len(req.TransactionalIds), func(i int, done func()) {
		id, out := req.TransactionalIds[i], &resp.TransactionStates[i]
		out.SetDefaults()
		out.TransactionalId = id
		if id == "" {
			out.ErrorCode = int16(errcode.InvalidRequest)
			done()
			return
		}
		b.askTransactions(id, transaction.Describe{ID: id}, func(answer any, code errcode.Code) {
			if d, ok := answer.(message.DescribeTransactionsResponseTransactionState); ok && code == errcode.None {
				*out = d
			} else {
				out.ErrorCode = int16(code)
			}
			done()
		})
	}, func() { r.Respond(resp) })
}
