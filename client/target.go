package client

import (
	"fmt"
	"time"
)

// CoordinatorKind is the key type of FindCoordinator.
type CoordinatorKind int8

// The kinds of coordinators Kafka has.
const (
	GroupCoordinator       CoordinatorKind = 0
	TransactionCoordinator CoordinatorKind = 1
	ShareCoordinator       CoordinatorKind = 2
)

// String is the kind's name.
func (k CoordinatorKind) String() string {
	switch k {
	case GroupCoordinator:
		return "group"
	case TransactionCoordinator:
		return "transaction"
	case ShareCoordinator:
		return "share"
	}
	return fmt.Sprintf("coordinator kind %d", int8(k))
}

type targetKind uint8

const (
	toAny targetKind = iota
	toController
	toBroker
	toLeader
	toCoordinator
)

// Target says which broker a request is for. It is a value; the functions below make it.
type Target struct {
	kind      targetKind
	purpose   Purpose
	broker    int32
	topic     string
	partition int32
	coord     CoordinatorKind
	key       string
	timeout   time.Duration

	minVersion, maxVersion int16
}

// AnyBroker is whichever broker there is already a connection to, else any.
func AnyBroker() Target { return Target{kind: toAny} }

// Controller is the active controller, or in KRaft the broker that metadata names to forward to it.
func Controller() Target { return Target{kind: toController} }

// Broker is one broker by id.
func Broker(id int32) Target { return Target{kind: toBroker, broker: id} }

// LeaderOf is the leader of a partition. It uses the Fetch connection; see Via.
func LeaderOf(topic string, partition int32) Target {
	return Target{kind: toLeader, purpose: Fetch, topic: topic, partition: partition}
}

// Coordinator is the coordinator of a group, transactional id or share group. It uses the Group connection, for
// transactional ids the Transactions one.
func Coordinator(kind CoordinatorKind, key string) Target {
	purpose := Group
	if kind == TransactionCoordinator {
		purpose = Transactions
	}
	return Target{kind: toCoordinator, purpose: purpose, coord: kind, key: key}
}

// Via is the same target over the connection of another purpose.
func (t Target) Via(p Purpose) Target { t.purpose = p; return t }

// Within is the same target with another limit for each attempt than request.timeout.ms, for requests the broker
// holds back (JoinGroup for the rebalance timeout, CreateTopics with a timeout of its own). All attempts together may
// take that long too, if default.api.timeout.ms is less.
func (t Target) Within(d time.Duration) Target { t.timeout = d; return t }

// Versions is the same target with the request's version bounded; zero for most means the latest stable one.
func (t Target) Versions(least, most int16) Target {
	t.minVersion, t.maxVersion = least, most
	return t
}

// String names the target for errors and logs.
func (t Target) String() string {
	switch t.kind {
	case toController:
		return "the controller"
	case toBroker:
		return fmt.Sprintf("broker %d", t.broker)
	case toLeader:
		return fmt.Sprintf("the leader of %s-%d", t.topic, t.partition)
	case toCoordinator:
		return fmt.Sprintf("the %s coordinator of %q", t.coord, t.key)
	}
	return "any broker"
}
