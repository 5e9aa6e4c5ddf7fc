// Package message holds every request, response, header and shared data structure of Apache Kafka 4.4's protocol, in all
// versions, generated from the files in schema: schema/fetch.txt gives fetch.go with FetchRequest and FetchResponse. The
// notation is explained in wire/internal/generate/parse.go.
//
// Go names are Kafka's. A struct has Kafka's own name where that is unique over all definitions ("TopicProduceData") and
// the name of its message before it otherwise ("FetchRequestFetchTopic"). One field is renamed, because a method has its
// name: Key of FindCoordinatorRequest is CoordinatorKey.
//
// # Null and empty
//
// Nullable strings and structs are pointers. Arrays and bytes are null when nil, in fields that can be null, and empty
// when not; in other fields nil is written as empty. Null in a version that does not allow it is an error.
//
// # Defaults
//
// Many defaults are not Go's zero value: epochs are -1, limits are large. NewFetchRequest and its like give a message
// with defaults; SetDefaults does it for any struct, and wire.Add appends an element with defaults to an array. This
// matters most for tagged fields, which are written whenever they differ from their default:
// ProduceResponse's CurrentLeader is, for instance, "unknown" at -1, -1, and not at 0, 0.
//
// # Versions
//
// A field that a version does not have is dropped when its definition calls it ignorable; otherwise AppendTo fails if it
// is set. ReadFrom sets every field, so that a message can be used again for the next one of its kind.
package message
