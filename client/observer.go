package client

import (
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Observer is told what happens, one event at a time, where Metrics has but sums: for a tracing library, a histogram
// with other buckets, an alarm. WithObserver adds one; several are told in the order in which they were added. Methods
// are called from the goroutines that do the work, possibly several at once: those of different brokers are not in
// order, those of one connection are. A method that blocks stops that connection; one that calls Client.Request or
// Close waits for itself. Embed NopObserver, so that methods added later do not break the type.
//
// Observers see requests, not records: a record is followed by an interceptor of the producer or consumer, which gets
// the record's ctx.
type Observer interface {
	// Connected follows an attempt to connect, good or bad.
	Connected(ConnectEvent)
	// Disconnected follows the end of a connection that was up.
	Disconnected(DisconnectEvent)
	// Requested follows the end of each request, answered or not, those of Client.Issue and of the client itself (not
	// the hello and the login of a connection, which Connected sums up).
	Requested(RequestEvent)
	// Throttled follows an answer that asks the client to wait (KIP-219).
	Throttled(ThrottleEvent)
	// MetadataChanged follows each answer of metadata that was taken, and each hint of a leader that was news.
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
	Broker        int32 // negative for a seed whose id is not known
	Purpose       Purpose
	Key           wire.Key
	Version       int16 // zero when nothing was sent
	RequestBytes  int
	ResponseBytes int
	Latency       time.Duration // from the write to the answer; zero without one
	Err           error
}

// ThrottleEvent tells of a broker that asked to wait.
type ThrottleEvent struct {
	Broker   int32
	Purpose  Purpose
	Key      wire.Key
	Duration time.Duration
}

// MetadataEvent tells of a new topology. Events of answers and of hints may come at the same time: the topology with
// the higher Version is the newer one.
type MetadataEvent struct {
	Topology *Topology
	Took     time.Duration // from the round's first request to the answer; zero when a leader hint changed it
}

// NoteEvent is something a role wants noticed: what a person looking into a complaint would want to have seen. Kinds
// never change their name; new ones may come.
type NoteEvent struct {
	Role string // "producer", "consumer", "groupmember", "txn"
	// Kind is what it is: of a producer epoch-bump, batch-failed; of a consumer offset-start, offset-reset, truncation,
	// topic-replaced, partition-halted, fetch-retry, partition-assigned, partition-revoked, partition-lost,
	// commit-failed and others that its Event lists.
	Kind      string
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
