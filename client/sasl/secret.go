package sasl

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is a password, token or key. However it is printed, logged or marshalled it shows as "[redacted]";
// Reveal alone gives the text, so that a search for Reveal finds every place where a secret leaves the type.
type Secret struct{ text string }

// NewSecret wraps a secret text.
func NewSecret(text string) Secret { return Secret{text: text} }

// Reveal is the secret itself.
func (s Secret) Reveal() string { return s.text }

// IsZero tells whether there is no secret.
func (s Secret) IsZero() bool { return s.text == "" }

// String redacts.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}
	return redacted
}

// GoString redacts for %#v.
func (s Secret) GoString() string { return "sasl.Secret(" + s.String() + ")" }

// Format redacts for every verb, %x and %q included.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'v' && f.Flag('#') {
		fmt.Fprint(f, s.GoString())
		return
	}
	fmt.Fprint(f, s.String())
}

// LogValue redacts in slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText redacts in JSON, XML and everything else that asks for text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
