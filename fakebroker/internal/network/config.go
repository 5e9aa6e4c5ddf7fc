package network

import (
	"crypto/tls"
	"log/slog"
	"net"
	"time"
)

// Config bounds a Front. Every field must be set; Defaults gives Apache Kafka's values.
type Config struct {
	IOThreads           int           // num.io.threads: handlers that run at the same time
	QueuedMaxRequests   int           // queued.max.requests: frames that wait for a handler
	QueuedMaxBytes      int64         // queued.max.request.bytes: memory of frames beyond 64 KiB a connection (ours: 256 MiB)
	RequestMaxBytes     int32         // socket.request.max.bytes
	LoginMaxBytes       int32         // sasl.server.max.receive.size: frames before a connection has authenticated
	SendBufferBytes     int           // socket.send.buffer.bytes; -1 = the system's
	ReceiveBufferBytes  int           // socket.receive.buffer.bytes; -1 = the system's
	MaxIdle             time.Duration // connections.max.idle.ms
	MaxConnections      int           // max.connections (ours: 10,000)
	MaxConnectionsPerIP int           // max.connections.per.ip (ours: 1,000)
	CountLoopback       bool          // loopback peers count for MaxConnectionsPerIP too
	HandshakeTimeout    time.Duration // TLS handshake; Kafka has none but the idle limit (ours: 10 s)
	WriteTimeout        time.Duration // how long a peer may read nothing of an answer; Kafka has none (ours: 60 s)
	Logger              *slog.Logger
}

// Defaults returns Apache Kafka's defaults, and ours where it has no limit.
func Defaults() Config {
	return Config{
		IOThreads:           8,
		QueuedMaxRequests:   500,
		QueuedMaxBytes:      256 << 20,
		RequestMaxBytes:     100 << 20,
		LoginMaxBytes:       512 << 10,
		SendBufferBytes:     -1,
		ReceiveBufferBytes:  -1,
		MaxIdle:             10 * time.Minute,
		MaxConnections:      10_000,
		MaxConnectionsPerIP: 1_000,
		HandshakeTimeout:    10 * time.Second,
		WriteTimeout:        time.Minute,
		Logger:              slog.New(slog.DiscardHandler),
	}
}

// A Listener is where connections come from. The Front closes it.
type Listener struct {
	Name     string // such as PLAINTEXT; tells requests of one listener from another's
	Listener net.Listener
	TLS      *tls.Config // nil = plain
	Auth     bool        // SASL comes first; only told to the Handler
}
