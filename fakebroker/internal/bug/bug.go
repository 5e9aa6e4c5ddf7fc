// Package bug names faults that can be put into this broker on purpose, one at a time, by the project's own tests: a
// checker that has never found anything proves nothing. Each is a mistake that a broker has made somewhere, or could.
//
// Code asks opts.Bugs.Has(bug.X) at the place where the mistake would be made, and nowhere else; the zero Set, which is
// what everybody but those tests has, makes none. The bank of them, with the seeds that find each, is in fakebroker/harness:
//
//	go test ./fakebroker/harness -run Mutants -v
package bug

import "strings"

// A Bug is one mistake.
type Bug uint8

// Mistakes of a partition's log: what read_committed readers are shown, and what a producer may write.
const (
	// StableOffsetTooFar lets read_committed see one offset of what is still open.
	StableOffsetTooFar Bug = iota
	// StableOffsetIgnored serves read_committed up to the high watermark.
	StableOffsetIgnored
	// AbortedListEmpty tells read_committed of no aborted transaction.
	AbortedListEmpty
	// AbortedListCutShort leaves out the last aborted transaction of a fetch that has several.
	AbortedListCutShort
	// AbortedListFromFetchOffset leaves out aborted transactions that begin before the offset asked for.
	AbortedListFromFetchOffset
	// AbortedListFirstTooHigh has aborted transactions begin one offset later than they do.
	AbortedListFirstTooHigh
	// AbortedIndexNotRebuilt forgets the aborted transactions of the active segment when it is recovered.
	AbortedIndexNotRebuilt
	// MarkerAsData appends end markers without the control attribute.
	MarkerAsData
	// DuplicateWindowOfOne recognises only a producer's very last batch when it comes again.
	DuplicateWindowOfOne
	// DuplicateAppended takes a batch that comes again for a new one.
	DuplicateAppended
	// DuplicateWrongOffset answers a batch that comes again with where it would be now.
	DuplicateWrongOffset
	// SequenceUnchecked lets a producer leave out or go back to any sequence.
	SequenceUnchecked
	// OldEpochAccepted lets a fenced producer go on writing.
	OldEpochAccepted
	// MarkerClosesAll takes an end marker for the end of all transactions in the partition.
	MarkerClosesAll
	// ProducersLostOnRestart opens a log with no producer known in it.
	ProducersLostOnRestart
	// SnapshotWithoutOpenTransaction writes producer snapshots that do not say which transactions are open.
	SnapshotWithoutOpenTransaction
)

// Mistakes of the transaction coordinator.
const (
	// InitWithoutBump answers InitProducerId with the epoch there is: nobody is fenced.
	InitWithoutBump Bug = iota + 20
	// InitLeavesOpen begins a new epoch and leaves the transaction of the old one open.
	InitLeavesOpen
	// EndWithoutBump ends a transaction of version 2 and keeps its epoch: a late EndTxn hits the next one.
	EndWithoutBump
	// EndEpochUnchecked ends transactions for an epoch that has been fenced.
	EndEpochUnchecked
	// PrepareNotPersisted answers EndTxn and writes markers, and keeps the decision in memory.
	PrepareNotPersisted
	// PrepareForgottenOnLoad loads a decided transaction and does not finish it.
	PrepareForgottenOnLoad
	// PartitionsNotPersisted keeps the partitions of a transaction in memory after the first ones.
	PartitionsNotPersisted
	// MarkerMissing writes no marker to the last partition of a transaction that has several.
	MarkerMissing
	// MarkerAbortsOne writes an abort marker to the last partition of a committed transaction that has several.
	MarkerAbortsOne
	// MarkerTwice writes the markers of a transaction again, a while later.
	MarkerTwice
	// TimeoutWithoutBump aborts a transaction that took too long, and lets its producer go on in it.
	TimeoutWithoutBump
	// CommitAfterAbort answers a commit that comes after the coordinator's own abort as if it had been done.
	CommitAfterAbort
	// AbortOnLoad aborts the transactions whose commit was decided when the coordinator stopped.
	AbortOnLoad
	// ProducerIDAgain gives the producer ids of a block out again after a restart.
	ProducerIDAgain
)

