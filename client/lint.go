package client

import (
	"fmt"
	"strings"
	"time"
)

// Lint says what is allowed and still probably not meant. New logs each line as a warning.
func (c *Config) Lint() []string {
	out := append([]string(nil), c.warnings...)
	if c.Security == SecuritySASLPlaintext && c.SASL != nil && c.SASL.Name() == "PLAIN" {
		out = append(out, "security.protocol=SASL_PLAINTEXT with sasl.mechanism=PLAIN sends the password unencrypted; use SASL_SSL outside of a trusted network")
	}
	if c.Security.UsesTLS() && (c.TLS != nil && c.TLS.InsecureSkipVerify && c.TLS.VerifyConnection == nil || c.TLS == nil && c.SSL.SkipHostCheck) {
		out = append(out, "the broker's certificate is not checked against its host name: whoever holds any trusted certificate can pose as the broker")
	}
	if c.MaxIdle > 10*time.Minute {
		out = append(out, fmt.Sprintf("connections.max.idle.ms is %s, but brokers close idle connections after 10 minutes by default", c.MaxIdle))
	}
	if c.APITimeout < c.RequestTimeout {
		out = append(out, fmt.Sprintf("default.api.timeout.ms (%s) is shorter than request.timeout.ms (%s): no request is ever tried twice after a time-out", c.APITimeout, c.RequestTimeout))
	}
	if c.MetadataMaxAge < time.Second {
		out = append(out, fmt.Sprintf("metadata.max.age.ms is %s: that many requests are a load for the brokers", c.MetadataMaxAge))
	}
	if len(c.Seeds) == 1 && !strings.HasPrefix(c.Seeds[0], "127.") && !strings.HasPrefix(c.Seeds[0], "localhost") && !c.Rebootstrap {
		out = append(out, "there is one seed and rebootstrap is off: the client cannot start while that broker is down")
	}
	return out
}

// String prints the configuration, one key a line, with secrets redacted. Where Kafka has no key the field is named.
func (c Config) String() string {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "%s=%v\n", key, value) }
	line("bootstrap.servers", strings.Join(c.Seeds, ","))
	line("client.id", c.ClientID)
	line("client.rack", c.Rack)
	line("client.dns.lookup", c.DNSLookup)
	line("bootstrap.resolve.timeout.ms", c.BootstrapResolveTimeout.Milliseconds())
	line("security.protocol", c.Security)
	if c.SASL != nil {
		line("sasl.mechanism", c.SASL.Name())
		line("sasl.jaas.config", "[redacted]")
	}
	line("request.timeout.ms", c.RequestTimeout.Milliseconds())
	line("default.api.timeout.ms", c.APITimeout.Milliseconds())
	line("socket.connection.setup.timeout.ms", c.SetupTimeout.Milliseconds())
	line("socket.connection.setup.timeout.max.ms", c.SetupTimeoutMax.Milliseconds())
	line("reconnect.backoff.ms", c.ReconnectBackoff.Milliseconds())
	line("reconnect.backoff.max.ms", c.ReconnectBackoffMax.Milliseconds())
	line("retry.backoff.ms", c.RetryBackoff.Milliseconds())
	line("retry.backoff.max.ms", c.RetryBackoffMax.Milliseconds())
	line("connections.max.idle.ms", c.MaxIdle.Milliseconds())
	line("metadata.max.age.ms", c.MetadataMaxAge.Milliseconds())
	line("metadata.recovery.strategy", recovery(c.Rebootstrap))
	line("metadata.recovery.rebootstrap.trigger.ms", c.RebootstrapTrigger.Milliseconds())
	line("metadata.cluster.check.enable", c.CheckCluster)
	line("allow.auto.create.topics", c.AutoCreateTopics)
	line("send.buffer.bytes", c.SendBuffer)
	line("receive.buffer.bytes", c.ReceiveBuffer)
	line("Config.WriteTimeout", c.WriteTimeout)
	line("Config.MaxResponseBytes", c.MaxResponseBytes)
	line("Config.MaxQueued", c.MaxQueued)
	line("Config.MemoryBudget", c.MemoryBudget)
	return b.String()
}

// GoString is String: %#v would reach into the fields.
func (c Config) GoString() string { return c.String() }

func recovery(on bool) string {
	if on {
		return "rebootstrap"
	}
	return "none"
}
