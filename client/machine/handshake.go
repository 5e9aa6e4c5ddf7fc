package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Hello is what a handshake tells the broker.
type Hello struct {
	ClientID        string
	SoftwareName    string // [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?, else the broker refuses
	SoftwareVersion string
	// ClusterID and NodeID are whom the client believes to talk to (KIP-1242, ApiVersions version 5): a broker
	// that is someone else answers REBOOTSTRAP_REQUIRED. Empty and negative when not known yet.
	ClusterID string
	NodeID    int32
	// Mechanism is the SASL mechanism to log in with; empty for none.
	Mechanism string
}

// handshakeState and what ends it:
//
//	askVersions   ApiVersions answered            -> askMechanism, or up without SASL
//	              UNSUPPORTED_VERSION (35)        -> askVersions again, in a version the broker names, else 0
//	askMechanism  SaslHandshake answered          -> exchange
//	exchange      SaslAuthenticate answered       -> exchange, or up when the client's side had said done
type handshakeState uint8

const (
	askVersions handshakeState = iota
	askMechanism
	exchange
	up
	failed
)

// Handshake brings a fresh connection up: it finds out the versions, then logs in. The driver writes Send, reads
// one frame, hands it to Received, and so on; when an effect asks for a token it calls the mechanism and Token.
type Handshake struct {
	hello    Hello
	state    handshakeState
	version  int16 // of the request under way
	retried  bool
	corr     int32
	versions *Versions
	features *Features
	last     bool // the token under way is the client's last
	throttle time.Duration
	lifetime time.Duration
}

// HandshakeEffects are carried out in the order of the fields; at most one of them is set.
type HandshakeEffects struct {
	// Err ends the connection.
	Err error
	// Send is a whole frame to write; then a frame is to be read.
	Send []byte
	// NeedToken asks for the next SASL token, answering Challenge (nil the first time).
	NeedToken bool
	Challenge []byte
	// Up means that the connection may be used. Challenge is then the broker's last token, to be verified by
	// mechanisms that do.
	Up bool
}

// NewHandshake makes the machine; Start begins.
func NewHandshake(hello Hello) *Handshake { return &Handshake{hello: hello} }

// Start asks for the versions.
func (h *Handshake) Start() HandshakeEffects {
	h.version = wire.LatestStable(wire.KeyApiVersions)
	return h.askVersions()
}

// Versions are the broker's; nil before they are known.
func (h *Handshake) Versions() *Versions { return h.versions }

// Features are those of the cluster, as the broker knows them; nil before they are known.
func (h *Handshake) Features() *Features { return h.features }

// NextCorrelation is the first correlation id the handshake has not used.
func (h *Handshake) NextCorrelation() int32 { return h.corr }

// SessionLifetime is after what time the broker wants a new login (KIP-368); zero for never.
func (h *Handshake) SessionLifetime() time.Duration { return h.lifetime }

// Throttle is how long the broker asked to wait before the first request.
func (h *Handshake) Throttle() time.Duration { return h.throttle }

func (h *Handshake) fail(format string, args ...any) HandshakeEffects {
	h.state = failed
	return HandshakeEffects{Err: fmt.Errorf(format, args...)}
}

