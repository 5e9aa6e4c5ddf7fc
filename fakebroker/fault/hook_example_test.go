package fault_test

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
)

// A crash point: what happens when the third request of a worker has been applied, and its answer not yet sent.
func ExampleRule_OnAnswer() {
	worker := fault.Any().Client("worker-1").Except(wire.KeyApiVersions, wire.KeyMetadata)
	var s fault.Set
	s.Add(worker.Nth(3).OnAnswer(func(p fault.Point) { fmt.Println("kill the worker at", p.Key, p.TransactionalIDs()) }))
	for _, k := range []wire.Key{wire.KeyApiVersions, wire.KeyInitProducerId, wire.KeyProduce, wire.KeyMetadata, wire.KeyEndTxn} {
		ids := func() []string { return []string{"billing"} }
		o := s.Match(fault.Point{Key: k, ClientID: "worker-1", TransactionalIDs: ids})
		if o.Answered != nil {
			o.Answered() // the broker does this
		}
	}
	// Output:
	// kill the worker at EndTxn [billing]
}

// What a program did is seen in order, over all APIs.
func ExampleRule_OnArrival() {
	var s fault.Set
	s.Add(fault.On(wire.KeyAddPartitionsToTxn, wire.KeyEndTxn).OnArrival(func(p fault.Point) { fmt.Println(p.Key) }))
	for _, k := range []wire.Key{wire.KeyAddPartitionsToTxn, wire.KeyProduce, wire.KeyEndTxn} {
		if o := s.Match(fault.Point{Key: k}); o.Arrived != nil {
			o.Arrived()
		}
	}
	// Output:
	// AddPartitionsToTxn
	// EndTxn
}

// Bytes of an old connection may reach the broker when the client has long gone on: the EndTxn that KIP-890 is about.
func ExampleRule_LateAfter() {
	fmt.Println(fault.On(wire.KeyEndTxn).TransactionalID("billing").Nth(1).LateAfter(4))
	fmt.Println(fault.Produce().Topic("orders").Times(2).Late(time.Minute))
	// Output:
	// EndTxn transactional id billing times 1: drop connection, apply after 4 more
	// Produce topic orders times 2: drop connection, apply 1m0s later
}

// Requests about a group, in whatever API.
func ExampleRule_Group() {
	fmt.Println(fault.Any().Group("billing").Except(wire.KeyHeartbeat).LoseResponse())
	// Output:
	// any request group billing except Heartbeat: lose response
}
