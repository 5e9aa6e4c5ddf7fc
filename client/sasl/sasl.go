package sasl

import (
	"context"
)

// Peer is the broker a session is for. Mechanisms that bind a proof to a host need it (GSSAPI); PLAIN does not.
type Peer struct {
	Host   string // as dialled, without the port
	Broker int32  // negative for a seed whose id is not known yet
}

// Mechanism is one way to log in. A client holds one and asks it for a new session at every (re-)authentication
// of every connection, from several goroutines at once.
type Mechanism interface {
	// Name is the name in SaslHandshake: "PLAIN", "SCRAM-SHA-256" and so on.
	Name() string
	// Start fetches whatever credentials are current and opens a session. It may block (a token endpoint, a
	// file) and must return by ctx's end.
	Start(ctx context.Context, peer Peer) (Session, error)
}

// Session is the client's side of one exchange of tokens. It is used by one goroutine.
type Session interface {
	// Next takes the broker's token (nil before the first) and gives the one to send. done means that the
	// client expects no further token after the broker has accepted this one. An error ends the connection.
	Next(challenge []byte) (token []byte, done bool, err error)
}

// Verifier is implemented by sessions that check the broker's last token too (SCRAM's server signature). It is
// called once with the token of the answer that followed done; an error ends the connection.
type Verifier interface {
	Verify(last []byte) error
}
