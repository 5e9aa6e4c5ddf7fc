package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// anyKey stands for every API.
const anyKey wire.Key = -1

// A Rule chooses requests and says what happens to them. Every method returns a changed copy, so that rules can be kept
// and refined. A rule without an action only counts.
type Rule struct {
	key    wire.Key
	topics []string
	client string
	after  int // matching requests to let pass first
	times  int // requests to strike then; 0 = all

	delay time.Duration
	code  errcode.Code
	drop  bool
	lose  bool
	hang  bool
}

// On chooses the requests of one API.
func On(k wire.Key) Rule { return Rule{key: k} }

// Any chooses every request.
func Any() Rule { return Rule{key: anyKey} }

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

// Topic narrows to requests that name one of the topics. An Error then strikes only those topics' partitions, and the
// rest of the request is served, where the API answers by partition (Produce, Fetch, ListOffsets, DeleteRecords,
// OffsetForLeaderEpoch). A fetch in a session need not name its topics again: it matches by what it names.
func (r Rule) Topic(names ...string) Rule {
	r.topics = append(slices.Clip(r.topics), names...)
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
	if r.key == anyKey {
		b.WriteString("any request")
	} else {
		b.WriteString(r.key.String())
	}
	if len(r.topics) > 0 {
		fmt.Fprintf(&b, " topic %s", strings.Join(r.topics, ","))
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
	switch {
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

func (r *Rule) matches(p *Point) bool {
	if r.key != anyKey && r.key != p.Key {
		return false
	}
	if r.client != "" && r.client != p.ClientID {
		return false
	}
	if len(r.topics) == 0 {
		return true
	}
	return slices.ContainsFunc(p.Topics(), func(t string) bool { return slices.Contains(r.topics, t) })
}
