package server

import (
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleListTransactions lists the transactional ids that this broker coordinates (KIP-664, KIP-994, KIP-1152). While one
// of its partitions is loading the list would not be whole, and the client has to come back.
func handleListTransactions(b *Broker, r *Request) {
	filter, unknown, code := transaction.NewFilter(r.Body.(*message.ListTransactionsRequest))
	if code != errcode.None {
		r.Respond(&message.ListTransactionsResponse{ErrorCode: int16(code)})
		return
	}
	b.transactions.runtime.SubmitAll(coordinator.Request{Body: filter}, func(answers map[int32]coordinator.Reply) {
		resp := message.NewListTransactionsResponse()
		resp.UnknownStateFilters = unknown
		for _, partition := range slices.Sorted(maps.Keys(answers)) {
			a := answers[partition]
			if a.Code == errcode.NotCoordinator { // it has just gone elsewhere, and another broker lists it
				continue
			}
			if a.Code != errcode.None {
				r.Respond(&message.ListTransactionsResponse{ErrorCode: int16(a.Code)})
				return
			}
			resp.TransactionStates = append(resp.TransactionStates, a.Response.([]message.ListTransactionsResponseTransactionState)...)
		}
		r.Respond(resp)
	})
}
