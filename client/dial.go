package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/client/sasl"
)

// dialError is an attempt to connect that failed: at which stage, where, why, and what that means.
type dialError struct {
	stage string // "connect", "TLS handshake", "handshake", "login"
	addr  string
	hint  string
	err   error
}

func (e *dialError) Error() string { return fmt.Sprintf("%s to %s: %v", e.stage, e.addr, e.err) }
func (e *dialError) Unwrap() error { return e.err }

// SoftwareName and SoftwareVersion are how every client of this module introduces itself to brokers, which count
// their connections by them (KIP-511).
const (
	SoftwareName    = "ottla-go"
	SoftwareVersion = "0.1.0"
)

// addrOf is where a broker, or a seed, is at present.
func (c *Client) addrOf(broker int32) (string, error) {
	if broker < 0 {
		if i := int(-1 - broker); i < len(c.cfg.Seeds) {
			return c.cfg.Seeds[i], nil
		}
		return "", fmt.Errorf("%w: no such seed", ErrUnknownBroker)
	}
	n, ok := c.Topology().Brokers[broker]
	if !ok {
		return "", fmt.Errorf("%w: %d", ErrUnknownBroker, broker)
	}
	return n.Addr(), nil
}

// BrokerName is a broker as errors name it: "broker 1 (10.0.0.7:9092)", without the address when metadata does not have
// it. Negative ids stand for seeds, by their place in Config.Seeds: -1 is "seed " and the address of the first.
func (c *Client) BrokerName(id int32) string {
	addr, err := c.addrOf(id)
	switch {
	case err != nil:
		return fmt.Sprintf("broker %d", id)
	case id < 0:
		return "seed " + addr
	}
	return fmt.Sprintf("broker %d (%s)", id, addr)
}

// dial opens a connection and brings it up, within ctx. It runs in a goroutine of its own.
func (l *link) dial(ctx context.Context) (*conn, error) {
	id := l.id()
	addr, err := l.c.addrOf(id)
	if err != nil {
		return nil, err
	}
	nc, stage, err := l.c.open(ctx, addr, id < 0)
	if err != nil {
		return nil, l.c.explain(ctx, stage, addr, id, err)
	}
	c := &conn{l: l, nc: nc, addr: addr, br: bufio.NewReaderSize(nc, readBuffer)}
	_, c.vectored = nc.(*net.TCPConn)
	stage, err = c.bringUp(ctx, id)
	if err != nil {
		nc.Close()
		return nil, l.c.explain(ctx, stage, addr, id, err)
	}
	nc.SetDeadline(time.Time{})
	return c, nil
}

// explain adds the stage, the address and a hint. The end of the limit shows as what it is.
func (c *Client) explain(ctx context.Context, stage, addr string, broker int32, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, context.Canceled) {
			return ErrClosed
		}
		err = cause
	}
	var alert *net.OpError
	if c.cfg.Security.UsesTLS() && !errors.Is(err, ErrTLS) && errors.As(err, &alert) && alert.Op == "remote error" {
		err = fmt.Errorf("%w: %w", ErrTLS, err) // in TLS 1.3 a client certificate is refused after the handshake
	}
	e := &dialError{stage: stage, addr: addr, err: err}
	e.hint = c.dialHint(ctx, e, broker)
	return e
}

// open connects and encrypts.
func (c *Client) open(ctx context.Context, addr string, seed bool) (nc net.Conn, stage string, err error) {
	if nc, addr, err = c.openPlain(ctx, addr, seed); err != nil {
		return nil, "connect", err
	}
	if !c.cfg.Security.UsesTLS() {
		return nc, "", nil
	}
	host, _, _ := net.SplitHostPort(addr)
	conf := c.tls.Clone()
	if conf.ServerName == "" {
		conf.ServerName = host
	}
	secure := tls.Client(nc, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		if !hangUp(err) && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", ErrTLS, err)
		}
		return nil, "TLS handshake", err
	}
	return secure, "", nil
}

// openPlain connects, and says to which name in the end.
func (c *Client) openPlain(ctx context.Context, addr string, seed bool) (net.Conn, string, error) {
	dial := c.cfg.Dialer
	if dial == nil {
		dial = (&net.Dialer{}).DialContext // tries every address of a name in turn
	}
	names := []string{addr}
	if seed && c.cfg.DNSLookup == ResolveCanonical {
		if canonical, err := canonicalNames(ctx, addr); err == nil && len(canonical) > 0 {
			names = canonical
		}
	}
	var errs []error
	for _, name := range names {
		nc, err := dial(ctx, "tcp", name)
		if err == nil {
			c.setBuffers(nc)
			return nc, name, nil
		}
		errs = append(errs, err)
	}
	return nil, addr, errors.Join(errs...)
}

