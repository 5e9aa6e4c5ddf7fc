package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// TransactionState is Kafka's name of the state of a transactional id. A broker may have states that are not listed here.
type TransactionState string

// States of transactional ids. Nothing is open in the Empty and Complete ones; in the Prepare ones the outcome is decided and
// is being written to the partitions.
const (
	TransactionEmpty             TransactionState = "Empty"
	TransactionOngoing           TransactionState = "Ongoing"
	TransactionPrepareCommit     TransactionState = "PrepareCommit"
	TransactionPrepareAbort      TransactionState = "PrepareAbort"
	TransactionCompleteCommit    TransactionState = "CompleteCommit"
	TransactionCompleteAbort     TransactionState = "CompleteAbort"
	TransactionPrepareEpochFence TransactionState = "PrepareEpochFence"
	TransactionDead              TransactionState = "Dead"
)

// open tells that a transaction has begun and is not at its end.
func (s TransactionState) open() bool {
	switch s {
	case TransactionEmpty, TransactionCompleteCommit, TransactionCompleteAbort, TransactionDead:
		return false
	}
	return true
}

// TransactionFilter chooses among transactional ids; a zero field takes all.
type TransactionFilter struct {
	States      []TransactionState
	ProducerIDs []int64
	// LongerThan takes only transactions that have been open for longer (KIP-994, brokers from 3.8), by the clock of their
	// coordinator and in whole milliseconds. Coordinators let ids without an open transaction pass; they are left out here.
	LongerThan time.Duration
	// Pattern is a regular expression that the whole transactional id must match (KIP-1152, brokers from 4.1).
	Pattern string
}

// ListedTransaction is a row of ListTransactions.
type ListedTransaction struct {
	ID          string // the transactional id
	ProducerID  int64
	State       TransactionState
	Coordinator int32 // broker id
}

// ListTransactions gives the transactional ids of all coordinators, by id, those without an open transaction included. It
// takes brokers from 3.0 on (KIP-664). When a broker does not answer, the rows of the others come beside the error; one
// that leaves the cluster meanwhile is not waited for.
func (a *Admin) ListTransactions(ctx context.Context, filter TransactionFilter) ([]ListedTransaction, error) {
	return atBrokers(ctx, a, func(t ListedTransaction) string { return t.ID }, func(ctx context.Context, broker int32) ([]ListedTransaction, error) {
		return a.transactionsOf(ctx, broker, filter)
	})
}

// transactionsOf asks one broker for the transactional ids that it coordinates.
func (a *Admin) transactionsOf(ctx context.Context, broker int32, filter TransactionFilter) ([]ListedTransaction, error) {
	req := message.NewListTransactionsRequest()
	for _, s := range filter.States {
		req.StateFilters = append(req.StateFilters, string(s))
	}
	req.ProducerIdFilters = filter.ProducerIDs
	if filter.LongerThan > 0 {
		req.DurationFilter = filter.LongerThan.Milliseconds()
	}
	if filter.Pattern != "" {
		req.TransactionalIdPattern = &filter.Pattern
	}
	resp, err := once[*message.ListTransactionsResponse](ctx, a, broker, 0, listTransactions{req})
	if err != nil {
		return nil, err
	}
	what := a.cl.BrokerName(broker)
	if err := rowError("list transactions of", what, resp.ErrorCode, nil); err != nil {
		return nil, err
	}
	if len(resp.UnknownStateFilters) > 0 {
		return nil, fmt.Errorf("list transactions of %s: it knows no state %s", what, strings.Join(resp.UnknownStateFilters, ", "))
	}
	var rows []ListedTransaction
	for _, t := range resp.TransactionStates {
		if filter.LongerThan > 0 && !TransactionState(t.TransactionState).open() {
			continue
		}
		rows = append(rows, ListedTransaction{t.TransactionalId, t.ProducerId, TransactionState(t.TransactionState), broker})
	}
	return rows, nil
}

// Transaction is a row of DescribeTransactions: what a coordinator knows of a transactional id.
type Transaction struct {
	ID            string
	State         TransactionState
	ProducerID    int64
	ProducerEpoch int16
	Timeout       time.Duration // transaction.timeout.ms of the producer
	Start         time.Time     // when the open transaction began; zero when none is open
	// Partitions are those that the transaction has written to, and in a Prepare state those that wait for its outcome, by
	// topic and partition.
	Partitions  []TopicPartition
	Coordinator Broker
	Err         error
}

// Age is how long the open transaction has been open; 0 when none is.
func (t Transaction) Age(now time.Time) time.Duration {
	if t.Start.IsZero() {
		return 0
	}
	return now.Sub(t.Start)
}

// DescribeTransactions gives transactional ids in the order of asking. It takes brokers from 3.0 on (KIP-664). An id that no
// producer has used, or that has expired, is a row with TRANSACTIONAL_ID_NOT_FOUND.
func (a *Admin) DescribeTransactions(ctx context.Context, ids ...string) ([]Transaction, error) {
	ids = unique(ids)
	rows := make([]Transaction, len(ids))
	errs := a.atCoordinators(ctx, client.TransactionCoordinator, ids, func(ctx context.Context, at client.Node, some []int, errs []error) {
		req := message.NewDescribeTransactionsRequest()
		for _, i := range some {
			req.TransactionalIds = append(req.TransactionalIds, ids[i])
		}
		resp, err := once[*message.DescribeTransactionsResponse](ctx, a, at.ID, 0, req)
		if err != nil {
			setAll(errs, some, err)
			return
		}
		answers := byName(resp.TransactionStates, func(t message.DescribeTransactionsResponseTransactionState) string { return t.TransactionalId })
		for _, i := range some {
			t, ok := answers[ids[i]]
			if !ok {
				errs[i] = leftOut("describe transaction", ids[i])
			} else if errs[i] = rowError("describe transaction", ids[i], t.ErrorCode, nil); errs[i] == nil {
				rows[i] = describedTransaction(t)
			}
			rows[i].Coordinator = Broker{ID: at.ID, Host: at.Host, Port: at.Port, Rack: at.Rack}
		}
	})
	for i, err := range errs {
		rows[i].ID, rows[i].Err = ids[i], err
	}
	return rows, outcome(ctx, errs)
}

func describedTransaction(t message.DescribeTransactionsResponseTransactionState) Transaction {
	row := Transaction{State: TransactionState(t.TransactionState), ProducerID: t.ProducerId, ProducerEpoch: t.ProducerEpoch,
		Timeout: time.Duration(t.TransactionTimeoutMs) * time.Millisecond}
	if t.TransactionStartTimeMs >= 0 && row.State.open() { // coordinators keep the time of the last one
		row.Start = time.UnixMilli(t.TransactionStartTimeMs)
	}
	for _, topic := range t.Topics {
		for _, p := range topic.Partitions {
			row.Partitions = append(row.Partitions, TopicPartition{Topic: topic.Topic, Partition: p})
		}
	}
	slices.SortFunc(row.Partitions, comparePartitions)
	return row
}