func (h *Handshake) send(k wire.Key, version int16, body message.Message) HandshakeEffects {
	h.version = version
	frame := make([]byte, 4, 128)
	id := h.hello.ClientID
	frame = wire.AppendRequestHeader(frame, k, version, h.corr, &id)
	h.corr++
	frame, err := body.AppendTo(frame, version)
	if err != nil {
		return h.fail("encode %v version %d: %w", k, version, err)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return HandshakeEffects{Send: frame}
}

func (h *Handshake) askVersions() HandshakeEffects {
	req := message.NewApiVersionsRequest()
	if h.version >= 3 {
		req.ClientSoftwareName, req.ClientSoftwareVersion = h.hello.SoftwareName, h.hello.SoftwareVersion
	}
	if h.version >= 5 && h.hello.ClusterID != "" && h.hello.NodeID >= 0 {
		req.ClusterId, req.NodeId = &h.hello.ClusterID, h.hello.NodeID
	}
	return h.send(wire.KeyApiVersions, h.version, req)
}

// Received takes the frame that answers the last Send, without its four length bytes.
func (h *Handshake) Received(frame []byte) HandshakeEffects {
	if len(frame) < 4 {
		return h.fail("answer of %d bytes during the handshake, the least possible is 4", len(frame))
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != h.corr-1 {
		return HandshakeEffects{Err: &CorrelationError{Want: h.corr - 1, Got: got, Key: h.key()}}
	}
	switch h.state {
	case askVersions:
		return h.versionsAnswered(frame[4:])
	case askMechanism:
		return h.mechanismAnswered(frame)
	case exchange:
		return h.tokenAnswered(frame)
	}
	return h.fail("an answer came when the handshake had ended")
}

func (h *Handshake) key() wire.Key {
	return [...]wire.Key{wire.KeyApiVersions, wire.KeySaslHandshake, wire.KeySaslAuthenticate, 0, 0}[h.state]
}

func (h *Handshake) versionsAnswered(body []byte) HandshakeEffects {
	version := h.version
	unsupported := len(body) >= 2 && errcode.Code(binary.BigEndian.Uint16(body)) == errcode.UnsupportedVersion
	if unsupported {
		version = 0 // a broker that does not know the version answers in version 0 (KIP-511)
	}
	var resp message.ApiVersionsResponse
	if err := resp.ReadFrom(wire.NewReader(body), version); err != nil {
		return h.fail("ApiVersions answer in version %d: %w", version, err)
	}
	if unsupported {
		return h.fallBack(&resp)
	}
	if code := errcode.Code(resp.ErrorCode); code != errcode.None {
		return h.fail("ApiVersions: %w", code)
	}
	h.versions, h.features = NewVersions(resp.ApiKeys), NewFeatures(&resp)
	h.throttle = time.Duration(resp.ThrottleTimeMs) * time.Millisecond
	if h.hello.Mechanism == "" {
		h.state = up
		return HandshakeEffects{Up: true}
	}
	v, err := h.versions.Pick(wire.KeySaslHandshake, 1, 0)
	if err != nil {
		return h.fail("the broker offers no SASL login on this listener: %w", err)
	}
	h.state = askMechanism
	req := message.NewSaslHandshakeRequest()
	req.Mechanism = h.hello.Mechanism
	return h.send(wire.KeySaslHandshake, v, req)
}

// fallBack asks again in the latest version that the broker names; brokers before 2.4 name none and get 0.
func (h *Handshake) fallBack(resp *message.ApiVersionsResponse) HandshakeEffects {
	if h.retried {
		return h.fail("ApiVersions in version %d: %w", h.version, errcode.UnsupportedVersion)
	}
	h.retried = true
	next := int16(0)
	for _, k := range resp.ApiKeys {
		if wire.Key(k.ApiKey) == wire.KeyApiVersions && k.MaxVersion < h.version {
			next = max(k.MaxVersion, 0)
		}
	}
	h.version = next
	return h.askVersions()
}

func (h *Handshake) mechanismAnswered(frame []byte) HandshakeEffects {
	var resp message.SaslHandshakeResponse
	if err := readAnswer(&resp, frame, h.version); err != nil {
		return h.fail("SaslHandshake answer: %w", err)
	}
	if code := errcode.Code(resp.ErrorCode); code != errcode.None {
		h.state = failed
		return HandshakeEffects{Err: &LoginError{Mechanism: h.hello.Mechanism, Code: code, Offered: resp.Mechanisms}}
	}
	h.state = exchange
	return HandshakeEffects{NeedToken: true}
}

// Token sends the client's next token; last means that no further one will follow.
func (h *Handshake) Token(token []byte, last bool) HandshakeEffects {
	if h.state != exchange {
		return h.fail("a SASL token was given outside of the exchange")
	}
	v, err := h.versions.Pick(wire.KeySaslAuthenticate, 0, 0)
	if err != nil {
		return h.fail("SaslAuthenticate: %w", err)
	}
	h.last = last
	req := message.NewSaslAuthenticateRequest()
	req.AuthBytes = token
	return h.send(wire.KeySaslAuthenticate, v, req)
}

func (h *Handshake) tokenAnswered(frame []byte) HandshakeEffects {
	var resp message.SaslAuthenticateResponse
	if err := readAnswer(&resp, frame, h.version); err != nil {
		return h.fail("SaslAuthenticate answer: %w", err)
	}
	if code := errcode.Code(resp.ErrorCode); code != errcode.None {
		h.state = failed
		e := &LoginError{Mechanism: h.hello.Mechanism, Code: code}
		if resp.ErrorMessage != nil {
			e.Text = *resp.ErrorMessage
		}
		return HandshakeEffects{Err: e}
	}
	if !h.last {
		return HandshakeEffects{NeedToken: true, Challenge: resp.AuthBytes}
	}
	h.state = up
	const longest = 1 << 40 // milliseconds, some 35 years: no overflow by a broker that says nonsense
	h.lifetime = time.Duration(min(max(resp.SessionLifetimeMs, 0), longest)) * time.Millisecond
	return HandshakeEffects{Up: true, Challenge: resp.AuthBytes}
}

func readAnswer(m message.Response, frame []byte, version int16) error {
	r := wire.NewReader(frame)
	if _, err := wire.ReadResponseHeader(r, m.Key(), version); err != nil {
		return err
	}
	return m.ReadFrom(r, version)
}

// LoginError is a login the broker refused. Text is the broker's own, Offered its mechanisms when ours is not
// among them.
type LoginError struct {
	Mechanism string
	Code      errcode.Code
	Text      string
	Offered   []string
}

// Error says what the broker said, or what it offers.
func (e *LoginError) Error() string {
	if errors.Is(e.Code, errcode.UnsupportedSaslMechanism) {
		return fmt.Sprintf("SASL mechanism %s is not enabled at this listener, it offers %s", e.Mechanism, strings.Join(e.Offered, ", "))
	}
	if e.Text != "" {
		return fmt.Sprintf("SASL %s: %s (%s)", e.Mechanism, e.Text, e.Code.Name())
	}
	return fmt.Sprintf("SASL %s: %s", e.Mechanism, e.Code.Name())
}

// Unwrap is the broker's code.
func (e *LoginError) Unwrap() error { return e.Code }
