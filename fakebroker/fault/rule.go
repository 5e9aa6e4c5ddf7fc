package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// A Rule chooses requests and says what happens to them. Every method returns a changed copy, so that rules can be kept
// and refined. A rule without an action only counts.
type Rule struct {
	keys   []wire.Key // none = every API
	except []wire.Key
	topics []string
	groups []string
	txns   []string
	client string
	after  int // matching requests to let pass first
	times  int // requests to strike then; 0 = all

	delay     time.Duration
	arrived   func(Point)
	answered  func(Point)
	code      errcode.Code
	drop      bool
	lose      bool
	hang      bool
	late      bool
	lateBy    time.Duration
	lateAfter int
}

// On chooses the requests of one API, or of several: they are counted together. Without any it is Any.
func On(keys ...wire.Key) Rule { return Rule{keys: slices.Clone(keys)} }

// Any chooses every request.
func Any() Rule { return Rule{} }

// Produce chooses Produce requests.
func Produce() Rule { return On(wire.KeyProduce) }

// Fetch chooses Fetch requests.
func Fetch() Rule { return On(wire.KeyFetch) }

// Metadata chooses Metadata requests.
func Metadata() Rule { return On(wire.KeyMetadata) }

// ListOffsets chooses ListOffsets requests.
func ListOffsets() Rule { return On(wire.KeyListOffsets) }

// InitProducerID chooses InitProducerId requests.
func InitProducerID() Rule { return On(wire.KeyInitProducerId) }

// CreateTopics chooses CreateTopics requests.
func CreateTopics() Rule { return On(wire.KeyCreateTopics) }

// Except leaves out the requests of some APIs: Any().Except(wire.KeyApiVersions, wire.KeyMetadata).
func (r Rule) Except(keys ...wire.Key) Rule {
	r.except = append(slices.Clip(r.except), keys...)
	return r
}

// Topic narrows to requests that name one of the topics, by name or id, in whatever API. An Error then strikes only those
// topics' partitions, and the rest of the request is served, where the API answers by partition (Produce, Fetch,
// ListOffsets, DeleteRecords, OffsetForLeaderEpoch). A fetch in a session need not name its topics again, nor a heartbeat
// of the consumer protocol: they match by what they name. What JoinGroup subscribes to is not looked into.
func (r Rule) Topic(names ...string) Rule {
	r.topics = append(slices.Clip(r.topics), names...)
	return r
}

// Group narrows to requests that name one of the groups: membership, offsets, FindCoordinator, AddOffsetsToTxn and
// TxnOffsetCommit.
func (r Rule) Group(ids ...string) Rule {
	r.groups = append(slices.Clip(r.groups), ids...)
	return r
}

// TransactionalID narrows to requests that name one of the transactional ids: InitProducerId, AddPartitionsToTxn,
// AddOffsetsToTxn, TxnOffsetCommit, EndTxn, Produce, FindCoordinator and what describes transactions.
func (r Rule) TransactionalID(ids ...string) Rule {
	r.txns = append(slices.Clip(r.txns), ids...)
	return r
}

// Client narrows to requests with a client id.
func (r Rule) Client(id string) Rule {
	r.client = id
	return r
}

// After lets the first n matching requests pass.
func (r Rule) After(n int) Rule {
	r.after = n
	return r
}

// Times strikes n requests and then no more; without it every matching request is struck until the rule is removed.
func (r Rule) Times(n int) Rule {
	r.times = n
	return r
}

// Nth strikes the n-th matching request alone, counted from 1.
func (r Rule) Nth(n int) Rule { return r.After(n - 1).Times(1) }

// Error answers with an error code and applies nothing.
func (r Rule) Error(code errcode.Code) Rule {
	r.code = code
	return r
}

// DropConnection closes the connection and applies nothing.
func (r Rule) DropConnection() Rule {
	r.drop = true
	return r
}

// LoseResponse applies the request and closes the connection instead of answering: what a client sees when the network
// fails at the worst moment.
func (r Rule) LoseResponse() Rule {
	r.lose = true
	return r
}

