package group

import "time"

// Cause says why a group rebalanced, or what became of it.
type Cause string

// The causes in a history.
const (
	MemberJoined         Cause = "member joined"
	MemberLeft           Cause = "member left"
	MemberRejoined       Cause = "member rejoined"
	StaticMemberReplaced Cause = "static member replaced"
	SessionTimeout       Cause = "session timeout"
	PollIntervalExceeded Cause = "poll interval exceeded" // the member left and said so
	RebalanceTimeout     Cause = "rebalance timeout"      // the member did not join, or revoke, in time
	SyncTimeout          Cause = "sync timeout"
	SubscriptionChanged  Cause = "subscription changed"
	PartitionsChanged    Cause = "partitions changed" // of a subscribed topic: more of them, or the topic came or went
	MemberFenced         Cause = "member fenced"      // by an operator of the test broker
	Forced               Cause = "forced"             // likewise
	WriteFailed          Cause = "write failed"
	Balanced             Cause = "balanced"  // the rebalance is over: every member has, or can ask for, its part
	Converted            Cause = "converted" // between the classic and the consumer protocol
)

// An Event is one line of a group's history.
type Event struct {
	At     time.Time
	Cause  Cause
	Member string // whose doing it was; "" for nobody's
	// Instance is the member's group.instance.id, "" for a dynamic one.
	Instance string
	// Reason is what the member gave as its reason (KIP-800), or more words on the cause.
	Reason string
	// Generation is the group's generation or epoch before the event.
	Generation int32
}

func (e Event) at(now time.Time, generation int32) Event {
	e.At, e.Generation = now, generation
	return e
}

// historyLimit bounds the history of one group.
const historyLimit = 1000

// history is what happened to a group, oldest first, in memory only.
type history struct {
	events  []Event
	dropped int
	// What is not worth a record: the last epoch that came to balance, and when patterns were resolved last.
	balanced        int32
	resolvedAt      int64
	resolvedVersion int64
}

func (h *history) add(e Event) {
	if len(h.events) == historyLimit {
		h.events = append(h.events[:0], h.events[historyLimit/2:]...)
		h.dropped += historyLimit / 2
	}
	h.events = append(h.events, e)
}
