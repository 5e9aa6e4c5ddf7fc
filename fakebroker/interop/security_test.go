package interop

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/client/sasl"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// onSecureListeners runs a test against each way of coming to both brokers.
func onSecureListeners(t *testing.T, test func(t *testing.T, broker, protocol, addr string)) {
	user := saslUser + ":" + saslPassword
	ottla := listeners{
		"SSL":            startOttla(t, "--tls", certDir).addr,
		"SASL_PLAINTEXT": startOttla(t, "--sasl", user).addr,
		"SASL_SSL":       startOttla(t, "--tls", certDir, "--sasl", user).addr,
	}
	for _, protocol := range []string{"SSL", "SASL_PLAINTEXT", "SASL_SSL"} {
		t.Run("ottla/"+protocol, func(t *testing.T) { test(t, "ottla", protocol, ottla[protocol]) })
		t.Run("kafka/"+protocol, func(t *testing.T) { test(t, "kafka", protocol, kafkaListeners[protocol]) })
	}
}

// ourSecurity are the options of our client for a protocol.
func ourSecurity(t testing.TB, protocol, password string) (opts []client.Option) {
	if strings.HasSuffix(protocol, "SSL") {
		pem, err := os.ReadFile(filepath.Join(certDir, "ca.pem"))
		require.NoError(t, err)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(pem))
		opts = append(opts, client.TLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}))
	}
	if strings.HasPrefix(protocol, "SASL") {
		opts = append(opts, client.SASL(sasl.PlainUser(saslUser, sasl.NewSecret(password))))
	}
	return opts
}

func TestOurClientComesInByTLSAndSASL(t *testing.T) {
	t.Parallel()
	onSecureListeners(t, func(t *testing.T, broker, protocol, addr string) {
		topic := "secure-" + strings.ToLower(protocol)
		cl := newClient(t, addr, ourSecurity(t, protocol, saslPassword)...)
		createTopic(t, cl, admin.NewTopic{Name: topic, Partitions: 1, Replicas: 1})
		p, err := producer.New(cl)
		require.NoError(t, err)
		for i := range 100 {
			_, err = p.Send(t.Context(), producer.Record{Topic: topic, Value: fmt.Append(nil, i)})
			require.NoError(t, err)
		}
		require.NoError(t, p.Close(t.Context()))
		for i, r := range readAll(t, cl, topic, 1) {
			require.Equal(t, fmt.Sprint(i), string(r.Value))
		}
	})
}

func TestOurClientSaysWhyItIsNotLetIn(t *testing.T) {
	t.Parallel()
	onSecureListeners(t, func(t *testing.T, broker, protocol, addr string) {
		var dialled atomic.Int32
		dial := client.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		})
		list := func(opts ...client.Option) error { // a port that hangs up is tried until the time is over
			_, err := admin.New(newClient(t, addr, append(opts, dial, client.APITimeout(10*time.Second))...)).ListTopics(t.Context())
			return err
		}
		if strings.HasPrefix(protocol, "SASL") {
			err := list(ourSecurity(t, protocol, "wrong")...)
			require.ErrorIs(t, err, errcode.SaslAuthenticationFailed)
			require.EqualValues(t, 1, dialled.Load(), "no use in trying again")
		}
		if strings.HasSuffix(protocol, "SSL") {
			err := list(client.TLS(&tls.Config{MinVersion: tls.VersionTLS12})) // does not know the authority
			require.ErrorIs(t, err, client.ErrTLS)
			var unknown x509.UnknownAuthorityError
			require.ErrorAs(t, err, &unknown)
		}
		err := list() // plain
		require.ErrorContains(t, err, "; hint: ")
		require.ErrorContains(t, err, "security.protocol=")
	})
}

// TestOthersComeInByTLSAndSASL lets kcat and Java's tools do the same.
func TestOthersComeInByTLSAndSASL(t *testing.T) {
	t.Parallel()
	commands := startTools(t)
	topics := func(t *testing.T, args ...string) {
		t.Helper()
		r, err := commands.run(topicCommand, args...)
		require.NoError(t, err)
		require.Zero(t, r.code, "%v\n%s%s", args, r.stdout, r.stderr)
	}
	onSecureListeners(t, func(t *testing.T, broker, protocol, addr string) {
		topic := "others-" + strings.ToLower(protocol)
		conf := filepath.Join(t.TempDir(), "client.properties")
		require.NoError(t, os.WriteFile(conf, []byte(strings.Join([]string{
			"security.protocol=" + protocol, "ssl.truststore.type=PEM", "ssl.truststore.location=" + filepath.Join(certDir, "ca.pem"), "sasl.mechanism=PLAIN",
			fmt.Sprintf(`sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="%s" password="%s";`, saslUser, saslPassword), "",
		}, "\n")), 0o600))
		topics(t, "--bootstrap-server", addr, "--command-config", conf, "--create", "--topic", topic)
		r := run(t, exec.Command("kcat", "-m", "60", "-b", addr, "-P", "-t", topic, "-X", "security.protocol="+protocol, "-X", "ssl.ca.location="+filepath.Join(certDir, "ca.pem"),
			"-X", "sasl.mechanism=PLAIN", "-X", "sasl.username="+saslUser, "-X", "sasl.password="+saslPassword), "one\ntwo\n")
		require.Zero(t, r.code, r.stderr)
		read := java(t, "", consoleReader, "--bootstrap-server", addr, "--command-config", conf, "--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "2")
		require.Equal(t, "one\ntwo\n", read)
		topics(t, "--bootstrap-server", addr, "--command-config", conf, "--delete", "--topic", topic)
	})
}
