// Package timeline holds the persistent map that replicated machines keep their state in.
//
// A [Map] is a value: Set and Delete return a new map and leave the old one as it was, so that a snapshot of the
// state is a plain copy of a struct and going back to it (a lost leadership, an aborted metadata transaction) is an
// assignment. Both versions share all nodes that did not change, which is why a change to a map of a million entries
// touches a handful of small nodes.
//
// A whole batch of changes goes through an [Edit]: the first change of a node copies it, every further change of the
// same batch writes into that copy. Creating 1,000 partitions therefore costs about as much as filling a builtin map.
//
//	base := timeline.NewMap[string, int](timeline.String)
//	edit := base.Edit()
//	edit.Set("orders", 6)
//	next := edit.Map() // base is unchanged; edit must not be used any more
//
// Maps are safe for any number of concurrent readers; an Edit belongs to one goroutine. Iteration order depends on
// the keys alone (hash order), never on the order of insertion or on a random seed, so machines stay deterministic.
package timeline
