package client

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client/sasl"
)

// Properties sets the client from Java properties. What cannot be set shows in New's error, with the rest that is
// wrong. Keys of producers and consumers are unknown here: use their rooms' functions, which take all keys.
func Properties(properties map[string]string) Option {
	return func(c *Config) {
		if err := LoadProperties(properties, ClientProperties().Bind(c)); err != nil {
			c.problems = append(c.problems, unjoin(err)...)
		}
	}
}

// ClientProperties is the table of the keys that producers, consumers and administrators have in common.
func ClientProperties() PropertyTable[Config] {
	t := networkProperties()
	t = append(t, sslProperties()...)
	t = append(t, saslProperties()...)
	return append(t, refusedProperties()...)
}

// SetMillis makes an Apply of a key in milliseconds, for a field of type time.Duration.
func SetMillis[C any](field func(*C) *time.Duration) func(*C, string) error {
	return func(c *C, value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("must be a whole number of milliseconds")
		}
		const most = int64(1<<63-1) / int64(time.Millisecond)
		if n > most {
			n = most // Java's Long.MAX_VALUE stands for "for ever"
		}
		*field(c) = time.Duration(n) * time.Millisecond
		return nil
	}
}

// SetInt makes an Apply of a key with a whole number.
func SetInt[C any](field func(*C) *int) func(*C, string) error {
	return func(c *C, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("must be a whole number")
		}
		*field(c) = n
		return nil
	}
}

// SetString makes an Apply of a key with a text.
func SetString[C any](field func(*C) *string) func(*C, string) error {
	return func(c *C, value string) error {
		*field(c) = value
		return nil
	}
}

// SetBool makes an Apply of a key with true or false.
func SetBool[C any](field func(*C) *bool) func(*C, string) error {
	return func(c *C, value string) error {
		switch strings.ToLower(value) {
		case "true":
			*field(c) = true
		case "false":
			*field(c) = false
		default:
			return fmt.Errorf("must be true or false")
		}
		return nil
	}
}

