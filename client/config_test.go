package client_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/client/sasl"
)

// kafkaKeys reads one of Kafka's own key tables: name, type, default, ...
func kafkaKeys(t *testing.T, table string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/configs/" + table + ".tsv")
	require.NoError(t, err)
	keys := make(map[string]string)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		cells := strings.Split(line, "\t")
		keys[cells[0]] = cells[2]
	}
	require.Greater(t, len(keys), 50)
	return keys
}

func TestEveryCommonKeyIsMappedOrRefusedWithItsReason(t *testing.T) {
	table := client.ClientProperties()
	producer, consumer, admin := kafkaKeys(t, "producer"), kafkaKeys(t, "consumer"), kafkaKeys(t, "admin")
	for key := range admin {
		if key == "retries" {
			continue // of producers and administrators; a consumer has none
		}
		p, ok := table.Lookup(key)
		require.True(t, ok, key)
		require.True(t, (p.Apply == nil) == (p.Refuse != ""), "%s: mapped or refused", key)
	}
	for key := range producer {
		if _, common := consumer[key]; common && key != "interceptor.classes" {
			_, ok := table.Lookup(key)
			require.True(t, ok, key)
		}
	}
	seen := map[string]bool{}
	for _, p := range table {
		require.False(t, seen[p.Key], "%s twice", p.Key)
		seen[p.Key] = true
		_, a := producer[p.Key]
		_, b := consumer[p.Key]
		_, c := admin[p.Key]
		require.True(t, a || b || c, "%s is no key of Kafka's", p.Key)
	}
}

func TestDefaultsAreKafkasOrSayWhyNot(t *testing.T) {
	consumer := kafkaKeys(t, "consumer")
	loaded := client.DefaultConfig()
	props := map[string]string{}
	for _, p := range client.ClientProperties() {
		if want, ok := consumer[p.Key]; ok && p.Key != "bootstrap.servers" {
			require.Equal(t, want, p.Default, p.Key)
		}
		// A file that spells out Kafka's defaults loads, and changes nothing but what is listed as different.
		if p.Default != "(null)" && p.Default != "(required)" && p.Differs == "" && !strings.HasPrefix(p.Key, "ssl.") {
			props[p.Key] = p.Default
		}
	}
	require.NoError(t, client.LoadProperties(props, client.ClientProperties().Bind(&loaded)))
	require.Equal(t, client.DefaultConfig().String(), loaded.String())
}

func TestPropertiesSetTheFields(t *testing.T) {
	cfg := client.DefaultConfig()
	client.Properties(map[string]string{
		"bootstrap.servers": " a:1, b:2 ,", "client.id": "me", "client.rack": "r1", "request.timeout.ms": "1500",
		"metadata.recovery.strategy": "NONE", "metadata.cluster.check.enable": "False", "connections.max.idle.ms": "9223372036854775807",
		"send.buffer.bytes": "65536", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
		"sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="it's \"so\"; canary";`,
	})(&cfg)
	require.NoError(t, cfg.Validate())
	require.Equal(t, []string{"a:1", "b:2"}, cfg.Seeds)
	require.Equal(t, 1500*time.Millisecond, cfg.RequestTimeout)
	require.False(t, cfg.Rebootstrap || cfg.CheckCluster)
	require.Greater(t, cfg.MaxIdle, 100*365*24*time.Hour)
	session, err := cfg.SASL.Start(t.Context(), sasl.Peer{})
	require.NoError(t, err)
	token, done, err := session.Next(nil)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, "\x00alice\x00it's \"so\"; canary", string(token))
	require.Contains(t, strings.Join(cfg.Lint(), "\n"), "sends the password unencrypted")
}

