package message

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/internal/oracle"
)

// Whole frames: size, header of the right version, body of defaults. The headers are written twice, by the functions of
// package wire and by the generated messages.
func TestOracleFrames(t *testing.T) {
	lines := 0
	oracle.JSONLines(t, "wire/frames.jsonl.gz", func(n int, v struct {
		Kind          string
		API           string
		Key           int16
		Version       int16
		HeaderVersion int16
		CorrelationID int32
		ClientID      *string
		Hex           string
	}) {
		lines++
		raw, err := hex.DecodeString(v.Hex)
		require.NoError(t, err)
		k := wire.Key(v.Key)
		require.Equal(t, v.API, k.String())
		requestHeader, responseHeader := wire.HeaderVersions(k, v.Version)
		r := wire.NewReader(raw)
		require.EqualValues(t, len(raw)-4, r.Int32(), "line %d", n)
		frame := wire.AppendInt32(nil, int32(len(raw)-4))
		generated := frame
		var body Message
		if v.Kind == "request" {
			require.Equal(t, v.HeaderVersion, requestHeader, "line %d", n)
			h, err := wire.ReadRequestHeader(r)
			require.NoError(t, err, "line %d", n)
			require.Equal(t, wire.RequestHeader{Key: k, Version: v.Version, CorrelationID: v.CorrelationID, ClientID: v.ClientID}, h)
			frame = wire.AppendRequestHeader(frame, k, v.Version, v.CorrelationID, v.ClientID)
			header := &RequestHeader{RequestApiKey: v.Key, RequestApiVersion: v.Version, CorrelationId: v.CorrelationID, ClientId: v.ClientID}
			generated, err = header.AppendTo(generated, requestHeader)
			require.NoError(t, err)
			body = NewRequest(k)
		} else {
			require.Equal(t, v.HeaderVersion, responseHeader, "line %d", n)
			id, err := wire.ReadResponseHeader(r, k, v.Version)
			require.NoError(t, err, "line %d", n)
			require.Equal(t, v.CorrelationID, id)
			frame = wire.AppendResponseHeader(frame, k, v.Version, v.CorrelationID)
			header := &ResponseHeader{CorrelationId: v.CorrelationID}
			generated, err = header.AppendTo(generated, responseHeader)
			require.NoError(t, err)
			body = NewResponse(k)
		}
		require.Equal(t, frame, generated, "line %d", n)
		frame, err = body.AppendTo(frame, v.Version)
		require.NoError(t, err, "line %d", n)
		require.Equal(t, raw, frame, "line %d", n)
		require.NoError(t, body.ReadFrom(r, v.Version), "line %d", n)
		require.Zero(t, r.Remaining(), "line %d", n)
	})
	t.Logf("%d frames", lines)
}
