// Package compress is Kafka's four codecs behind two objects, Compressor and Decompressor, in append style.
//
// Both objects belong to a client or a cluster: nothing here is package-level state, and nothing starts a goroutine, so
// that everything works inside testing/synctest. What is written is what Kafka's Java clients write in form (gzip member,
// xerial snappy stream, lz4 frame of independent blocks without checksums, zstd frame), and what is read is what any
// client writes. Decompression is bounded by a limit and a ratio, see limit.go; a frame's own claim about its size never
// makes anyone allocate.
//
// One file a codec: gzip.go, snappy.go, lz4.go, zstd.go.
package compress