func TestWrongConfigurationNamesEveryKey(t *testing.T) {
	_, err := client.New(client.Properties(map[string]string{
		"bootstrap.server": "a:1", "request.timeout.ms": "soon", "metadata.recovery.strategy": "hope", "sasl.mechanism": "SCRAM-SHA-256",
		"ssl.keystore.password": "canary-secret", "security.protocol": "sasl_ssl", "retry.backoff.max.ms": "5", "qwertyuiop": "1",
	}))
	require.Error(t, err)
	for _, text := range []string{
		"bootstrap.server: is not a configuration key of this client; did you mean bootstrap.servers?",
		"bootstrap.servers: is required",
		"request.timeout.ms=soon: must be a whole number of milliseconds",
		"metadata.recovery.strategy=hope: must be rebootstrap or none",
		"sasl.mechanism=SCRAM-SHA-256: is not built yet",
		"ssl.keystore.password=[redacted]: PEM stores have no password",
		"retry.backoff.max.ms=5ms: must be at least retry.backoff.ms, which is 100ms",
		"sasl.mechanism: security.protocol is SASL_SSL but no way to log in is set",
		"qwertyuiop: is not a configuration key of this client",
	} {
		require.ErrorContains(t, err, text)
	}
	require.NotContains(t, err.Error(), "canary-secret")
	var field *client.FieldError
	require.ErrorAs(t, err, &field)
}

func TestSeedsAreChecked(t *testing.T) {
	for addr, text := range map[string]string{
		"broker": "must be host:port", "kafka://b:9092": "without a scheme; write b:9092", "b:0": "not a number from 1 to 65535",
		"b:http": "not a number", ":9092": "has no host", "::1:9092": "must be host:port",
	} {
		_, err := client.New(client.Seeds(addr))
		require.ErrorContains(t, err, text, addr)
	}
	for _, addr := range []string{"b:9092", "[::1]:9092", "10.0.0.1:1"} {
		_, err := client.New(client.Seeds(addr))
		require.NoError(t, err)
	}
}

func TestJAASIsReadAsJavaReadsIt(t *testing.T) {
	const module = "org.apache.kafka.common.security.plain.PlainLoginModule"
	for text, reason := range map[string]string{
		module + ` required username="a" password="b";`:                         "",
		module + "\n  required\n  username = a\n  password='b c' ;\n":           "",
		module + ` required username="a" password="canary"`:                     "must end with a semicolon",
		module + ` required username="a" password="canary;`:                     "a quote that is not closed",
		module + ` required username="a";`:                                      "needs username",
		module + ` username="a" password="canary";`:                             "the second word must be the control flag",
		module + ` required username "a";`:                                      "each option must be name",
		module + ` required username="a" password="b"; more required;`:          "must hold one login module only",
		`org.apache.kafka.common.security.scram.ScramLoginModule required a=b;`: "ScramLoginModule is not built yet",
		"": "must end with a semicolon",
	} {
		cfg := client.DefaultConfig()
		client.Seeds("b:9092")(&cfg)
		client.Properties(map[string]string{"sasl.jaas.config": text, "sasl.mechanism": "PLAIN", "security.protocol": "SASL_PLAINTEXT"})(&cfg)
		err := cfg.Validate()
		if reason == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, reason, text)
		require.NotContains(t, err.Error(), "canary")
	}
}

func TestSecretsNeverPrint(t *testing.T) {
	secret := sasl.NewSecret("canary")
	cfg := client.DefaultConfig()
	client.SASL(sasl.PlainUser("alice", secret))(&cfg)
	cfg.SSL.KeystoreKey = secret
	js, err := json.Marshal(map[string]any{"s": secret, "ssl": cfg.SSL})
	require.NoError(t, err)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("config", "secret", secret, "config", cfg.String(), "ssl", cfg.SSL)
	for _, text := range []string{string(js), log.String(), fmt.Sprintf("%v %+v %#v %s %q %x %d", secret, secret, secret, secret, secret, secret, secret),
		fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), fmt.Sprintf("%+v %#v", cfg.SSL, cfg.SSL), fmt.Sprintf("%+v", sasl.Credentials{Username: "a", Password: secret})} {
		require.NotContains(t, text, "canary")
		require.NotContains(t, text, "63616e617279") // the same in hexadecimal
	}
	require.Equal(t, "canary", secret.Reveal())
}
