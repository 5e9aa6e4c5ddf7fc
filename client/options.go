package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/ottla-kafka/ottla/client/sasl"
)

// Option changes a Config. Options run in order, so a later one wins.
type Option func(*Config)

// Seeds sets the host:port addresses to start from (bootstrap.servers).
func Seeds(addrs ...string) Option {
	return func(c *Config) { c.Seeds = append([]string(nil), addrs...) }
}

// ClusterSource is anything a client can reach: an in-process broker, a proxy, a tunnel.
type ClusterSource interface {
	// Addrs are the seeds, host:port.
	Addrs() []string
	// DialContext opens a connection to one of them or to an address metadata gave.
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

// Cluster takes both the seeds and the dial function from k.
func Cluster(k ClusterSource) Option {
	return func(c *Config) {
		c.Seeds = k.Addrs()
		c.Dialer = k.DialContext
	}
}

// ClientID sets client.id.
func ClientID(id string) Option { return func(c *Config) { c.ClientID = id } }

// Rack sets client.rack.
func Rack(rack string) Option { return func(c *Config) { c.Rack = rack } }

// Dialer sets the function that opens connections; it must honour ctx. TLS and SASL run on top of it.
func Dialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return func(c *Config) { c.Dialer = dial }
}

// TLS encrypts connections. nil means the system's roots and a checked host name. The configuration is cloned
// for each connection and ServerName is set to the broker's host when it is empty.
func TLS(config *tls.Config) Option {
	return func(c *Config) {
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		c.TLS = config
		c.Security = security(true, c.Security.UsesSASL())
	}
}

// SASL logs in on every connection.
func SASL(mechanism sasl.Mechanism) Option {
	return func(c *Config) {
		c.SASL, c.noLogin = mechanism, false
		c.Security = security(c.Security.UsesTLS(), mechanism != nil)
	}
}

// RequestTimeout bounds one attempt of one request (request.timeout.ms).
func RequestTimeout(d time.Duration) Option { return func(c *Config) { c.RequestTimeout = d } }

// APITimeout bounds calls over all their attempts (default.api.timeout.ms); see Config.APITimeout.
func APITimeout(d time.Duration) Option { return func(c *Config) { c.APITimeout = d } }

// MetadataMaxAge sets metadata.max.age.ms.
func MetadataMaxAge(d time.Duration) Option { return func(c *Config) { c.MetadataMaxAge = d } }

// MaxIdle sets connections.max.idle.ms.
func MaxIdle(d time.Duration) Option { return func(c *Config) { c.MaxIdle = d } }

// RetryBackoff sets retry.backoff.ms and retry.backoff.max.ms.
func RetryBackoff(first, most time.Duration) Option {
	return func(c *Config) { c.RetryBackoff, c.RetryBackoffMax = first, most }
}

// ReconnectBackoff sets reconnect.backoff.ms and reconnect.backoff.max.ms.
func ReconnectBackoff(first, most time.Duration) Option {
	return func(c *Config) { c.ReconnectBackoff, c.ReconnectBackoffMax = first, most }
}

// SetupTimeout sets socket.connection.setup.timeout.ms and socket.connection.setup.timeout.max.ms.
func SetupTimeout(first, most time.Duration) Option {
	return func(c *Config) { c.SetupTimeout, c.SetupTimeoutMax = first, most }
}

// AutoCreateTopics lets metadata requests create topics (allow.auto.create.topics).
func AutoCreateTopics(on bool) Option { return func(c *Config) { c.AutoCreateTopics = on } }

// MemoryBudget bounds what producers and consumers of this client hold together, in bytes.
func MemoryBudget(bytes int64) Option { return func(c *Config) { c.MemoryBudget = bytes } }

// Logger sets where log lines go; nil means nowhere.
func Logger(l *slog.Logger) Option { return func(c *Config) { c.Logger = l } }

// WithObserver adds an observer; nil adds none. Several may be added; each is called in turn.
func WithObserver(o Observer) Option {
	return func(c *Config) {
		if o != nil {
			c.Observers = append(c.Observers, o)
		}
	}
}

// Jitter makes back-off repeatable: two clients with the same seed wait for the same times.
func Jitter(seed uint64) Option { return func(c *Config) { c.Seed = seed } }
