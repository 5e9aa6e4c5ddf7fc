// Package image is the metadata of a cluster as one immutable value: brokers, topics, configs, features, producer ids.
//
// # Map
//
//   - image.go      Image and what can be asked of it
//   - topic.go      Topic and Partition
//   - registration.go  Broker and controller registrations
//   - delta.go      Delta: changes on the way from one image to the next; Apply, the only thing that changes metadata
//   - apply_*.go    what each record does, one noun a file
//   - fork.go       a delta that may be dropped without a trace
//   - loader.go     batches of the metadata log (and of a checkpoint) to images, with metadata transactions
//   - version.go, features.go   metadata.version and what it decides; supported features
//   - record.go     a record and its version; framing in the log
//   - snapshot.go   an image as records, for checkpoints
//   - hash.go       a fingerprint of all content: equal images, equal hash
//   - publish.go    who is told about a new image, in which order
//
// # How metadata changes
//
// Nobody writes into an image. The controller proposes records; the quorum appends them to __cluster_metadata-0; and
// the controller as well as each broker runs the same Delta.Apply over the same records, so that at equal offsets all
// have equal images:
//
//	Image at offset n ──NewDelta──► Delta ──Apply(record)*──► Delta.Image(n+k) = Image at offset n+k
//	      └── stays as it is, shared                └── what changed: topics, configs, brokers, features
//
// Big maps are persistent (package timeline), topics are copied when they first change within a delta: applying one
// record to an image of a million partitions costs a few microseconds, and creating 1,000 partitions in one batch a
// millisecond or so.
//
// # Order of publishing
//
// A broker learns of a new image in stages: configs and features first, then the partitions it hosts follow (created,
// deleted, led), then coordinators, and the metadata cache that clients are answered from last: so a client never hears
// of a leader that does not lead yet.
package image
