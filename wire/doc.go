// Package wire is Kafka's bytes and nothing else: no connection, no clock, no goroutine. Client and broker both sit on
// it, so that a message means the same on both sides.
//
// # Where things are
//
//	wire            primitives, headers, API keys and versions, UUID (this package)
//	wire/message    every request, response and header, generated from its schema folder, one file per API
//	wire/logrecord  the records that brokers write into their own logs, generated likewise
//	wire/record     record batches: what a Produce request carries and a log stores
//	wire/compress   gzip, snappy, lz4, zstd behind one interface
//	wire/errcode    the error table
//	wire/hash       murmur2, Java's string hash, CRC-32C
//	wire/wirejson   messages as JSON, for tools and tests
//	wire/wiretest   a scripted peer for tests
//	wire/internal   generate (schema to code), oracle (Apache Kafka's expected values), arrows (import rules as a test)
//
// # A request on the wire
//
//	size int32 | api key int16 | api version int16 | correlation id int32 | client id string | tags | body
//
// and its response
//
//	size int32 | correlation id int32 | tags | body
//
// A response says neither its API nor its version: the client remembers what it asked. Tags are there in flexible
// versions only (KIP-482), in which strings and arrays have varint lengths too; HeaderVersions is the table. All numbers
// of fixed size have their big end first.
//
// # Reading bytes of strangers
//
// Reader is the only way in, and holds the rules that every decoder of the project keeps: a count is checked against
// the bytes left before anything is allocated; -1 is a length only where null is allowed; one input can make a Reader
// allocate at most 16 times its size and 1 MiB; varints have 5 or 10 bytes at most; tags rise and each is read to
// its end. Strings are copied out of the input; bytes and records are not, they point into it, so the input must not be
// reused while the message is.
//
// # Adding an API version
//
// Change the file in message/schema, run go generate ./wire/..., and read the difference of the generated file: that is
// the whole change on the wire. The tests in wire/wirejson compare with vectors of Apache Kafka's own classes.
//
//go:generate go run ./internal/generate -wire .
package wire
