package transaction

import (
	"regexp"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// A Filter asks for the transactional ids that pass it. The answer is a
// []message.ListTransactionsResponseTransactionState, by id.
type Filter struct {
	producers  []int64
	states     []State
	byState    bool
	durationMs int64
	pattern    *regexp.Regexp
}

// NewFilter reads the filters of a request. Names that are no states are returned; they match nothing.
func NewFilter(r *message.ListTransactionsRequest) (f Filter, unknown []string, code errcode.Code) {
	f = Filter{producers: r.ProducerIdFilters, byState: len(r.StateFilters) > 0, durationMs: r.DurationFilter}
	for _, name := range r.StateFilters {
		if s, ok := stateNamed(name); ok {
			f.states = append(f.states, s)
		} else if !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	if r.TransactionalIdPattern != nil && *r.TransactionalIdPattern != "" {
		var err error
		if f.pattern, err = regexp.Compile("^(?:" + *r.TransactionalIdPattern + ")$"); err != nil {
			return f, unknown, errcode.InvalidRegularExpression
		}
	}
	return f, unknown, errcode.None
}

func (f *Filter) passes(t *txn, nowMs int64) bool {
	return (len(f.producers) == 0 || slices.Contains(f.producers, t.producerID)) &&
		(!f.byState || slices.Contains(f.states, t.state)) &&
		(f.durationMs < 0 || nowMs-t.start > f.durationMs) &&
		(f.pattern == nil || f.pattern.MatchString(t.id))
}

func (m *Machine) list(now time.Time, ticket coordinator.Ticket, f Filter, out *coordinator.Result) {
	found := []message.ListTransactionsResponseTransactionState{}
	for _, id := range m.sorted() {
		if t := m.txns[id]; f.passes(t, now.UnixMilli()) {
			found = append(found, message.ListTransactionsResponseTransactionState{TransactionalId: id, ProducerId: t.producerID, TransactionState: t.state.String()})
		}
	}
	out.Reply(ticket, found)
}
