package sasl

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Credentials are what PLAIN sends. AuthorizationID is nearly always empty; Kafka refuses one that differs from
// Username.
type Credentials struct {
	AuthorizationID string
	Username        string
	Password        Secret
}

// ErrNoCredentials is returned by Start when the provider gave no user name or no password.
var ErrNoCredentials = errors.New("sasl: the credentials have an empty user name or password")

// Plain is the PLAIN mechanism (RFC 4616) with credentials that the function gives at each login.
func Plain(credentials func(ctx context.Context) (Credentials, error)) Mechanism {
	return plain{credentials}
}

// PlainUser is the PLAIN mechanism for one fixed user.
func PlainUser(username string, password Secret) Mechanism {
	return Plain(func(context.Context) (Credentials, error) {
		return Credentials{Username: username, Password: password}, nil
	})
}

type plain struct {
	credentials func(context.Context) (Credentials, error)
}

func (plain) Name() string { return "PLAIN" }

func (p plain) Start(ctx context.Context, _ Peer) (Session, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c, err := p.credentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("sasl: credentials provider: %w", err)
	}
	if c.Username == "" || c.Password.IsZero() {
		return nil, ErrNoCredentials
	}
	for _, part := range []string{c.AuthorizationID, c.Username, c.Password.Reveal()} {
		// NUL separates the three parts, so it cannot occur in any of them.
		if strings.IndexByte(part, 0) >= 0 {
			return nil, errors.New("sasl: PLAIN credentials must not contain a NUL byte")
		}
	}
	return &plainSession{c}, nil
}

type plainSession struct{ c Credentials }

func (s *plainSession) Next([]byte) ([]byte, bool, error) {
	token := make([]byte, 0, len(s.c.AuthorizationID)+len(s.c.Username)+len(s.c.Password.Reveal())+2)
	token = append(token, s.c.AuthorizationID...)
	token = append(token, 0)
	token = append(token, s.c.Username...)
	token = append(token, 0)
	token = append(token, s.c.Password.Reveal()...)
	return token, true, nil
}