// SetList makes an Apply of a key with a comma-separated list; empty items are dropped.
func SetList[C any](field func(*C) *[]string) func(*C, string) error {
	return func(c *C, value string) error {
		var out []string
		for _, item := range strings.Split(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
		*field(c) = out
		return nil
	}
}

func millis(key, def, doc string, field func(*Config) *time.Duration) Property[Config] {
	return Property[Config]{Key: key, Default: def, Doc: doc, Apply: SetMillis(field)}
}

func networkProperties() PropertyTable[Config] {
	bufferNote := "-1: the system sizes the buffer as the connection needs; Kafka's fixed size is set when asked for"
	return PropertyTable[Config]{
		{Key: "bootstrap.servers", Default: "(required)", Doc: "addresses to start from", Apply: SetList(func(c *Config) *[]string { return &c.Seeds })},
		{Key: "client.id", Default: "", Doc: "name in the broker's logs and quotas", Differs: "ottla: a broker's log and metrics then say whose connection it is",
			Apply: SetString(func(c *Config) *string { return &c.ClientID })},
		{Key: "client.rack", Default: "", Doc: "where the client runs", Apply: SetString(func(c *Config) *string { return &c.Rack })},
		{Key: "client.dns.lookup", Default: "use_all_dns_ips", Doc: "how seed names become addresses", Apply: applyDNS},
		millis("bootstrap.resolve.timeout.ms", "0", "how long unresolvable seeds are waited for", func(c *Config) *time.Duration { return &c.BootstrapResolveTimeout }),
		millis("request.timeout.ms", "30000", "limit of one attempt", func(c *Config) *time.Duration { return &c.RequestTimeout }),
		millis("default.api.timeout.ms", "60000", "limit of one request over all attempts", func(c *Config) *time.Duration { return &c.APITimeout }),
		millis("socket.connection.setup.timeout.ms", "10000", "limit of connecting, TLS and login included", func(c *Config) *time.Duration { return &c.SetupTimeout }),
		millis("socket.connection.setup.timeout.max.ms", "30000", "what that limit grows to", func(c *Config) *time.Duration { return &c.SetupTimeoutMax }),
		millis("reconnect.backoff.ms", "50", "first wait before connecting again", func(c *Config) *time.Duration { return &c.ReconnectBackoff }),
		millis("reconnect.backoff.max.ms", "1000", "what that wait grows to", func(c *Config) *time.Duration { return &c.ReconnectBackoffMax }),
		millis("retry.backoff.ms", "100", "first wait before asking again", func(c *Config) *time.Duration { return &c.RetryBackoff }),
		millis("retry.backoff.max.ms", "1000", "what that wait grows to", func(c *Config) *time.Duration { return &c.RetryBackoffMax }),
		millis("connections.max.idle.ms", "540000", "idle connections are closed after it", func(c *Config) *time.Duration { return &c.MaxIdle }),
		millis("metadata.max.age.ms", "300000", "metadata is refreshed after it", func(c *Config) *time.Duration { return &c.MetadataMaxAge }),
		{Key: "metadata.recovery.strategy", Default: "rebootstrap", Doc: "what to do when no known broker answers", Apply: applyRecovery},
		millis("metadata.recovery.rebootstrap.trigger.ms", "300000", "how long metadata may fail before the seeds are asked", func(c *Config) *time.Duration { return &c.RebootstrapTrigger }),
		{Key: "metadata.cluster.check.enable", Default: "true", Doc: "refuse brokers of another cluster", Apply: SetBool(func(c *Config) *bool { return &c.CheckCluster })},
		{Key: "send.buffer.bytes", Default: "131072", Doc: "socket send buffer", Differs: bufferNote, Apply: SetInt(func(c *Config) *int { return &c.SendBuffer })},
		{Key: "receive.buffer.bytes", Default: "65536", Doc: "socket receive buffer", Differs: bufferNote, Apply: SetInt(func(c *Config) *int { return &c.ReceiveBuffer })},
	}
}

func applyDNS(c *Config, value string) error {
	switch d := DNSLookup(value); d {
	case UseAllIPs, ResolveCanonical:
		c.DNSLookup = d
		return nil
	}
	if value == "default" {
		return fmt.Errorf("was removed in Kafka 3.0; use %s", UseAllIPs)
	}
	return fmt.Errorf("must be %s or %s", UseAllIPs, ResolveCanonical)
}

func applyRecovery(c *Config, value string) error {
	switch strings.ToLower(value) {
	case "rebootstrap":
		c.Rebootstrap = true
	case "none":
		c.Rebootstrap = false
	default:
		return fmt.Errorf("must be rebootstrap or none")
	}
	return nil
}

func sslProperties() PropertyTable[Config] {
	text := func(field func(*SSLConfig) *string) func(*Config, string) error {
		return SetString(func(c *Config) *string { return field(&c.SSL) })
	}
	secret := func(field func(*SSLConfig) *Secret) func(*Config, string) error {
		return func(c *Config, value string) error { *field(&c.SSL) = sasl.NewSecret(value); return nil }
	}
	list := func(field func(*SSLConfig) *[]string) func(*Config, string) error {
		return SetList(func(c *Config) *[]string { return field(&c.SSL) })
	}
	return PropertyTable[Config]{
		{Key: "security.protocol", Default: "PLAINTEXT", Doc: "encryption and login", Apply: func(c *Config, value string) error {
			c.Security = Security(strings.ToUpper(value))
			return nil
		}},
		{Key: "ssl.truststore.type", Default: "JKS", Doc: "only PEM is read", Apply: text(func(s *SSLConfig) *string { return &s.TruststoreType })},
		{Key: "ssl.truststore.location", Default: "(null)", Doc: "file with CA certificates", Apply: text(func(s *SSLConfig) *string { return &s.TruststoreLocation })},
		{Key: "ssl.truststore.certificates", Default: "(null)", Doc: "CA certificates inline", Apply: text(func(s *SSLConfig) *string { return &s.TruststoreCertificates })},
		{Key: "ssl.keystore.type", Default: "JKS", Doc: "only PEM is read", Apply: text(func(s *SSLConfig) *string { return &s.KeystoreType })},
		{Key: "ssl.keystore.location", Default: "(null)", Doc: "file with key and certificate chain", Apply: text(func(s *SSLConfig) *string { return &s.KeystoreLocation })},
		{Key: "ssl.keystore.certificate.chain", Default: "(null)", Doc: "certificate chain inline", Apply: text(func(s *SSLConfig) *string { return &s.KeystoreChain })},
		{Key: "ssl.keystore.key", Default: "(null)", Doc: "private key inline", Apply: secret(func(s *SSLConfig) *Secret { return &s.KeystoreKey })},
		{Key: "ssl.enabled.protocols", Default: "TLSv1.2,TLSv1.3", Doc: "TLS versions", Apply: list(func(s *SSLConfig) *[]string { return &s.Protocols })},
		{Key: "ssl.cipher.suites", Default: "", Doc: "TLS 1.2 cipher suites", Apply: list(func(s *SSLConfig) *[]string { return &s.CipherSuites })},
		{Key: "ssl.endpoint.identification.algorithm", Default: "https", Doc: "https checks the host name, empty does not", Apply: func(c *Config, value string) error {
			switch strings.ToLower(value) {
			case "https":
				c.SSL.SkipHostCheck = false
			case "":
				c.SSL.SkipHostCheck = true
			default:
				return fmt.Errorf("must be https or empty")
			}
			return nil
		}},
		{Key: "ssl.protocol", Default: "TLSv1.3", Doc: "named for the Java engine; ssl.enabled.protocols decides here", Accept: []string{"TLSv1.2", "TLS"},
			Refuse: "choose the versions with ssl.enabled.protocols (TLSv1.2, TLSv1.3)"},
		refuse("ssl.truststore.password", "(null)", "PEM stores have no password: remove the key, with ssl.truststore.type=PEM"),
		refuse("ssl.keystore.password", "(null)", "PEM stores have no password: remove the key, with ssl.keystore.type=PEM"),
		refuse("ssl.key.password", "(null)", "encrypted keys are not read: decrypt it with openssl pkcs8 -in KEY -out PLAIN, and keep the file private"),
		refuse("ssl.provider", "(null)", "is about the Java security provider; here it is Go's crypto/tls"),
		refuse("ssl.keymanager.algorithm", "SunX509", "is about Java's key manager", "PKIX"),
		refuse("ssl.trustmanager.algorithm", "PKIX", "is about Java's trust manager", "SunX509"),
		refuse("ssl.secure.random.implementation", "(null)", "is about Java's random; here it is crypto/rand"),
		refuse("ssl.engine.factory.class", "(null)", "names a Java class; pass a *tls.Config to client.TLS instead"),
	}
}

func refuse(key, def, reason string, accept ...string) Property[Config] {
	return Property[Config]{Key: key, Default: def, Refuse: reason, Accept: accept}
}

func saslProperties() PropertyTable[Config] {
	t := PropertyTable[Config]{
		{Key: "sasl.mechanism", Default: "GSSAPI", Doc: "how to log in; PLAIN", Differs: "none: security.protocol decides whether there is a login at all, and then a mechanism has to be named", Apply: applyMechanism},
		{Key: "sasl.jaas.config", Default: "(null)", Doc: "user name and password of PLAIN", Apply: applyJAAS},
		refuse("sasl.client.callback.handler.class", "(null)", "names a Java class; give sasl.Plain a function that fetches the credentials"),
		refuse("sasl.login.callback.handler.class", "(null)", "names a Java class; give sasl.Plain a function that fetches the credentials"),
		refuse("sasl.login.class", "(null)", "names a Java class; implement sasl.Mechanism instead"),
	}
	kerberos := "belongs to GSSAPI (Kerberos), which this client does not have yet"
	oauth := "belongs to OAUTHBEARER, which this client does not have yet"
	for _, k := range [][2]string{{"kinit.cmd", "/usr/bin/kinit"}, {"min.time.before.relogin", "60000"}, {"service.name", "(null)"},
		{"ticket.renew.jitter", "0.05"}, {"ticket.renew.window.factor", "0.8"}} {
		t = append(t, refuse("sasl.kerberos."+k[0], k[1], kerberos))
	}
	for _, k := range oauthKeys {
		t = append(t, refuse("sasl."+k[0], k[1], oauth))
	}
	return t
}

// oauthKeys are the keys of OAUTHBEARER with Kafka's defaults, which are accepted because they ask for nothing.
var oauthKeys = [][2]string{
	{"login.connect.timeout.ms", "(null)"}, {"login.read.timeout.ms", "(null)"}, {"login.refresh.buffer.seconds", "300"},
	{"login.refresh.min.period.seconds", "60"}, {"login.refresh.window.factor", "0.8"}, {"login.refresh.window.jitter", "0.05"},
	{"login.retry.backoff.max.ms", "10000"}, {"login.retry.backoff.ms", "100"},
	{"oauthbearer.allow.unverified.audience", "false"}, {"oauthbearer.allow.unverified.issuer", "false"},
	{"oauthbearer.assertion.algorithm", "RS256"}, {"oauthbearer.assertion.claim.aud", "(null)"},
	{"oauthbearer.assertion.claim.exp.seconds", "300"}, {"oauthbearer.assertion.claim.iss", "(null)"},
	{"oauthbearer.assertion.claim.jti.include", "false"}, {"oauthbearer.assertion.claim.nbf.seconds", "60"},
	{"oauthbearer.assertion.claim.sub", "(null)"}, {"oauthbearer.assertion.file", "(null)"},
	{"oauthbearer.assertion.private.key.file", "(null)"}, {"oauthbearer.assertion.private.key.passphrase", "(null)"},
	{"oauthbearer.assertion.template.file", "(null)"}, {"oauthbearer.client.credentials.client.id", "(null)"},
	{"oauthbearer.client.credentials.client.secret", "(null)"}, {"oauthbearer.clock.skew.seconds", "30"},
	{"oauthbearer.expected.audience", ""}, {"oauthbearer.expected.issuer", "(null)"},
	{"oauthbearer.header.urlencode", "false"}, {"oauthbearer.jwks.endpoint.refresh.ms", "3600000"},
	{"oauthbearer.jwks.endpoint.retry.backoff.max.ms", "10000"}, {"oauthbearer.jwks.endpoint.retry.backoff.ms", "100"},
	{"oauthbearer.jwks.endpoint.url", "(null)"},
	{"oauthbearer.jwt.retriever.class", "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"},
	{"oauthbearer.jwt.validator.class", "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"},
	{"oauthbearer.scope", "(null)"}, {"oauthbearer.scope.claim.name", "scope"}, {"oauthbearer.sub.claim.name", "sub"},
	{"oauthbearer.token.endpoint.url", "(null)"},
}

// refusedProperties are the keys that name Java classes or Java's own metrics.
func refusedProperties() PropertyTable[Config] {
	metrics := "is about Java's metrics; here see client.Metrics and client.Observer"
	return PropertyTable[Config]{
		refuse("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter", metrics, ""),
		refuse("metrics.num.samples", "2", metrics),
		refuse("metrics.recording.level", "INFO", metrics),
		refuse("metrics.sample.window.ms", "30000", metrics),
		{Key: "enable.metrics.push", Default: "true", Doc: "accepted without effect: metrics are not pushed to the broker (KIP-714) yet", Accept: []string{"false"},
			Refuse: "must be true or false; either has no effect, metrics are not pushed to the broker (KIP-714) yet"},
		refuse("config.providers", "", "names Java classes that fetch values; fetch them before calling, credentials by the function given to sasl.Plain"),
		refuse("security.providers", "(null)", "names Java classes; here it is Go's crypto/tls"),
		refuse("bootstrap.controllers", "", "connecting to controllers alone is not built yet; use bootstrap.servers"),
	}
}
