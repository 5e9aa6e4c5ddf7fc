package message

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
)

func TestEveryKeyHasItsMessages(t *testing.T) {
	for k := wire.Key(-1); k <= wire.Keys; k++ {
		req, resp := NewRequest(k), NewResponse(k)
		if !k.Valid() {
			require.Nil(t, req, k)
			require.Nil(t, resp, k)
			continue
		}
		require.Equal(t, k, req.Key())
		require.Equal(t, k, resp.Key())
		require.IsType(t, resp, req.NewResponse())
		min, max, _ := wire.Versions(k)
		for _, m := range []Message{req, resp} {
			lo, hi := m.(interface{ Versions() (int16, int16) }).Versions()
			require.Equal(t, [2]int16{min, max}, [2]int16{lo, hi}, k)
		}
	}
}

func TestNamesAreKnown(t *testing.T) {
	require.Len(t, Names(), 2*91+2+11)
	for _, name := range Names() {
		require.NotNil(t, New(name), name)
	}
	require.Nil(t, New("LeaderAndIsrRequest"))
}

func TestVersionsThatDoNotExistAreRefused(t *testing.T) {
	for _, name := range Names() {
		m := New(name)
		min, max := m.(interface{ Versions() (int16, int16) }).Versions()
		for _, version := range []int16{-1, min - 1, max + 1, 32767} {
			dst := []byte("kept")
			out, err := m.AppendTo(dst, version)
			require.ErrorIs(t, err, wire.ErrUnsupportedVersion, name)
			require.Equal(t, dst, out)
			require.ErrorIs(t, m.ReadFrom(wire.NewReader(make([]byte, 64)), version), wire.ErrUnsupportedVersion, name)
		}
	}
}
