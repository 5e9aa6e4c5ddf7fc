package consumer

import (
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Event is something that happened to a partition, or to the membership in a group, and is not an error of the application's.
// Kind says what, TopicPartition where; Old and New are positions (offset -1: none), Reason says why in words, Err is what went
// wrong. What the Kind does not need is unset.
type Event = machine.Notice

// Kinds of events.
const (
	EventStarted   = machine.NoticeStarted   // the first position of a partition is known: New, looked up by Where
	EventReset     = machine.NoticeReset     // the reset policy replaced position Old by New
	EventTruncated = machine.NoticeTruncated // the log was cut below position Old; New is where the logs part
	EventReplaced  = machine.NoticeReplaced  // the topic was deleted and created again
	EventHalted    = machine.NoticeHalted    // nothing more is read until Seek
	EventRetrying  = machine.NoticeRetrying  // an attempt failed, another follows
	EventReplica   = machine.NoticeReplica   // Broker is a nearer replica and is read from now on; -1: the leader again
	EventSession   = machine.NoticeSession   // the fetch session with Broker was lost, and is made anew

	EventAssigned     = machine.NoticeAssigned     // the group gave this member the partition
	EventRevoked      = machine.NoticeRevoked      // it is being given up, and nothing of it is in hand
	EventLost         = machine.NoticeLost         // it is gone without having been given up
	EventCommitFailed = machine.NoticeCommitFailed // an offset could not be committed; Reason names it
	EventStalled      = machine.NoticeStalled      // max.poll.interval.ms has passed

	EventStandstill = machine.NoticeStandstill // an open transaction, Open, has kept back what follows for Config.Standstill
)

// OpenTransaction is whose transaction a read_committed reader waits for.
type OpenTransaction = machine.OpenTransaction

// noteKinds are the names under which events reach a client.Observer.
var noteKinds = map[machine.NoticeKind]string{
	EventStarted: "offset-start", EventReset: "offset-reset", EventTruncated: "truncation", EventReplaced: "topic-replaced",
	EventHalted: "partition-halted", EventRetrying: "fetch-retry", EventReplica: "preferred-replica", EventSession: "fetch-session",
	EventAssigned: "partition-assigned", EventRevoked: "partition-revoked", EventLost: "partition-lost", EventCommitFailed: "commit-failed",
	EventStalled: "consumer-stalled", EventStandstill: "standstill",
}

// notice tells observers, the logger, and whoever gave OnEvent.
func (c *Consumer) notice(e Event) {
	if e.Kind == EventStandstill && e.Open == nil {
		c.findHolder(e) // and comes back with it
		return
	}
	var code errcode.Code
	errors.As(e.Err, &code)
	text := eventText(e)
	c.cl.Note(client.NoteEvent{Role: "consumer", Kind: noteKinds[e.Kind], Topic: e.Topic, Partition: e.Partition, Text: text, Err: code})
	switch e.Kind {
	case EventReset, EventTruncated, EventReplaced, EventHalted, EventLost, EventCommitFailed, EventStalled, EventStandstill:
		c.cl.Logger().Warn("kafka consumer: "+noteKinds[e.Kind], "topic", e.Topic, "partition", e.Partition, "text", text)
	}
	if c.cfg.OnEvent != nil {
		aside(func() { c.cfg.OnEvent(e) })
	}
}

// eventText is an event in one line.
func eventText(e Event) string {
	s := e.Reason
	if e.Old.Offset >= 0 || e.New.Offset >= 0 {
		s += fmt.Sprintf(": offset %d -> %d", e.Old.Offset, e.New.Offset)
	}
	if !e.Where.IsZero() {
		s += fmt.Sprintf(" (%s)", e.Where)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}
