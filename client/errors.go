package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

var (
	// ErrClosed is returned by everything that is called on a closed client, and ends what was under way.
	ErrClosed = errors.New("kafka client is closed")
	// ErrTimeout is the cause when something took longer than its limit: a request than request.timeout.ms, a connection
	// than socket.connection.setup.timeout.ms, a call with all its attempts than default.api.timeout.ms. The text says which.
	ErrTimeout = errors.New("no answer in time")
	// ErrDisconnected is the cause when a connection ended with requests under way.
	ErrDisconnected = errors.New("connection ended")
	// ErrQueueFull is the cause when a connection already holds Config.MaxQueued calls.
	ErrQueueFull = errors.New("too many requests wait for this connection")
	// ErrUnsupportedVersion is the cause when client and broker have no common version of a request.
	ErrUnsupportedVersion = errors.New("no common version of this request")
	// ErrUnknownTopic is the cause when the broker does not know a topic within the time given.
	ErrUnknownTopic = errors.New("unknown topic")
	// ErrWrongCluster is the cause when a broker belongs to another cluster than the first one that answered.
	ErrWrongCluster = errors.New("broker belongs to another cluster")
	// ErrUnknownBroker is the cause when metadata has no broker of the id asked for. An id that a new answer does
	// not name, and none before did, is an error at once; a broker that was there is waited for.
	ErrUnknownBroker = errors.New("broker is not in the metadata")
	// ErrTLS is the cause when the two sides could not agree on TLS: certificates, names, versions, or a port that
	// does not speak it.
	ErrTLS = errors.New("TLS handshake failed")
	// ErrAuth is the cause when a login was refused.
	ErrAuth = errors.New("login refused")
	// ErrProtocol is the cause when a broker's bytes are not Kafka's, or not in order.
	ErrProtocol = errors.New("not the Kafka protocol")
)

// OpError is the error of an operation that talks to a cluster: what, where, how often, how long, why, and where
// the client can tell, what to do about it. Unwrap gives the cause for errors.Is and errors.As.
type OpError struct {
	Op        string // Kafka's name of the request
	Broker    string // as Client.BrokerName has it: "broker 1 (10.0.0.7:9092)"; empty when none was asked
	Topic     string // empty when the operation is about none
	Partition int32  // meaningful with Topic; -1 when the operation is about no partition
	Attempts  int    // zero when ctx had ended before the first
	Elapsed   time.Duration
	Hint      string // what it is and what to do, in a sentence
	Err       error
}

// Error is one line: operation, topic, broker, attempts and time, cause, hint.
func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Topic != "" {
		b.WriteString(" ")
		b.WriteString(e.Topic)
		if e.Partition >= 0 {
			fmt.Fprintf(&b, "-%d", e.Partition)
		}
	}
	if e.Broker != "" {
		b.WriteString(" at ")
		b.WriteString(e.Broker)
	}
	if e.Attempts > 1 {
		fmt.Fprintf(&b, " (%d attempts in %s)", e.Attempts, e.Elapsed.Round(time.Millisecond))
	} else if e.Elapsed > 0 {
		fmt.Fprintf(&b, " (after %s)", e.Elapsed.Round(time.Millisecond))
	}
	text := fmt.Sprint(e.Err)
	if e.Hint != "" { // an inner OpError may have brought it along: it is said once, at the end
		text = strings.ReplaceAll(text, "; hint: "+e.Hint, "")
	}
	b.WriteString(": " + text)
	if e.Hint != "" {
		fmt.Fprintf(&b, "; hint: %s", e.Hint)
	}
	return b.String()
}

// Unwrap is the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Retriable tells whether the same request may succeed later without anybody changing anything: Kafka's
// retriable codes, connections that ended, time-outs of single attempts. A login that was refused, a wrong
// cluster, a closed client and the end of the caller's ctx are not.
func Retriable(err error) bool {
	if err == nil {
		return false
	}
	var unresolved *errUnresolved
	var stranger *machine.FrameError
	var nobody *noBrokerError
	var dial *dialError
	if errors.As(err, &nobody) || errors.As(err, &unresolved) {
		return false
	}
	// A port that speaks something else from the first word on will go on doing so; a broker that did speak Kafka on
	// this connection may do so again (a proxy in between said that it lost it).
	if errors.As(err, &stranger) && stranger.Stranger != machine.Unknown && errors.As(err, &dial) {
		return false
	}
	for _, final := range []error{ErrClosed, ErrAuth, ErrTLS, ErrWrongCluster, ErrUnsupportedVersion, context.Canceled} {
		if errors.Is(err, final) {
			return false
		}
	}
	var code errcode.Code
	if errors.As(err, &code) {
		return code.Retriable() || code == errcode.RebootstrapRequired
	}
	for _, passing := range []error{ErrTimeout, ErrDisconnected, ErrQueueFull, ErrUnknownBroker, ErrUnknownTopic, ErrProtocol,
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, passing) {
			return true
		}
	}
	if errors.As(err, &dial) && dial.stage == "connect" {
		return true // whatever the dial function says: a broker that cannot be reached may come back
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var ne net.Error
	return errors.As(err, &ne)
}

// noBrokerError is an id that the cluster has never had. It matches ErrUnknownBroker and is not worth a second try.
type noBrokerError struct {
	id    int32
	nodes []Node
}

// Error names the brokers there are, a few of many.
func (e *noBrokerError) Error() string {
	const most = 10
	var ids []string
	for i, n := range e.nodes {
		if i == most {
			ids = append(ids, fmt.Sprintf("and %d more", len(e.nodes)-most))
			break
		}
		ids = append(ids, strconv.Itoa(int(n.ID)))
	}
	return fmt.Sprintf("%v: there is no broker %d, the cluster has %s", ErrUnknownBroker, e.id, strings.Join(ids, ", "))
}

// Is makes errors.Is(err, ErrUnknownBroker) true.
func (e *noBrokerError) Is(target error) bool { return target == ErrUnknownBroker }

// VersionError says which versions each side knows. It matches ErrUnsupportedVersion.
type VersionError struct {
	Key                  wire.Key
	WantMin, WantMax     int16
	BrokerMin, BrokerMax int16 // -1 when the broker does not know the request at all
}

// Error names both ranges.
func (e *VersionError) Error() string {
	if e.BrokerMax < 0 {
		return fmt.Sprintf("the broker does not know %v", e.Key)
	}
	return fmt.Sprintf("%v is needed in version %d to %d, the broker speaks %d to %d", e.Key, e.WantMin, e.WantMax, e.BrokerMin, e.BrokerMax)
}

// Is makes errors.Is(err, ErrUnsupportedVersion) true.
func (e *VersionError) Is(target error) bool { return target == ErrUnsupportedVersion }
