// Package network is the broker's front: it turns listeners into a stream of request frames and answers back into bytes.
// It knows sizes, order, limits and time, and nothing of what is inside a frame; package server does.
//
// Apache Kafka draws its front like this, and the words are kept:
//
//	acceptor -> processors (num.network.threads) -> request channel (queued.max.requests)
//	         -> request handlers (num.io.threads) -> response queues -> processors -> socket
//
// Go's runtime poller already is the processor: it parks a goroutine that waits for a socket. So one goroutine per
// connection reads, decides and writes, and the same bounds hold:
//
//	listener ── acceptor ──┐ one goroutine each: limits (max.connections, ...per.ip), then hands over
//	                       v
//	connection goroutine:  TLS handshake (10 s)
//	   ┌─> read one frame          frame.go   in steps of what has arrived, never by the size word
//	   │      v
//	   │   request channel         slots.go   at most queued.max.requests wait for a slot; beyond that nobody reads on
//	   │      v
//	   │   a handler slot          slots.go   at most num.io.threads handlers run; Handler.Handle(x)
//	   │      v
//	   │   wait for x.Complete     exchange.go  now, or from purgatory later (the slot is free meanwhile)
//	   │      v
//	   └── encode and write        send.go    vectored write, sendfile for stored files, or a plain copy
//
// The next frame of a connection is read only after the answer to the last one was written. That keeps answers in
// order, and it is the back-pressure: what a client pipelines waits in its own socket buffers, so what the broker holds
// per connection is one request and one answer.
//
// What other broker settings mean here: num.network.threads has no effect (the poller's threads are the runtime's);
// socket.send.buffer.bytes and socket.receive.buffer.bytes are set on TCP sockets when they are configured, and -1 or no
// value leaves the system's choice, which adapts and carries large batches faster than Apache Kafka's default of 100 KiB;
// socket.listen.backlog.size has no effect (Go asks the system for its maximum).
//
// Every goroutine started here ends before Front.Close returns. All waiting is on channels, sync.Cond and deadlines, so
// a Front over the in-memory transport (memory.go, pipe.go) runs inside testing/synctest in virtual time.
package network