// Mistakes of the group coordinator with offsets in transactions.
const (
	// OffsetsAppliedOnAbort commits the offsets of aborted transactions too.
	OffsetsAppliedOnAbort Bug = iota + 44
	// OffsetsDroppedOnCommit forgets the offsets of committed transactions.
	OffsetsDroppedOnCommit
	// OffsetsVisibleEarly answers with offsets of open transactions.
	OffsetsVisibleEarly
	// StableNotRequired answers requireStable with what is committed while a transaction has newer offsets pending.
	StableNotRequired
	// GenerationUnchecked takes offsets in transactions from any member of any generation.
	GenerationUnchecked
	// FirstOffsetWins keeps the first of several offsets that a transaction commits for a partition.
	FirstOffsetWins
	// PendingLostOnLoad forgets the offsets of open transactions when the coordinator loads.
	PendingLostOnLoad
)

var names = map[Bug]string{
	StableOffsetTooFar: "stable offset too far", StableOffsetIgnored: "stable offset ignored",
	AbortedListEmpty: "aborted list empty", AbortedListCutShort: "aborted list cut short",
	AbortedListFromFetchOffset: "aborted list from fetch offset", AbortedListFirstTooHigh: "aborted list first too high",
	AbortedIndexNotRebuilt: "aborted index not rebuilt", MarkerAsData: "marker as data",
	DuplicateWindowOfOne: "duplicate window of one", DuplicateAppended: "duplicate appended",
	DuplicateWrongOffset: "duplicate with wrong offset", SequenceUnchecked: "sequence unchecked",
	OldEpochAccepted: "old epoch accepted", MarkerClosesAll: "marker closes all",
	ProducersLostOnRestart: "producers lost on restart", SnapshotWithoutOpenTransaction: "snapshot without open transaction",

	InitWithoutBump: "init without bump", InitLeavesOpen: "init leaves transaction open",
	EndWithoutBump: "end without bump", EndEpochUnchecked: "end epoch unchecked",
	PrepareNotPersisted: "prepare not persisted", PrepareForgottenOnLoad: "prepare forgotten on load",
	PartitionsNotPersisted: "partitions not persisted", MarkerMissing: "marker missing",
	MarkerAbortsOne: "marker aborts one", MarkerTwice: "marker twice",
	TimeoutWithoutBump: "timeout without bump", CommitAfterAbort: "commit after abort",
	AbortOnLoad: "abort on load", ProducerIDAgain: "producer id again",

	OffsetsAppliedOnAbort: "offsets applied on abort", OffsetsDroppedOnCommit: "offsets dropped on commit",
	OffsetsVisibleEarly: "offsets visible early", StableNotRequired: "stable not required",
	GenerationUnchecked: "generation unchecked", FirstOffsetWins: "first offset wins", PendingLostOnLoad: "pending lost on load",
}

// String says the mistake in words.
func (b Bug) String() string { return names[b] }

// All returns every mistake, in order.
func All() []Bug {
	var all []Bug
	for b := range Bug(64) {
		if names[b] != "" {
			all = append(all, b)
		}
	}
	return all
}

// A Set is the mistakes that a broker makes; the zero Set makes none.
type Set uint64

// Of returns the set of some mistakes.
func Of(bugs ...Bug) Set {
	var s Set
	for _, b := range bugs {
		s |= 1 << b
	}
	return s
}

// Has reports whether a mistake is to be made.
func (s Set) Has(b Bug) bool { return s&(1<<b) != 0 }

// String lists the mistakes.
func (s Set) String() string {
	var list []string
	for _, b := range All() {
		if s.Has(b) {
			list = append(list, b.String())
		}
	}
	return strings.Join(list, ", ")
}
