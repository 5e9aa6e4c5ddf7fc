package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/ottla-kafka/ottla/client/sasl"
)

// Config is everything a client can be told. DefaultConfig fills it with Apache Kafka 4.x's defaults; an Option
// changes it. Durations are durations, sizes are bytes, zero means zero. The key in each comment is the Java
// property that sets the field.
type Config struct {
	// Seeds are host:port addresses to start from (bootstrap.servers). At least one is required.
	Seeds []string
	// ClientID is sent with every request and shows in the broker's logs, metrics and quotas (client.id).
	ClientID string
	// Rack is where this client runs, for fetching from the nearest replica (client.rack).
	Rack string
	// DNSLookup says how seed names become addresses (client.dns.lookup).
	DNSLookup DNSLookup
	// BootstrapResolveTimeout bounds the resolution of the seeds when the first connection is made; zero means
	// one try for each (bootstrap.resolve.timeout.ms).
	BootstrapResolveTimeout time.Duration

	// Dialer opens connections; nil means TCP by net.Dialer. It must honour ctx.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

	// Security names what runs on the connection (security.protocol). The TLS and SASL options set it.
	Security Security
	// TLS is used when Security says SSL. nil means a configuration built from SSL, and where that is empty the
	// system's roots with the host name checked.
	TLS *tls.Config
	// SSL holds what the ssl.* properties said; New builds TLS from it when TLS is nil.
	SSL SSLConfig
	// SASL is the way to log in when Security says SASL (sasl.mechanism, sasl.jaas.config).
	SASL sasl.Mechanism

	// RequestTimeout bounds one attempt, from Issue to the answer, connecting included (request.timeout.ms, 30 s).
	RequestTimeout time.Duration
	// APITimeout bounds Client.Request and Client.Coordinators over all their attempts, and Client.AwaitTopics when
	// its ctx has no deadline (default.api.timeout.ms, 60 s).
	APITimeout time.Duration
	// WriteTimeout bounds how long one write may wait for the socket to take the bytes (30 s, and no more than
	// RequestTimeout). Kafka has no such key; there it is part of request.timeout.ms.
	WriteTimeout time.Duration
	// SetupTimeout and SetupTimeoutMax bound connecting, TLS and SASL included: the first attempt has
	// SetupTimeout, and each failed one doubles it (socket.connection.setup.timeout.ms 10 s, .max.ms 30 s).
	SetupTimeout, SetupTimeoutMax time.Duration
	// ReconnectBackoff and its maximum space attempts to connect to one broker (reconnect.backoff.ms 50 ms,
	// reconnect.backoff.max.ms 1 s).
	ReconnectBackoff, ReconnectBackoffMax time.Duration
	// RetryBackoff and its maximum space attempts of one request (retry.backoff.ms 100 ms, .max.ms 1 s).
	RetryBackoff, RetryBackoffMax time.Duration
	// MaxIdle is how long a connection may carry nothing before it is closed; zero or less keeps it
	// (connections.max.idle.ms, 540 s; a Java admin client has 300 s).
	MaxIdle time.Duration

	// MetadataMaxAge is how old metadata may get without any error (metadata.max.age.ms, 300 s).
	MetadataMaxAge time.Duration
	// Rebootstrap starts over from Seeds when no known broker answers (metadata.recovery.strategy=rebootstrap, on).
	Rebootstrap bool
	// RebootstrapTrigger is how long metadata may fail before that (metadata.recovery.rebootstrap.trigger.ms, 300 s).
	RebootstrapTrigger time.Duration
	// CheckCluster pins the id of the first cluster that answered and refuses brokers of any other
	// (metadata.cluster.check.enable, true).
	CheckCluster bool
	// AutoCreateTopics lets metadata requests create topics that do not exist, if the broker allows it too
	// (allow.auto.create.topics in a consumer, true; a Java producer always asks).
	AutoCreateTopics bool

	// SendBuffer and ReceiveBuffer are socket buffer sizes in bytes, -1 for the system's (send.buffer.bytes,
	// receive.buffer.bytes; -1).
	SendBuffer, ReceiveBuffer int
	// MaxResponseBytes is the largest answer accepted, in bytes (256 MiB); a longer length word ends the connection.
	// Kafka's Java clients have no limit.
	MaxResponseBytes int
	// MaxQueued is how many calls one connection may hold, written or not (4096); one more fails with ErrQueueFull.
	MaxQueued int
	// MemoryBudget bounds the bytes that producers and consumers of this client hold together; zero or less
	// means no common bound beside buffer.memory and the fetch sizes (0).
	MemoryBudget int64

	// Logger gets warnings about brokers and debug lines about connections; nil means none.
	Logger *slog.Logger
	// Observers are told about connections, requests and metadata.
	Observers []Observer
	// Seed makes jitter repeatable; zero draws one.
	Seed uint64

	problems []error // what options could not do; New reports them with the rest
	warnings []string
	noLogin  bool // sasl.mechanism was named, but no credentials
}

// DefaultConfig is Apache Kafka 4.x's configuration of a client. Where a default differs from Kafka's, the
// property table says why (see Properties).
func DefaultConfig() Config {
	return Config{
		ClientID:            "ottla",
		DNSLookup:           UseAllIPs,
		Security:            SecurityPlaintext,
		RequestTimeout:      30 * time.Second,
		APITimeout:          60 * time.Second,
		WriteTimeout:        30 * time.Second,
		SetupTimeout:        10 * time.Second,
		SetupTimeoutMax:     30 * time.Second,
		ReconnectBackoff:    50 * time.Millisecond,
		ReconnectBackoffMax: time.Second,
		RetryBackoff:        100 * time.Millisecond,
		RetryBackoffMax:     time.Second,
		MaxIdle:             540 * time.Second,
		MetadataMaxAge:      300 * time.Second,
		Rebootstrap:         true,
		RebootstrapTrigger:  300 * time.Second,
		CheckCluster:        true,
		AutoCreateTopics:    true,
		SendBuffer:          -1,
		ReceiveBuffer:       -1,
		MaxResponseBytes:    256 << 20,
		MaxQueued:           4096,
	}
}

// DNSLookup is a value of client.dns.lookup.
type DNSLookup string

const (
	// UseAllIPs tries every address a name has, one after the other.
	UseAllIPs DNSLookup = "use_all_dns_ips"
	// ResolveCanonical replaces each seed by the canonical names of its addresses first.
	ResolveCanonical DNSLookup = "resolve_canonical_bootstrap_servers_only"
)

// Security is a value of security.protocol.
type Security string

// The four protocols of Kafka.
const (
	SecurityPlaintext     Security = "PLAINTEXT"
	SecuritySSL           Security = "SSL"
	SecuritySASLPlaintext Security = "SASL_PLAINTEXT"
	SecuritySASLSSL       Security = "SASL_SSL"
)

// UsesTLS tells whether bytes are encrypted.
func (s Security) UsesTLS() bool { return s == SecuritySSL || s == SecuritySASLSSL }

// UsesSASL tells whether the client logs in.
func (s Security) UsesSASL() bool { return s == SecuritySASLPlaintext || s == SecuritySASLSSL }

func security(tls, sasl bool) Security {
	switch {
	case tls && sasl:
		return SecuritySASLSSL
	case tls:
		return SecuritySSL
	case sasl:
		return SecuritySASLPlaintext
	}
	return SecurityPlaintext
}
