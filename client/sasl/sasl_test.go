package sasl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client/sasl"
)

func token(t *testing.T, c sasl.Credentials) ([]byte, error) {
	t.Helper()
	m := sasl.Plain(func(context.Context) (sasl.Credentials, error) { return c, nil })
	require.Equal(t, "PLAIN", m.Name())
	s, err := m.Start(t.Context(), sasl.Peer{Host: "broker"})
	if err != nil {
		return nil, err
	}
	out, done, err := s.Next(nil)
	require.True(t, done)
	return out, err
}

func TestPlainSendsThreeParts(t *testing.T) {
	got, err := token(t, sasl.Credentials{Username: "alice", Password: sasl.NewSecret("pässword")})
	require.NoError(t, err)
	require.Equal(t, "\x00alice\x00pässword", string(got))
	got, err = token(t, sasl.Credentials{AuthorizationID: "bob", Username: "alice", Password: sasl.NewSecret("p")})
	require.NoError(t, err)
	require.Equal(t, "bob\x00alice\x00p", string(got))
}

func TestPlainRefusesWhatItCannotSend(t *testing.T) {
	_, err := token(t, sasl.Credentials{Username: "alice"})
	require.ErrorIs(t, err, sasl.ErrNoCredentials)
	_, err = token(t, sasl.Credentials{Username: "al\x00ice", Password: sasl.NewSecret("canary")})
	require.ErrorContains(t, err, "NUL")
	require.NotContains(t, err.Error(), "canary")
	down := errors.New("vault is sealed")
	_, err = sasl.Plain(func(context.Context) (sasl.Credentials, error) { return sasl.Credentials{}, down }).Start(t.Context(), sasl.Peer{})
	require.ErrorIs(t, err, down)
}

func TestEndedCtxAsksForNoCredentials(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	_, err := sasl.Plain(func(context.Context) (sasl.Credentials, error) {
		t.Error("asked")
		return sasl.Credentials{}, nil
	}).Start(ctx, sasl.Peer{})
	require.ErrorIs(t, err, enough)
}

// FuzzPlain: what is sent has the two NUL bytes of RFC 4616 and nothing of the parts is lost.
func FuzzPlain(f *testing.F) {
	f.Add("", "alice", "secret")
	f.Add("x", "\x00", "ü")
	f.Fuzz(func(t *testing.T, id, user, password string) {
		got, err := token(t, sasl.Credentials{AuthorizationID: id, Username: user, Password: sasl.NewSecret(password)})
		if err == nil {
			require.Equal(t, id+"\x00"+user+"\x00"+password, string(got))
		}
	})
}

// A secret shows nowhere but where it is asked for.
func ExampleSecret() {
	s := sasl.NewSecret("wonder")
	fmt.Printf("%v %q %#v %s\n", s, s, s, s.Reveal())
	// Output: [redacted] [redacted] sasl.Secret([redacted]) wonder
}

// A user with a fixed password.
func ExamplePlainUser() {
	m := sasl.PlainUser("alice", sasl.NewSecret("wonder"))
	session, err := m.Start(context.Background(), sasl.Peer{})
	if err != nil {
		fmt.Println(err)
		return
	}
	token, done, _ := session.Next(nil)
	fmt.Printf("%s %q %v\n", m.Name(), token, done)
	// Output: PLAIN "\x00alice\x00wonder" true
}
