// Package record reads and writes Kafka's record batches.
//
// Start with header.go, which draws the batch of magic 2. A producer uses Builder: records go straight into one buffer
// (builder.go), Seal or SealCompressed writes the header. A broker cuts what it gets with Next, checks it with Validate
// and CheckRecords, and stamps offsets with PatchBase; the bytes stay as they came (split.go, check.go, patch.go). A
// consumer cuts with Next and reads with an Iterator (iterator.go), which also reads the older message sets of magic 0
// and 1 (legacy.go). Control records, which end transactions and steer KRaft, have their keys in control.go; the bodies
// of KRaft's are messages of package logrecord.
//
// Everything here is a pure function over bytes: no goroutine, lock, clock or I/O. Nothing allocates per record. Bytes
// from outside are never trusted: a count is compared with the bytes there are before anything is sized by it, a length
// never reaches beyond its record, decompression is bounded.
package record
