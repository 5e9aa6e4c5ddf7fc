package consumer

import (
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Event is something that happened to a partition and is not an error of the application's: its position was
// found or reset (with old and new offset and the reason), its log was truncated, it was halted, an attempt
// failed, a nearer replica is used, an open transaction has kept back what follows for long; or to the membership in a group: partitions came and went, a commit failed, the
// application stalled.
type Event = machine.Notice

// Kinds of events.
const (
	EventStarted   = machine.NoticeStarted
	EventReset     = machine.NoticeReset
	EventTruncated = machine.NoticeTruncated
	EventReplaced  = machine.NoticeReplaced
	EventHalted    = machine.NoticeHalted
	EventRetrying  = machine.NoticeRetrying
	EventReplica   = machine.NoticeReplica
	EventSession   = machine.NoticeSession

	EventAssigned     = machine.NoticeAssigned
	EventRevoked      = machine.NoticeRevoked
	EventLost         = machine.NoticeLost
	EventCommitFailed = machine.NoticeCommitFailed
	EventStalled      = machine.NoticeStalled

	EventStandstill = machine.NoticeStandstill
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
		c.cfg.OnEvent(e)
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
