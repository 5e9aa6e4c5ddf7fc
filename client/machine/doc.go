// Package machine is the part of the client that decides: which request a response answers, when a
// connection is given up, what a metadata answer changes, when the next refresh is due, how long to wait
// before the next attempt.
//
// Everything here is pure. There is no goroutine, lock, channel, context, clock or global random in it: the
// present time and seeded randomness come in as values, deadlines go out as values, and no result depends on
// the order of a map. That is what lets a simulation drive the same code from one seed, and what makes the
// tests of this package read as stories without sleeping.
//
// The drivers in package client own one machine each and call it under their own lock or from their own
// goroutine. The package is public so that simulations can reach it; it carries no compatibility promise.
//
//	backoff.go     exponential back-off with jitter, and the seeded random it draws from
//	inflight.go    the in-flight queue of one connection: order, correlation ids, deadlines, idle
//	features.go    the cluster's features, as a broker tells them (KIP-584)
//	handshake.go   ApiVersions negotiation with its fallback, then SASL, step by step
//	frame.go       the four bytes in front of a frame, and what they mean when they are not Kafka's
//	topology.go    the immutable picture of a cluster, and how answers are merged into it
//	refresh.go     when metadata is asked for again, and when the client starts over from its seeds
package machine
