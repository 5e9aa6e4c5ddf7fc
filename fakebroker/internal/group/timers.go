package group

import (
	"cmp"
	"container/heap"
	"time"
)

// timerKind says what a timer is for; one of each kind per group and member.
type timerKind uint8

const (
	sessionTimer   timerKind = iota // a member has not been heard of
	pendingTimer                    // a member id was given out and never used
	joinTimer                       // the join phase of a classic rebalance ends
	syncTimer                       // the sync phase of a classic rebalance ends
	revokeTimer                     // a member of a consumer group takes too long to revoke
	rejoinTimer                     // a classic member of a consumer group does not rejoin
	targetTimer                     // a new target assignment may be computed
	regexTimer                      // regular expressions have to be resolved
	expiryTimer                     // offsets.retention.check.interval.ms
	conversionSync                  // a classic member of a consumer group joined and does not sync
	timerKindCount                  // how many there are
)

type timerKey struct {
	kind          timerKind
	group, member string
}

type timer struct {
	timerKey
	at    time.Time
	seq   uint64 // order of equal times
	index int    // in the heap
}

// timers are what a machine wants to be woken for, by time. The zero value is empty.
type timers struct {
	queue timerQueue
	byKey map[timerKey]*timer
	seq   uint64
}

// set starts a timer, in place of the one with the same key if there is one.
func (t *timers) set(key timerKey, at time.Time) {
	t.seq++
	if old := t.byKey[key]; old != nil {
		old.at, old.seq = at, t.seq
		heap.Fix(&t.queue, old.index)
		return
	}
	if t.byKey == nil {
		t.byKey = make(map[timerKey]*timer)
	}
	n := &timer{timerKey: key, at: at, seq: t.seq}
	t.byKey[key] = n
	heap.Push(&t.queue, n)
}

func (t *timers) stop(key timerKey) {
	if old := t.byKey[key]; old != nil {
		delete(t.byKey, key)
		heap.Remove(&t.queue, old.index)
	}
}

func (t *timers) running(key timerKey) bool { return t.byKey[key] != nil }

func (t *timers) deadline() time.Time {
	if len(t.queue) == 0 {
		return time.Time{}
	}
	return t.queue[0].at
}

// pop takes the earliest timer out if it is due.
func (t *timers) pop(now time.Time) (timerKey, bool) {
	if len(t.queue) == 0 || now.Before(t.queue[0].at) {
		return timerKey{}, false
	}
	key := t.queue[0].timerKey
	t.stop(key)
	return key, true
}

// stopGroup stops every timer of a group.
func (t *timers) stopGroup(id string, members []string) {
	for kind := timerKind(0); kind < timerKindCount; kind++ {
		t.stop(timerKey{kind: kind, group: id})
		for _, m := range members {
			t.stop(timerKey{kind: kind, group: id, member: m})
		}
	}
}

type timerQueue []*timer

func (q timerQueue) Len() int { return len(q) }
func (q timerQueue) Less(i, j int) bool {
	if c := q[i].at.Compare(q[j].at); c != 0 {
		return c < 0
	}
	return cmp.Less(q[i].seq, q[j].seq)
}
func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *timerQueue) Push(x any) {
	t := x.(*timer)
	t.index = len(*q)
	*q = append(*q, t)
}
func (q *timerQueue) Pop() any {
	old := *q
	t := old[len(old)-1]
	*q = old[:len(old)-1]
	return t
}
