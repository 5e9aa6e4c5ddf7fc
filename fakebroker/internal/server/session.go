package server

import (
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// authState is how far a connection has come with SASL:
//
//	awaitHandshake ──SaslHandshake v0──> awaitRawToken ──token──> authenticated
//	      │  ^ ApiVersions stays
//	      └──SaslHandshake v1──> awaitAuthenticate ──SaslAuthenticate──> authenticated
//
// Every failure closes the connection. Listeners without SASL start authenticated, as User:ANONYMOUS.
type authState uint8

const (
	authenticated authState = iota
	awaitHandshake
	awaitRawToken
	awaitAuthenticate
)

// anonymous is the principal of a connection that nobody authenticated.
const anonymous = "User:ANONYMOUS"

// A session is what the server knows about one connection. The connection's goroutine owns it.
type session struct {
	auth      authState
	principal string

	// What a connection needs again for every request; see Request.
	request  Request
	produce  message.ProduceRequest
	produced message.ProduceResponse
	fetch    message.FetchRequest
}

func (b *Broker) sessionOf(c *network.Conn) *session {
	if s, ok := c.State.(*session); ok {
		return s
	}
	s := &session{principal: anonymous}
	if c.Auth {
		s.auth, s.principal = awaitHandshake, ""
	}
	c.State = s
	return s
}

// permits says why a request may not come now: before authentication only what leads to it is read.
func (s *session) permits(k wire.Key) error {
	switch s.auth {
	case authenticated:
		return nil
	case awaitHandshake:
		if k == wire.KeyApiVersions || k == wire.KeySaslHandshake {
			return nil
		}
	case awaitAuthenticate:
		if k == wire.KeySaslAuthenticate {
			return nil
		}
	}
	return fmt.Errorf("unexpected %s request before SASL authentication was finished", k)
}
