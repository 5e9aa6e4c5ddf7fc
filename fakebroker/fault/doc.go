// Package fault says what goes wrong, and when: rules for requests that the embedded broker is to answer with an error,
// late, not at all, or to apply and then lose the answer of.
//
//	k.Inject(fault.Produce().Topic("orders").LoseResponse().Times(1))
//	k.Inject(fault.Fetch().Nth(3).DropConnection())
//	k.Inject(fault.On(wire.KeyMetadata).Client("billing").Delay(time.Second))
//	k.Inject(fault.Produce().Error(errcode.NotLeaderOrFollower).Times(2))
//
// A Rule is a value: it chooses requests (API, topic, client, which of the matching ones) and names one thing to happen
// to them. Rules are asked in the order of their injection; the first that still applies decides. Nothing here is
// random: a test that wants chance draws it itself, from its own seed.
package fault
