package client

import (
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Observer is told what happens. Methods are called from the client's own goroutines, possibly several at once,
// and must not block. Embed NopObserver, so that methods added later do not break the type.
type Observer interface {
	// Connected follows an attempt to connect, good or bad.
	Connected(ConnectEvent)
	// Disconnected follows the end of a connection that was up.
	Disconnected(DisconnectEvent)
	// Requested follows the end of each request.
	Requested(RequestEvent)
	// Throttled follows an answer that asks the client to wait (KIP-219).
	Throttled(ThrottleEvent)
	// MetadataChanged follows each change of the topology.
	MetadataChanged(MetadataEvent)
	// Note follows what a role has to tell beside numbers: a reset of an offset, a truncation, an epoch bump.
	Note(NoteEvent)
}

// ConnectEvent tells of an attempt to connect.
type ConnectEvent struct {
	Broker  int32 // negative for a seed whose id is not known
	Purpose Purpose
	Addr    string
	Took    time.Duration
	Err     error // nil when the connection is up, negotiated and logged in
}

// DisconnectEvent tells of the end of a connection.
type DisconnectEvent struct {
	Broker  int32
	Purpose Purpose
	Addr    string
	Err     error // nil for an idle close, ours or the broker's, and for Close
}

// RequestEvent tells of the end of a request.
type RequestEvent struct {
	Broker        int32
	Purpose       Purpose
	Key           wire.Key
	Version       int16
	RequestBytes  int
	ResponseBytes int
	Latency       time.Duration // from the write to the answer
	Err           error
}

// ThrottleEvent tells of a broker that asked to wait.
type ThrottleEvent struct {
	Broker   int32
	Purpose  Purpose
	Key      wire.Key
	Duration time.Duration
}

// MetadataEvent tells of a new topology.
type MetadataEvent struct {
	Topology *Topology
	Took     time.Duration // of the request; zero when a leader hint changed it
}

// NoteEvent is something a role wants noticed.
type NoteEvent struct {
	Role      string // "producer", "consumer", ...
	Kind      string // "offset-reset", "truncation", "epoch-bump", ...
	Topic     string
	Partition int32
	Text      string
	Err       errcode.Code
}

// NopObserver does nothing. Embed it.
type NopObserver struct{}

// Connected does nothing.
func (NopObserver) Connected(ConnectEvent) {}

// Disconnected does nothing.
func (NopObserver) Disconnected(DisconnectEvent) {}

// Requested does nothing.
func (NopObserver) Requested(RequestEvent) {}

// Throttled does nothing.
func (NopObserver) Throttled(ThrottleEvent) {}

// MetadataChanged does nothing.
func (NopObserver) MetadataChanged(MetadataEvent) {}

// Note does nothing.
func (NopObserver) Note(NoteEvent) {}

// Note hands a role's event to the observers and, at debug level, to the logger.
func (c *Client) Note(e NoteEvent) {
	for _, o := range c.cfg.Observers {
		o.Note(e)
	}
	c.log.Debug("kafka: "+e.Kind, "role", e.Role, "topic", e.Topic, "partition", e.Partition, "text", e.Text)
}
