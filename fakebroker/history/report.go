package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Finding is the name of a kind of anomaly.
type Finding string

// What Check can find. The names in brackets are those of the literature.
const (
	// LostWrite: an acknowledged record was not read, though others before and behind it were.
	LostWrite Finding = "lost write"
	// Unseen: an acknowledged record was not read until the end, by readers that read everything (Drained).
	Unseen Finding = "unseen"
	// Duplicate: one value lies at two offsets.
	Duplicate Finding = "duplicate"
	// InconsistentOffset: one offset has had two values.
	InconsistentOffset Finding = "inconsistent offset"
	// Phantom: a value was read that nobody has sent.
	Phantom Finding = "phantom"
	// AbortedRead: a record was read that failed, or whose transaction was aborted (G1a).
	AbortedRead Finding = "aborted read"
	// DirtyRead: a record was read before its transaction was told to commit (precommitted read).
	DirtyRead Finding = "dirty read"
	// Torn: of one transaction some records or offsets took effect and others did not.
	Torn Finding = "torn transaction"
	// Circular: transactions have read what the others wrote, in a circle (G1c).
	Circular Finding = "circular reads"
	// PollSkip: a consumer left out a record between two polls, though it kept the partition and did not seek.
	PollSkip Finding = "poll skip"
	// IntPollSkip: it left one out inside a poll.
	IntPollSkip Finding = "int poll skip"
	// NonmonotonicPoll: a consumer went back between two polls, though it kept the partition and did not seek.
	NonmonotonicPoll Finding = "nonmonotonic poll"
	// IntNonmonotonicPoll: it went back inside a poll.
	IntNonmonotonicPoll Finding = "int nonmonotonic poll"
	// NonmonotonicSend: records that one process sent to a partition lie there in another order.
	NonmonotonicSend Finding = "nonmonotonic send"
	// IntNonmonotonicSend: likewise, inside one transaction.
	IntNonmonotonicSend Finding = "int nonmonotonic send"
	// RealTimeOrder: a record lies before one that had been acknowledged before it was sent.
	RealTimeOrder Finding = "real-time order"
	// BeyondProcessed: an offset was committed past a record that nobody has processed.
	BeyondProcessed Finding = "committed beyond processed"
	// ProcessedTwice: two committed transactions have processed the same record for the same group.
	ProcessedTwice Finding = "processed twice"
	// TwoOwners: a process could commit offsets of a partition that its group had given to another.
	TwoOwners Finding = "two owners"
	// OffsetsBack: a committed offset was seen to be lower than one whose commit had been acknowledged.
	OffsetsBack Finding = "offsets went back"
	// AbortedOffsets: a committed offset was seen that only failed or aborted transactions, or none yet, had committed.
	AbortedOffsets Finding = "aborted offsets"
)

// maxShown is how many anomalies of one kind a Report holds; the rest is only counted.
const maxShown = 5

// An Anomaly is something that must not happen, with the operations that show it.
type Anomaly struct {
	Finding Finding
	Text    string // what is wrong, with the place
	Ops     []Op
}

// String is the anomaly in a few lines.
func (a Anomaly) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", a.Finding, a.Text)
	for i := range a.Ops {
		fmt.Fprintf(&b, "\n    %s", a.Ops[i])
	}
	return b.String()
}

// A Report is the result of Check.
type Report struct {
	Anomalies []Anomaly       // up to five of each kind
	Count     map[Finding]int // all of them, by kind
	// What was checked, so that a clean report can be told from an empty one.
	Ops, Sends, Reads, Committed, Aborted, Open int
}

// Has reports whether something of a kind was found.
func (r *Report) Has(f Finding) bool { return r.Count[f] > 0 }

// Err is nil for a clean report, and otherwise an error that says everything String says.
func (r *Report) Err() error {
	if len(r.Anomalies) == 0 {
		return nil
	}
	return errors.New("history: " + r.String())
}

// Findings lists what kinds were found, by name.
func (r *Report) Findings() []Finding {
	var list []Finding
	for f := range r.Count {
		list = append(list, f)
	}
	slices.Sort(list)
	return list
}

// String says what was checked and what was found.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations: %d sends, %d records read, %d transactions committed, %d aborted, %d open",
		r.Ops, r.Sends, r.Reads, r.Committed, r.Aborted, r.Open)
	if len(r.Anomalies) == 0 {
		b.WriteString("; no anomalies")
	}
	for _, a := range r.Anomalies {
		fmt.Fprintf(&b, "\n%s", a)
	}
	for _, f := range r.Findings() {
		if n := r.Count[f]; n > maxShown {
			fmt.Fprintf(&b, "\n%s: %d more", f, n-maxShown)
		}
	}
	return b.String()
}

func (r *Report) find(f Finding, ops []*Op, format string, args ...any) {
	if r.Count[f]++; r.Count[f] > maxShown {
		return
	}
	a := Anomaly{Finding: f, Text: fmt.Sprintf(format, args...)}
	for _, o := range ops {
		if o != nil {
			a.Ops = append(a.Ops, *o)
		}
	}
	slices.SortFunc(a.Ops, func(x, y Op) int { return x.Index - y.Index })
	a.Ops = slices.CompactFunc(a.Ops, func(x, y Op) bool { return x.Index == y.Index })
	r.Anomalies = append(r.Anomalies, a)
}