// Late lets the request arrive when it is too late: its connection is closed now, and d later the request is applied all
// the same, with nobody to take the answer. So an old connection's bytes reach a broker after the client has connected
// again and gone on. If the broker stops before, the request never arrives.
func (r Rule) Late(d time.Duration) Rule {
	r.late, r.lateBy = true, d
	return r
}

// LateAfter is Late by the client's own steps: the request is applied once n further requests of the same client id have
// been answered. ApiVersions and the SASL requests of a new connection are not counted. If the client never sends so
// many, the request never arrives.
func (r Rule) LateAfter(n int) Rule {
	r.late, r.lateAfter = true, n
	return r
}

// OnArrival has f called when a request has arrived, before it is applied and before the rule's other action; the request
// waits until f returns. f may do anything: close the client, Stop, Crash or Restart the cluster (the request then is lost
// with its connection), inject another rule. It runs on a goroutine of its own, which nobody waits for: a test that needs
// it done has it close a channel.
func (r Rule) OnArrival(f func(Point)) Rule {
	r.arrived = f
	return r
}

// OnAnswer has f called when a request was applied and its answer is about to leave; the answer waits until f returns. What
// OnArrival says of f holds here too. A request that is dropped, hangs or comes late has no such moment.
func (r Rule) OnAnswer(f func(Point)) Rule {
	r.answered = f
	return r
}

// Delay holds the request back for d before it is applied, or before the rule's other action.
func (r Rule) Delay(d time.Duration) Rule {
	r.delay = d
	return r
}

// Hang never answers and applies nothing; the connection stays open until one side closes it.
func (r Rule) Hang() Rule {
	r.hang = true
	return r
}

// String says the rule in words, for logs.
func (r Rule) String() string {
	var b strings.Builder
	if len(r.keys) == 0 {
		b.WriteString("any request")
	}
	b.WriteString(names(r.keys, " or "))
	for _, list := range []struct {
		what string
		ids  []string
	}{{"topic", r.topics}, {"group", r.groups}, {"transactional id", r.txns}} {
		if len(list.ids) > 0 {
			fmt.Fprintf(&b, " %s %s", list.what, strings.Join(list.ids, ","))
		}
	}
	if len(r.except) > 0 {
		b.WriteString(" except " + names(r.except, ","))
	}
	if r.client != "" {
		fmt.Fprintf(&b, " client %q", r.client)
	}
	if r.after > 0 {
		fmt.Fprintf(&b, " after %d", r.after)
	}
	if r.times > 0 {
		fmt.Fprintf(&b, " times %d", r.times)
	}
	b.WriteString(":")
	if r.delay > 0 {
		fmt.Fprintf(&b, " delay %v", r.delay)
	}
	if r.arrived != nil {
		b.WriteString(" call on arrival")
	}
	if r.answered != nil {
		b.WriteString(" call on answer")
	}
	switch {
	case r.late && r.lateAfter > 0:
		fmt.Fprintf(&b, " drop connection, apply after %d more", r.lateAfter)
	case r.late:
		fmt.Fprintf(&b, " drop connection, apply %v later", r.lateBy)
	case r.hang:
		b.WriteString(" hang")
	case r.drop:
		b.WriteString(" drop connection")
	case r.lose:
		b.WriteString(" lose response")
	case r.code != errcode.None:
		b.WriteString(" error " + r.code.Name())
	}
	return b.String()
}

func names(keys []wire.Key, sep string) string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.String()
	}
	return strings.Join(list, sep)
}

func (r *Rule) matches(p *Point) bool {
	if len(r.keys) > 0 && !slices.Contains(r.keys, p.Key) || slices.Contains(r.except, p.Key) {
		return false
	}
	if r.client != "" && r.client != p.ClientID {
		return false
	}
	return oneOf(r.topics, p.Topics) && oneOf(r.groups, p.Groups) && oneOf(r.txns, p.TransactionalIDs)
}

// oneOf reports whether a request names one of those that are wanted; nobody is asked when none is.
func oneOf(wanted []string, named func() []string) bool {
	if len(wanted) == 0 {
		return true
	}
	return named != nil && slices.ContainsFunc(named(), func(n string) bool { return slices.Contains(wanted, n) })
}
