package wire

import (
	"bytes"
	"crypto/rand"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysOutsideTheTableAreNotValid(t *testing.T) {
	for _, k := range []Key{-1, Keys, 32767, KeyLeaderAndIsr, KeyStopReplica, KeyUpdateMetadata, KeyControlledShutdown} {
		require.False(t, k.Valid())
		_, _, ok := Versions(k)
		require.False(t, ok)
		_, _, ok = BrokerVersions(k)
		require.False(t, ok)
		_, _, ok = ControllerVersions(k)
		require.False(t, ok)
		require.Equal(t, int16(-1), LatestStable(k))
		request, response := HeaderVersions(k, 5)
		require.Equal(t, [2]int16{1, 0}, [2]int16{request, response})
	}
	require.Equal(t, "Key(-1)", Key(-1).String())
	require.Equal(t, "StopReplica", KeyStopReplica.String())
}

func TestControllersAdvertiseTheirAPIs(t *testing.T) {
	min, max, ok := ControllerVersions(KeyVote)
	require.True(t, ok)
	require.Equal(t, [2]int16{0, 2}, [2]int16{min, max})
	_, _, ok = ControllerVersions(KeyProduce)
	require.False(t, ok)
}

func TestClientIDsBeyondTheLimitAreCut(t *testing.T) {
	long := strings.Repeat("x", MaxString+5)
	h, err := ReadRequestHeader(NewReader(AppendRequestHeader(nil, KeyFetch, 12, 1, &long)))
	require.NoError(t, err)
	require.Len(t, *h.ClientID, MaxString)
}

func TestRandomUUIDsAreOfVersion4AndDoNotLookLikeOptions(t *testing.T) {
	seen := map[UUID]bool{}
	for range 2000 {
		u, err := RandomUUID(rand.Reader)
		require.NoError(t, err)
		require.NotEqual(t, byte('-'), u.String()[0])
		require.Equal(t, byte(0x40), u[6]&0xf0)
		require.Equal(t, byte(0x80), u[8]&0xc0)
		require.False(t, u.IsReserved() || seen[u])
		seen[u] = true
	}
	_, err := RandomUUID(bytes.NewReader(nil))
	require.ErrorIs(t, err, io.EOF)
}