// setBuffers is done on a best effort: a system may cap sizes, a test's connection has none.
func (c *Client) setBuffers(nc net.Conn) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	if c.cfg.SendBuffer > 0 {
		tcp.SetWriteBuffer(c.cfg.SendBuffer)
	}
	if c.cfg.ReceiveBuffer > 0 {
		tcp.SetReadBuffer(c.cfg.ReceiveBuffer)
	}
}

// canonicalNames resolves a seed to addresses and those back to names, as Kerberos principals need them.
func canonicalNames(ctx context.Context, addr string) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, ip := range ips {
		name := ip
		if names, err := net.DefaultResolver.LookupAddr(ctx, ip); err == nil && len(names) > 0 {
			name = names[0]
			if n := len(name); name[n-1] == '.' {
				name = name[:n-1]
			}
		}
		out = append(out, net.JoinHostPort(name, port))
	}
	return out, nil
}

// bringUp negotiates versions and logs in: it carries out what machine.Handshake says.
func (c *conn) bringUp(ctx context.Context, broker int32) (stage string, err error) {
	cl := c.l.c
	if d, ok := ctx.Deadline(); ok {
		c.nc.SetDeadline(d)
	}
	stop := context.AfterFunc(ctx, func() { c.nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	hello := machine.Hello{ClientID: cl.cfg.ClientID, SoftwareName: SoftwareName, SoftwareVersion: SoftwareVersion, NodeID: broker}
	if cl.cfg.CheckCluster && broker >= 0 {
		hello.ClusterID = cl.Topology().ClusterID
	}
	if cl.cfg.Security.UsesSASL() {
		hello.Mechanism = cl.cfg.SASL.Name()
	}
	h := machine.NewHandshake(hello)
	var session sasl.Session
	stage = "handshake"
	effects := h.Start()
	for effects.Err == nil && !effects.Up {
		switch {
		case effects.Send != nil:
			frame, err := c.exchange(effects.Send)
			if err != nil {
				return stage, err
			}
			effects = h.Received(frame)
		case effects.NeedToken:
			stage = "login"
			var token []byte
			var last bool
			if token, last, err = c.token(ctx, &session, broker, effects.Challenge); err != nil {
				return stage, err
			}
			effects = h.Token(token, last)
		}
	}
	if effects.Err != nil {
		return stage, handshakeError(effects.Err)
	}
	if v, ok := session.(sasl.Verifier); ok {
		if err := v.Verify(effects.Challenge); err != nil {
			return stage, fmt.Errorf("%w: the broker's proof is wrong: %w", ErrAuth, err)
		}
	}
	c.versions, c.nextCorr = h.Versions(), h.NextCorrelation()
	cl.learnFeatures(h.Features())
	if life := h.SessionLifetime(); life > 0 {
		c.expires = time.Now().Add(cl.shortened(life))
	}
	return "", nil
}

func handshakeError(err error) error {
	var login *machine.LoginError
	var corr *machine.CorrelationError
	var version *machine.VersionError
	switch {
	case errors.As(err, &login):
		return fmt.Errorf("%w: %w", ErrAuth, err)
	case errors.As(err, &version):
		return fmt.Errorf("%w: %w", ErrUnsupportedVersion, err)
	case errors.As(err, &corr):
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return err
}

func (c *conn) token(ctx context.Context, session *sasl.Session, broker int32, challenge []byte) (token []byte, last bool, err error) {
	if *session == nil {
		host, _, _ := net.SplitHostPort(c.addr)
		if *session, err = c.l.c.cfg.SASL.Start(ctx, sasl.Peer{Host: host, Broker: broker}); err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrAuth, err)
		}
	}
	if token, last, err = (*session).Next(challenge); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrAuth, err)
	}
	return token, last, nil
}

// exchange writes a frame and reads one, while nobody else uses the connection.
func (c *conn) exchange(frame []byte) ([]byte, error) {
	c.l.c.meter.bytesOut.Add(int64(len(frame)))
	if _, err := c.nc.Write(frame); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c.br, head[:]); err != nil {
		return nil, err
	}
	n, err := machine.FrameLength(head[:], c.l.c.cfg.MaxResponseBytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	c.l.c.meter.bytesIn.Add(int64(4 + n))
	return c.readFrame(n)
}
