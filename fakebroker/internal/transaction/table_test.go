package transaction

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// asker is how a request names its producer.
var askers = []struct {
	name string
	of   func(t *txn) Producer
}{
	{"current", func(t *txn) Producer { return Producer{t.producerID, t.epoch} }},
	{"before", func(t *txn) Producer { return Producer{t.producerID, t.epoch - 1} }},
	{"after", func(t *txn) Producer { return Producer{t.producerID, t.epoch + 1} }},
	{"other", func(t *txn) Producer { return Producer{77, t.epoch} }},
}

var requests = []struct {
	name string
	body func(p Producer) any
}{
	{"init, as", func(p Producer) any {
		return InitProducerID{ID: "x", TimeoutMs: 1000, Expected: p, NewProducerID: noProducerID}
	}},
	{"add same", func(p Producer) any {
		return AddPartitions{ID: "x", Producer: p, Partitions: []TopicPartition{{"t", 0}}, Version: 2}
	}},
	{"add more", func(p Producer) any {
		return AddPartitions{ID: "x", Producer: p, Partitions: []TopicPartition{{"t", 0}, {"t", 1}}}
	}},
	{"verify", func(p Producer) any {
		return VerifyPartitions{ID: "x", Producer: p, Partitions: []TopicPartition{{"t", 0}}}
	}},
	{"commit", func(p Producer) any { return EndTxn{ID: "x", Producer: p, Commit: true, NewProducerID: noProducerID} }},
	{"abort", func(p Producer) any { return EndTxn{ID: "x", Producer: p, NewProducerID: noProducerID} }},
	{"commit, KIP-890", func(p Producer) any {
		return EndTxn{ID: "x", Producer: p, Commit: true, Version: 2, NewProducerID: noProducerID}
	}},
	{"abort, KIP-890", func(p Producer) any { return EndTxn{ID: "x", Producer: p, Version: 2, NewProducerID: noProducerID} }},
	{"markers", func(p Producer) any { return MarkersWritten{ID: "x", Producer: p, Commit: true} }},
}

// TestEveryRequestInEveryState puts every request to every state and compares what becomes of it with the table in
// testdata. Whatever the answer, the log still replays to the same state, and a transition is a legal one.
func TestEveryRequestInEveryState(t *testing.T) {
	var out strings.Builder
	for _, level := range []int16{2, 1} {
		fmt.Fprintf(&out, "# transaction.version %d\n", level)
		for _, s := range sortedKeys(states) {
			for _, r := range requests {
				for _, a := range askers {
					fmt.Fprintf(&out, "%-14s | %-15s | %-7s | %s\n", s, r.name, a.name, tryRequest(t, level, s, func(x *txn) any { return r.body(a.of(x)) }))
				}
			}
			fmt.Fprintf(&out, "%-14s | %-15s | %-7s | %s\n", s, "init", "", tryRequest(t, level, s, func(*txn) any {
				return InitProducerID{ID: "x", TimeoutMs: 1000, Expected: NoProducer, NewProducerID: noProducerID}
			}))
			fmt.Fprintf(&out, "%-14s | %-15s | %-7s | %s\n", s, "timeout", "", tryRequest(t, level, s, func(*txn) any {
				return TimeOut{ID: "x", Producer: NoProducer, NewProducerID: noProducerID}
			}))
		}
	}
	wiretest.Story(t, "testdata/requests.table", out.String())
}

// tryRequest says how a request is answered in a state, and what the id is afterwards.
func tryRequest(t *testing.T, level int16, s State, body func(*txn) any) string {
	b := newBench(t, level, nil)
	b.init("x")
	b.setEpoch("x", 5) // far from both ends
	states[s](b)
	require.Equal(t, s, b.m.txns["x"].state)
	before, orders := *b.m.txns["x"], len(b.orders)
	reply := b.ask(body(b.m.txns["x"]))
	b.requireReplays()
	after := b.m.txns["x"]
	answer := reply.Code.Name()
	switch r := reply.Response.(type) {
	case Producer:
		answer = fmt.Sprintf("epoch %+d", r.Epoch-before.epoch)
	case []errcode.Code:
		answer = r[0].Name()
	}
	if after.state != before.state || after.epoch != before.epoch || len(after.partitions) != len(before.partitions) {
		require.True(t, after.state.mayFollow(before.state))
		answer += fmt.Sprintf(" -> %s %+d", after.state, after.epoch-before.epoch)
	}
	if len(b.orders) > orders {
		answer += ", markers"
	}
	return answer
}
