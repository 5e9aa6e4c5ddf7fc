package message

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/internal/oracle"
)

// fixpoint decodes, encodes, and decodes again: what comes out of the first round must not change any more.
func fixpoint(tb testing.TB, m, again Message, version int16, body []byte) {
	if m.ReadFrom(wire.NewReader(body), version) != nil {
		return
	}
	first, err := m.AppendTo(nil, version)
	if err != nil {
		tb.Fatalf("%T version %d was read and cannot be written: %v", m, version, err)
	}
	r := wire.NewReader(first)
	if err := again.ReadFrom(r, version); err != nil || r.Remaining() != 0 {
		tb.Fatalf("%T version %d: %d bytes left of what it wrote: %v", m, version, r.Remaining(), err)
	}
	second, err := again.AppendTo(nil, version)
	if err != nil || !bytes.Equal(first, second) {
		tb.Fatalf("%T version %d: %x became %x: %v", m, version, first, second, err)
	}
}

// seed adds a vector of every message version to a fuzz target: key, version, body.
func seed(f *testing.F, request bool) {
	byName := map[string]wire.Key{}
	for k := wire.Key(0); k < wire.Keys; k++ {
		if request {
			byName[k.String()+"Request"] = k
		} else {
			byName[k.String()+"Response"] = k
		}
	}
	oracle.JSONLines(f, "wire/clients.jsonl.gz", func(_ int, v struct {
		Name    string
		Version int16
		Case    string
		Hex     string
	}) {
		k, ok := byName[v.Name]
		if !ok || v.Case != "one" && v.Case != "unknown-tags" || len(v.Hex) > 4096 {
			return
		}
		body, err := hex.DecodeString(v.Hex)
		require.NoError(f, err)
		f.Add(byte(k), byte(v.Version), body)
	})
}

func FuzzRequest(f *testing.F) {
	seed(f, true)
	f.Fuzz(func(t *testing.T, key, version byte, body []byte) {
		if m := NewRequest(wire.Key(key % byte(wire.Keys))); m != nil {
			fixpoint(t, m, NewRequest(m.Key()), int16(version%24), body)
		}
	})
}

func FuzzResponse(f *testing.F) {
	seed(f, false)
	f.Fuzz(func(t *testing.T, key, version byte, body []byte) {
		if m := NewResponse(wire.Key(key % byte(wire.Keys))); m != nil {
			fixpoint(t, m, NewResponse(m.Key()), int16(version%24), body)
		}
	})
}

// Subscriptions and assignments are blobs that other members of a group wrote, in any version and any quality.
func FuzzConsumerProtocol(f *testing.F) {
	f.Add(byte(0), []byte{})
	f.Add(byte(3), []byte{0, 0, 0, 1, 0, 1, 't', 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, version byte, body []byte) {
		v := int16(version % 4)
		fixpoint(t, NewConsumerProtocolSubscription(), NewConsumerProtocolSubscription(), v, body)
		fixpoint(t, NewConsumerProtocolAssignment(), NewConsumerProtocolAssignment(), v, body)
	})
}

// Every message in every version, on bytes that ask for as much as they can: no panic, and no more memory than the
// budget of the reader.
func TestHostileBytesTakeBoundedMemory(t *testing.T) {
	const size = 32 << 10
	random := rand.New(rand.NewPCG(1, 2))
	inputs := map[string][]byte{"random": make([]byte, size)}
	for i := range inputs["random"] {
		inputs["random"][i] = byte(random.Uint32() >> 13)
	}
	for _, b := range []byte{0x00, 0x01, 0x02, 0x7f, 0xff} {
		inputs[string('a'+rune(b%7))+" repeated"] = bytes.Repeat([]byte{b}, size)
	}
	inputs["counts"] = bytes.Repeat([]byte{0xff, 0xff, 0x01}, size/3)
	for _, name := range Names() {
		min, max := New(name).(interface{ Versions() (int16, int16) }).Versions()
		for version := min; version <= max; version++ {
			for kind, input := range inputs {
				m := New(name)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_ = m.ReadFrom(wire.NewReader(input), version)
				runtime.ReadMemStats(&after)
				// Slack: what other goroutines of the test allocate, and rounding up to size classes.
				if used := after.TotalAlloc - before.TotalAlloc; used > 20*size+2<<20 {
					t.Errorf("%s version %d took %d bytes for %d bytes of %s", name, version, used, len(input), kind)
				}
			}
		}
	}
}

// A prefix of a good body is an error or, where only tagged fields are missing, never; it does not panic.
func TestCutBodiesAreErrors(t *testing.T) {
	oracle.JSONLines(t, "wire/clients.jsonl.gz", func(n int, v struct {
		Name    string
		Version int16
		Case    string
		Hex     string
	}) {
		if v.Case != "one" || len(v.Hex) > 2000 {
			return
		}
		body, err := hex.DecodeString(v.Hex)
		require.NoError(t, err)
		m := New(v.Name)
		for cut := range body {
			if err := m.ReadFrom(wire.NewReader(body[:cut:cut]), v.Version); err == nil {
				t.Errorf("line %d: %s version %d: %d of %d bytes are accepted", n, v.Name, v.Version, cut, len(body))
			} else {
				require.ErrorIs(t, err, wire.ErrMalformed)
			}
		}
	})
}
