package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// mechanisms is sasl.enabled.mechanisms as far as this broker has them.
var mechanisms = []string{"PLAIN"}

const (
	textLateAuthenticate = "SaslAuthenticate request received after successful authentication"
	textNotAuthenticated = "Authentication failed: Invalid username or password"
)

// A loginRefusal is why a login failed, in the words that the client gets: Apache Kafka's, without detail.
type loginRefusal string

func (r loginRefusal) Error() string { return string(r) }

func handleSaslHandshake(b *Broker, r *Request) {
	req := r.Body.(*message.SaslHandshakeRequest)
	resp := &message.SaslHandshakeResponse{}
	if r.session.auth == authenticated {
		resp.ErrorCode = int16(errcode.IllegalSaslState)
		r.Respond(resp)
		return
	}
	resp.Mechanisms = mechanisms
	if req.Mechanism != "PLAIN" {
		resp.ErrorCode = int16(errcode.UnsupportedSaslMechanism)
		b.refuseAuth(r.x, &messageAnswer{r.Key, r.Version, r.CorrelationID, resp},
			fmt.Errorf("SASL mechanism %q is not enabled (sasl.enabled.mechanisms=PLAIN)", req.Mechanism))
		return
	}
	r.session.auth = awaitAuthenticate
	if r.Version == 0 {
		r.session.auth = awaitRawToken
	}
	r.Respond(resp)
}

func handleSaslAuthenticate(b *Broker, r *Request) {
	req := r.Body.(*message.SaslAuthenticateRequest)
	resp := &message.SaslAuthenticateResponse{}
	if r.session.auth == authenticated {
		text := textLateAuthenticate
		resp.ErrorCode, resp.ErrorMessage = int16(errcode.IllegalSaslState), &text
		r.Respond(resp)
		return
	}
	principal, err := b.plain(req.AuthBytes)
	if err != nil {
		text := err.Error()
		resp.ErrorCode, resp.ErrorMessage = int16(errcode.SaslAuthenticationFailed), &text
		b.refuseAuth(r.x, &messageAnswer{r.Key, r.Version, r.CorrelationID, resp}, err)
		return
	}
	r.session.auth, r.session.principal = authenticated, principal
	r.x.Conn.Authenticated()
	resp.ErrorMessage = new("")
	r.Respond(resp)
}

// rawToken reads a token without Kafka's framing, which is how clients before KIP-152 send it.
func (b *Broker) rawToken(x *network.Exchange, s *session) {
	principal, err := b.plain(x.Frame)
	if err != nil {
		b.later(func() { x.Fail(err) })
		return
	}
	s.auth, s.principal = authenticated, principal
	x.Conn.Authenticated()
	x.Complete(rawAnswer(nil))
}

// refuseAuth answers after connection.failed.authentication.delay.ms and closes: guessing passwords has a price.
func (b *Broker) refuseAuth(x *network.Exchange, a network.Answer, reason error) {
	b.later(func() { x.CompleteAndClose(a, reason) })
}

// refuseEarly answers a request that came instead of SaslAuthenticate with ILLEGAL_SASL_STATE and closes.
func (b *Broker) refuseEarly(r *Request, reason error) {
	resp := failedResponse(r, errcode.IllegalSaslState)
	if resp == nil {
		r.Close(reason)
		return
	}
	if cluster, ok := resp.(*message.DescribeClusterResponse); ok { // the only one of these with a text
		cluster.ErrorMessage = new("Unexpected Kafka request of type DESCRIBE_CLUSTER during SASL authentication.")
	}
	b.refuseAuth(r.x, &messageAnswer{r.Key, r.Version, r.CorrelationID, resp}, reason)
}

func (b *Broker) later(f func()) {
	if b.opts.FailedAuthDelay <= 0 {
		f()
		return
	}
	time.AfterFunc(b.opts.FailedAuthDelay, f)
}

// plain checks a PLAIN token (RFC 4616): [authorization id] NUL user NUL password. The texts are Apache Kafka's, and
// an unknown user costs the same time and gets the same text as a wrong password.
func (b *Broker) plain(token []byte) (principal string, err error) {
	parts := bytes.Split(token, []byte{0})
	if len(parts) != 3 {
		return "", loginRefusal(fmt.Sprintf("Invalid SASL/PLAIN response: expected 3 tokens, got %d", len(parts)))
	}
	authzID, user, password := string(parts[0]), string(parts[1]), parts[2]
	switch {
	case user == "":
		return "", loginRefusal("Authentication failed: username not specified")
	case len(password) == 0:
		return "", loginRefusal("Authentication failed: password not specified")
	}
	want, known := b.opts.Users[user]
	given, expected := sha256.Sum256(password), sha256.Sum256([]byte(want))
	if subtle.ConstantTimeCompare(given[:], expected[:]) != 1 || !known {
		return "", loginRefusal(textNotAuthenticated)
	}
	if authzID != "" && authzID != user {
		return "", loginRefusal("Authentication failed: Client requested an authorization id that is different from username")
	}
	return "User:" + user, nil
}
