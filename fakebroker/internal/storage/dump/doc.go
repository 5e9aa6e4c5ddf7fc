// Package dump prints what a broker's files hold, in the words of Apache
// Kafka's DumpLogSegments, which people know: `ottla dump-log FILE...`.
//
//   - dump.go      File: which kind of file it is, index, snapshot, checkpoint
//   - batches.go   .log and KRaft's .checkpoint: batches and records
//   - records.go   keys and values: text, or the records of internal topics
//   - groups.go    what consumers put into group records
//   - verify.go    index against log
//
// What a record holds is decoded by the folder that the file lies in:
// __cluster_metadata, __consumer_offsets, __transaction_state and
// __share_group_state; all else is text. It reads files only, also those of a
// broker that is running, and never changes one.
package dump
