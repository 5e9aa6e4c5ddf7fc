package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// hintOf is the hint an error carries along, or one that needs nothing but the error.
func hintOf(err error) string {
	var d *dialError
	if errors.As(err, &d) && d.hint != "" {
		return d.hint
	}
	var op *OpError
	if errors.As(err, &op) && op.Hint != "" {
		return op.Hint
	}
	var f *machine.FrameError
	if errors.As(err, &f) {
		return strangerHint(f)
	}
	return ""
}

func strangerHint(f *machine.FrameError) string {
	switch f.Stranger {
	case machine.TLSAlert, machine.TLSHandshake:
		return "this port speaks TLS: use client.TLS (security.protocol=SSL or SASL_SSL), or the broker's plaintext port"
	case machine.HTTP:
		return "this port speaks HTTP, not Kafka: check host and port (a REST proxy, a schema registry or a metrics port?)"
	case machine.SSH:
		return "this port speaks SSH, not Kafka: check host and port"
	}
	if f.Length >= 4 {
		return "either this port does not speak Kafka, or the answer is really that large: then raise Config.MaxResponseBytes"
	}
	return "this port does not speak Kafka: check host and port"
}

// dialHint explains a failed attempt to connect. It may open one more connection to find out whether the port
// speaks TLS.
func (c *Client) dialHint(ctx context.Context, e *dialError, broker int32) string {
	if hint := hintOf(e.err); hint != "" {
		return hint
	}
	var dns *net.DNSError
	var login *machine.LoginError
	switch {
	case errors.As(e.err, &dns):
		return "the name does not resolve here" + advertised(broker)
	case errors.Is(e.err, syscall.ECONNREFUSED):
		return "nothing listens on that port: is the broker running, and is the port right?" + advertised(broker)
	case errors.Is(e.err, syscall.EHOSTUNREACH), errors.Is(e.err, syscall.ENETUNREACH):
		return "there is no route to that host from here" + advertised(broker)
	case errors.As(e.err, &login):
		return c.loginHint(login)
	case e.stage == "TLS handshake", errors.Is(e.err, ErrTLS):
		return tlsHint(e.err)
	case e.stage == "handshake" && hangUp(e.err) && !c.cfg.Security.UsesTLS():
		if c.speaksTLS(ctx, e.addr, broker < 0) {
			return "this port speaks TLS: use client.TLS (security.protocol=SSL or SASL_SSL), or the broker's plaintext port"
		}
		return "the broker hung up at the first request: this port may not speak Kafka, or the broker is older than 0.10, shutting down or at its connection limit"
	case errors.Is(e.err, ErrTimeout), errors.Is(e.err, os.ErrDeadlineExceeded):
		return timeoutHint(e.stage) + advertised(broker)
	case errors.Is(e.err, errcode.RebootstrapRequired):
		return "the broker at that address is not the one metadata named; the client starts over from its seeds"
	}
	return ""
}

// advertised is added where an address came from metadata: the usual reason is the broker's configuration.
func advertised(broker int32) string {
	if broker < 0 {
		return ""
	}
	return fmt.Sprintf("; the address is the one broker %d advertises (advertised.listeners in its configuration), it has to be reachable from here", broker)
}

func timeoutHint(stage string) string {
	switch stage {
	case "connect":
		return "the host does not answer: a firewall, a wrong address, or a machine that is down"
	case "TLS handshake":
		return "the port took the connection but does not answer TLS: a plaintext Kafka port does that; use security.protocol=PLAINTEXT or SASL_PLAINTEXT, or the broker's TLS port"
	}
	return "the port took the connection but does not answer as Kafka does: a stopped broker, a proxy without a broker, or another protocol"
}

func (c *Client) loginHint(e *machine.LoginError) string {
	switch e.Code {
	case errcode.UnsupportedSaslMechanism:
		return fmt.Sprintf("set sasl.mechanism to one of %s", strings.Join(e.Offered, ", "))
	case errcode.SaslAuthenticationFailed:
		return "the broker does not accept this user name and password (sasl.jaas.config)"
	case errcode.IllegalSaslState:
		return "this listener does not want a SASL login: use security.protocol=PLAINTEXT or SSL"
	}
	return ""
}

func tlsHint(err error) string {
	var record tls.RecordHeaderError
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &record), hangUp(err):
		if strings.Contains(err.Error(), "remote error") {
			break
		}
		return "this port does not answer TLS: it is probably a plaintext port (security.protocol=PLAINTEXT or SASL_PLAINTEXT), or the broker wants a client certificate (ssl.keystore.*)"
	case errors.As(err, &host):
		return "the broker's certificate is for other names; connect by one of them, or set tls.Config.ServerName"
	case errors.As(err, &authority):
		return "the broker's certificate is not signed by an authority trusted here: give its CA as ssl.truststore.location or tls.Config.RootCAs"
	case errors.As(err, &invalid):
		return "the broker's certificate is not valid now or not for servers"
	}
	if text := err.Error(); strings.Contains(text, "certificate required") || strings.Contains(text, "bad certificate") {
		return "the broker wants a client certificate it trusts: set ssl.keystore.* or tls.Config.Certificates"
	}
	return ""
}

// speaksTLS tries a TLS handshake on a new connection, without checking anything: only whether it is TLS.
func (c *Client) speaksTLS(ctx context.Context, addr string, seed bool) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	nc, _, err := c.openPlain(ctx, addr, seed)
	if err != nil {
		return false
	}
	defer nc.Close()
	probe := tls.Client(nc, &tls.Config{InsecureSkipVerify: true}) // nothing is sent or believed on it
	err = probe.HandshakeContext(ctx)
	var alert tls.AlertError
	return err == nil || errors.As(err, &alert) || strings.Contains(err.Error(), "remote error: tls")
}
