// Package fault says what goes wrong, and when: rules for requests that the embedded broker is to answer with an error,
// late, not at all, or to apply and then lose the answer of.
//
//	k.Inject(fault.Produce().Topic("orders").LoseResponse().Times(1))
//	k.Inject(fault.Fetch().Nth(3).DropConnection())
//	k.Inject(fault.On(wire.KeyMetadata).Client("billing").Delay(time.Second))
//	k.Inject(fault.Produce().Error(errcode.NotLeaderOrFollower).Times(2))
//	k.Inject(fault.On(wire.KeyEndTxn).TransactionalID("billing").Nth(1).LateAfter(3))
//	k.Inject(fault.Any().Client("worker-1").Nth(17).OnAnswer(func(fault.Point) { kill(worker) }))
//
// A Rule is a value: it chooses requests (API, topic, group, transactional id, client, which of the matching ones) and
// names one thing to happen to them; OnArrival and OnAnswer call a function besides. Rules are asked in the order of their
// injection; the first that still applies decides, and later ones do not count the request. Nothing here is random: a test
// that wants chance draws it itself, from its own seed.
//
// To go through every crash point of a program, run it once with Any().Client(id) and count Hits; then run it that many
// times, each with another Nth. Rules, Sets and Injections may be used from any goroutine.
package fault
