package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/client/sasl"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// listen serves each connection of a loopback port by handle, until the test ends.
func listen(t *testing.T, handle func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { nc.Close() })
			go handle(nc)
		}
	}()
	return l.Addr().String()
}

// certificate makes a self-signed certificate for a name, as TLS wants it and as PEM.
func certificate(t *testing.T, host string) (cert tls.Certificate, certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	cert, err = tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	return cert, certPEM, keyPEM
}

// failure is the error of the first request to addr, which gives up at the second attempt: then what the first one said
// is known to whoever waits.
func failure(t *testing.T, addr string, opts ...client.Option) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := client.New(append([]client.Option{client.Seeds(addr), client.WithObserver(&giveUp{cancel: cancel})}, opts...)...)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.AwaitTopics(ctx, "orders")
	require.Error(t, err)
	return err
}

// giveUp cancels at the second failure. The next attempt follows a metadata request of the next round, and that the end
// of the round before.
type giveUp struct {
	client.NopObserver
	cancel func()
	failed atomic.Int32
}

func (g *giveUp) Connected(e client.ConnectEvent)       { g.count(e.Err) }
func (g *giveUp) Disconnected(e client.DisconnectEvent) { g.count(e.Err) }

func (g *giveUp) count(err error) {
	if err != nil && g.failed.Add(1) == 2 {
		g.cancel()
	}
}

func TestPlaintextClientAtTLSPortSaysSo(t *testing.T) {
	cert, _, _ := certificate(t, "127.0.0.1")
	conf := &tls.Config{Certificates: []tls.Certificate{cert}}
	t.Run("the port hangs up", func(t *testing.T) { // as Go does; the client probes
		addr := listen(t, func(nc net.Conn) {
			if tls.Server(nc, conf).Handshake() != nil {
				nc.Close()
			}
		})
		require.ErrorContains(t, failure(t, addr), "this port speaks TLS")
	})
	t.Run("the port sends an alert", func(t *testing.T) { // as Java does: read as length 352518912
		addr := listen(t, func(nc net.Conn) { nc.Write([]byte{0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x50}) })
		err := failure(t, addr)
		require.ErrorContains(t, err, "352518912")
		require.ErrorContains(t, err, "this port speaks TLS")
		require.ErrorIs(t, err, client.ErrProtocol)
		require.False(t, client.Retriable(err))
	})
}

func TestHTTPPortSaysSo(t *testing.T) {
	addr := listen(t, func(nc net.Conn) { nc.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	err := failure(t, addr)
	require.ErrorContains(t, err, "1213486160")
	require.ErrorContains(t, err, "this port speaks HTTP, not Kafka")
}

func TestSSHPortSaysSo(t *testing.T) {
	addr := listen(t, func(nc net.Conn) { nc.Write([]byte("SSH-2.0-OpenSSH_9\r\n")) })
	require.ErrorContains(t, failure(t, addr), "this port speaks SSH, not Kafka")
}

func TestRefusedPortSaysSo(t *testing.T) {
	held, err := net.Dial("tcp", listen(t, func(nc net.Conn) { io.Copy(io.Discard, nc) }))
	require.NoError(t, err)
	defer held.Close()
	addr := held.LocalAddr().String() // nobody listens there, and nobody else can while the connection has it
	err = failure(t, addr)
	require.ErrorContains(t, err, "nothing listens on that port")
	require.ErrorContains(t, err, addr)
}

func TestPortThatIsNoKafkaSaysSo(t *testing.T) {
	addr := listen(t, func(nc net.Conn) { nc.Close() })
	require.ErrorContains(t, failure(t, addr), "may not speak Kafka")
}

func TestUnknownNameFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}}
		}
		err := failure(t, "nowhere:9092", client.Dialer(dial))
		require.ErrorContains(t, err, "the name does not resolve here")
		require.Zero(t, time.Since(began), "bootstrap.resolve.timeout.ms is 0: waiting is no use")
	})
}

func TestTLSClientAtPlaintextPortSaysSo(t *testing.T) {
	peer := wiretest.NewCluster(1, nil)
	t.Cleanup(peer.Close)
	err := failure(t, "broker-1:9092", client.Cluster(peer), client.TLS(nil))
	require.ErrorContains(t, err, "does not answer TLS")
	require.ErrorContains(t, err, "plaintext")
}

// tlsPeer is a peer behind a TLS port.
func tlsPeer(t *testing.T, conf *tls.Config, script wiretest.Script) (addr string, peer *wiretest.Peer) {
	peer = wiretest.NewCluster(1, script)
	addr = listen(t, func(nc net.Conn) {
		server := tls.Server(nc, conf)
		if server.Handshake() != nil {
			nc.Close()
			return
		}
		peer.Serve(1, server)
	})
	peer.Move(1, addr)
	t.Cleanup(peer.Close)
	return addr, peer
}

func TestTLSChecksTheBroker(t *testing.T) {
	cert, ca, _ := certificate(t, "127.0.0.1")
	other, otherCA, _ := certificate(t, "kafka.example.com")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	roots.AppendCertsFromPEM(otherCA)
	good, _ := tlsPeer(t, &tls.Config{Certificates: []tls.Certificate{cert}}, nil)
	misnamed, _ := tlsPeer(t, &tls.Config{Certificates: []tls.Certificate{other}}, nil)

	c, err := client.New(client.Seeds(good), client.TLS(&tls.Config{RootCAs: roots}))
	require.NoError(t, err)
	defer c.Close(t.Context())
	_, err = c.AwaitTopics(t.Context())
	require.NoError(t, err)

	err = failure(t, good, client.TLS(nil))
	require.ErrorIs(t, err, client.ErrTLS)
	require.ErrorContains(t, err, "ssl.truststore.location")
	err = failure(t, misnamed, client.TLS(&tls.Config{RootCAs: roots}))
	require.ErrorContains(t, err, "certificate is for other names")
	require.False(t, client.Retriable(err))
}

