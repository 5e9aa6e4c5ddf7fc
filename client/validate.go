package client

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// FieldError says which configuration key is wrong, with its value and what to write instead.
type FieldError struct {
	Key    string // Kafka's name of the key, or "Config.Field" where Kafka has none
	Value  string // as given; empty for a missing one; redacted for a secret
	Reason string
}

// Error is key=value: why.
func (e *FieldError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %s", e.Key, e.Reason)
	}
	return fmt.Sprintf("%s=%s: %s", e.Key, e.Value, e.Reason)
}

// Validate reports everything that is wrong with the configuration, as errors.Join of *FieldError. It does no
// I/O beside reading the files that ssl.* keys name.
func (c *Config) Validate() error {
	errs := append([]error(nil), c.problems...)
	bad := func(key, value, format string, args ...any) {
		errs = append(errs, &FieldError{Key: key, Value: value, Reason: fmt.Sprintf(format, args...)})
	}
	if len(c.Seeds) == 0 {
		bad("bootstrap.servers", "", "is required: give at least one host:port, as in client.Seeds(\"127.0.0.1:9092\")")
	}
	for _, seed := range c.Seeds {
		if reason := badAddr(seed); reason != "" {
			bad("bootstrap.servers", seed, "%s", reason)
		}
	}
	switch c.DNSLookup {
	case UseAllIPs, ResolveCanonical:
	default:
		bad("client.dns.lookup", string(c.DNSLookup), "must be %s or %s", UseAllIPs, ResolveCanonical)
	}
	c.validateTimes(bad)
	c.validateSizes(bad)
	c.validateSecurity(bad)
	return errors.Join(errs...)
}

func (c *Config) validateTimes(bad func(key, value, format string, args ...any)) {
	positive := func(key string, d time.Duration) {
		if d <= 0 {
			bad(key, d.String(), "must be more than zero")
		}
	}
	positive("request.timeout.ms", c.RequestTimeout)
	positive("default.api.timeout.ms", c.APITimeout)
	positive("socket.connection.setup.timeout.ms", c.SetupTimeout)
	positive("Config.WriteTimeout", c.WriteTimeout)
	positive("metadata.max.age.ms", c.MetadataMaxAge)
	notNegative := func(key string, d time.Duration) {
		if d < 0 {
			bad(key, d.String(), "must not be negative")
		}
	}
	notNegative("reconnect.backoff.ms", c.ReconnectBackoff)
	notNegative("retry.backoff.ms", c.RetryBackoff)
	notNegative("bootstrap.resolve.timeout.ms", c.BootstrapResolveTimeout)
	notNegative("metadata.recovery.rebootstrap.trigger.ms", c.RebootstrapTrigger)
	atLeast := func(key string, d time.Duration, lowKey string, low time.Duration) {
		if d < low {
			bad(key, d.String(), "must be at least %s, which is %s", lowKey, low)
		}
	}
	atLeast("reconnect.backoff.max.ms", c.ReconnectBackoffMax, "reconnect.backoff.ms", c.ReconnectBackoff)
	atLeast("retry.backoff.max.ms", c.RetryBackoffMax, "retry.backoff.ms", c.RetryBackoff)
	atLeast("socket.connection.setup.timeout.max.ms", c.SetupTimeoutMax, "socket.connection.setup.timeout.ms", c.SetupTimeout)
}

func (c *Config) validateSizes(bad func(key, value, format string, args ...any)) {
	if c.SendBuffer < -1 || c.SendBuffer == 0 {
		bad("send.buffer.bytes", strconv.Itoa(c.SendBuffer), "must be a size in bytes, or -1 for the system's default")
	}
	if c.ReceiveBuffer < -1 || c.ReceiveBuffer == 0 {
		bad("receive.buffer.bytes", strconv.Itoa(c.ReceiveBuffer), "must be a size in bytes, or -1 for the system's default")
	}
	if c.MaxResponseBytes < 1<<10 {
		bad("Config.MaxResponseBytes", strconv.Itoa(c.MaxResponseBytes), "must be at least 1024")
	}
	if c.MaxQueued < 1 {
		bad("Config.MaxQueued", strconv.Itoa(c.MaxQueued), "must be at least 1")
	}
	if len(c.ClientID) > 32767 {
		bad("client.id", c.ClientID[:16]+"...", "is %d bytes long, Kafka's strings end at 32767", len(c.ClientID))
	}
}

func (c *Config) validateSecurity(bad func(key, value, format string, args ...any)) {
	switch c.Security {
	case SecurityPlaintext, SecuritySSL, SecuritySASLPlaintext, SecuritySASLSSL:
	default:
		bad("security.protocol", string(c.Security), "must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL")
		return
	}
	if c.Security.UsesSASL() && c.SASL == nil {
		bad("sasl.mechanism", "", "security.protocol is %s but no way to log in is set: use client.SASL(sasl.PlainUser(name, secret)), or sasl.mechanism=PLAIN with sasl.jaas.config", c.Security)
	}
	if c.noLogin {
		bad("sasl.jaas.config", "", "sasl.mechanism is %s but there are no credentials: set it to org.apache.kafka.common.security.plain.PlainLoginModule required username=\"...\" password=\"...\";", c.SASL.Name())
	}
	if !c.Security.UsesSASL() && c.SASL != nil {
		bad("security.protocol", string(c.Security), "a %s login is set but this protocol does not log in; use SASL_PLAINTEXT or SASL_SSL", c.SASL.Name())
	}
	if !c.Security.UsesTLS() && c.TLS != nil {
		bad("security.protocol", string(c.Security), "a TLS configuration is set but this protocol does not encrypt; use SSL or SASL_SSL")
	}
	if c.Security.UsesTLS() && c.TLS == nil {
		if _, err := c.SSL.Build(); err != nil {
			for _, e := range unjoin(err) {
				bad(sslKey(e), "", "%v", e)
			}
		}
	}
}

// badAddr says what is wrong with a host:port, empty when nothing is.
func badAddr(addr string) string {
	if _, rest, ok := strings.Cut(addr, "://"); ok {
		return fmt.Sprintf("must be host:port without a scheme; write %s and choose security.protocol for TLS or SASL", rest)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "must be host:port, as in broker1:9092 or [::1]:9092"
	}
	if host == "" {
		return "has no host"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Sprintf("port %q is not a number from 1 to 65535", port)
	}
	return ""
}

func unjoin(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}