func TestTLSFromProperties(t *testing.T) {
	cert, ca, key := certificate(t, "other.example.com")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	addr, _ := tlsPeer(t, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}, nil)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ca.pem"), ca, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "me.pem"), append(append([]byte(nil), key...), ca...), 0o600))
	props := map[string]string{
		"bootstrap.servers": addr, "security.protocol": "ssl",
		"ssl.truststore.type": "PEM", "ssl.truststore.location": filepath.Join(dir, "ca.pem"),
		"ssl.keystore.type": "PEM", "ssl.keystore.location": filepath.Join(dir, "me.pem"),
		"ssl.endpoint.identification.algorithm": "", "ssl.enabled.protocols": "TLSv1.3",
	}
	c, err := client.New(client.Properties(props))
	require.NoError(t, err)
	defer c.Close(t.Context())
	_, err = c.AwaitTopics(t.Context())
	require.NoError(t, err)

	props["ssl.keystore.type"] = "JKS"
	_, err = client.New(client.Properties(props))
	require.ErrorContains(t, err, "ssl.keystore.location")
	require.ErrorContains(t, err, "keytool")
	delete(props, "ssl.keystore.location")
	delete(props, "ssl.keystore.type")
	cfg := client.DefaultConfig()
	client.Properties(props)(&cfg)
	require.NotEmpty(t, cfg.Lint())
	err = failure(t, addr, client.Properties(props))
	require.ErrorContains(t, err, "client certificate")
}

// login answers SASL/PLAIN for one user.
func login(r *wiretest.Request) message.Response {
	switch req := r.Body.(type) {
	case *message.SaslHandshakeRequest:
		resp := &message.SaslHandshakeResponse{Mechanisms: []string{"PLAIN", "SCRAM-SHA-256"}}
		if req.Mechanism != "PLAIN" {
			resp.ErrorCode = int16(errcode.UnsupportedSaslMechanism)
		}
		return resp
	case *message.SaslAuthenticateRequest:
		resp := &message.SaslAuthenticateResponse{SessionLifetimeMs: 3_600_000}
		if string(req.AuthBytes) != "\x00alice\x00wonder" {
			text := "Authentication failed: Invalid username or password"
			resp.ErrorCode, resp.ErrorMessage = int16(errcode.SaslAuthenticationFailed), &text
		}
		return resp
	}
	return nil
}

func TestSASLPlain(t *testing.T) {
	peer, c := start(t, 1, login, client.SASL(sasl.PlainUser("alice", sasl.NewSecret("wonder"))))
	_, err := c.AwaitTopics(t.Context())
	require.NoError(t, err)
	require.Equal(t, []wire.Key{wire.KeyApiVersions, wire.KeySaslHandshake, wire.KeySaslAuthenticate, wire.KeyMetadata}, keysOf(peer.Requests()))
}

func keysOf(requests []wiretest.Request) (keys []wire.Key) {
	for _, r := range requests {
		keys = append(keys, r.Key)
	}
	return keys
}

func TestSASLFailuresSayWhatToDo(t *testing.T) {
	peer := wiretest.NewCluster(1, login)
	t.Cleanup(peer.Close)
	err := failure(t, "", client.Cluster(peer), client.SASL(sasl.PlainUser("alice", sasl.NewSecret("canary-password"))))
	require.ErrorIs(t, err, client.ErrAuth)
	require.ErrorIs(t, err, errcode.SaslAuthenticationFailed)
	require.ErrorContains(t, err, "Invalid username or password")
	require.ErrorContains(t, err, "sasl.jaas.config")
	require.NotContains(t, err.Error(), "canary-password")
	require.False(t, client.Retriable(err))

	err = failure(t, "", client.Cluster(peer), client.SASL(named{sasl.PlainUser("alice", sasl.NewSecret("x")), "SCRAM-SHA-512"}))
	require.ErrorContains(t, err, "set sasl.mechanism to one of PLAIN, SCRAM-SHA-256")

	plain := wiretest.NewCluster(1, func(r *wiretest.Request) message.Response {
		if r.Key == wire.KeySaslHandshake {
			return &message.SaslHandshakeResponse{ErrorCode: int16(errcode.IllegalSaslState)}
		}
		return nil
	})
	t.Cleanup(plain.Close)
	err = failure(t, "", client.Cluster(plain), client.SASL(sasl.PlainUser("alice", sasl.NewSecret("x"))))
	require.ErrorContains(t, err, "does not want a SASL login")

	closing := wiretest.NewCluster(1, func(r *wiretest.Request) message.Response {
		if r.Key != wire.KeyApiVersions {
			return wiretest.HangUp
		}
		return nil
	})
	t.Cleanup(closing.Close)
	err = failure(t, "", client.Cluster(closing))
	require.ErrorContains(t, err, "wants a SASL login")
}

// named gives a mechanism another name.
type named struct {
	sasl.Mechanism
	name string
}

func (n named) Name() string { return n.name }

func TestAdvertisedAddressThatCannotBeReachedIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var peer *wiretest.Peer
		peer, c := start(t, 1, func(r *wiretest.Request) message.Response {
			req, ok := r.Body.(*message.MetadataRequest)
			if !ok {
				return nil
			}
			resp := peer.Metadata(req)
			resp.Brokers[0].Host = "internal-name"
			return resp
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Request(ctx, client.Broker(1), clusterRequest())
		require.ErrorContains(t, err, "advertised.listeners")
		require.ErrorContains(t, err, "internal-name:9092")
		require.Equal(t, 1, strings.Count(err.Error(), "hint:"), err.Error())
	})
}
