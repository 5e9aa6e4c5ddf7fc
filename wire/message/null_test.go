package message

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
)

func TestNullIsRefusedInVersionsWithoutIt(t *testing.T) {
	req := NewMetadataRequest()
	req.Topics = nil // all topics, from version 1
	_, err := req.AppendTo(nil, 1)
	require.NoError(t, err)
	_, err = req.AppendTo(nil, 0)
	require.ErrorIs(t, err, wire.ErrNull)
	require.EqualError(t, err, "wire: MetadataRequest version 0: MetadataRequest.Topics: null is not allowed")

	wire.Add(&req.Topics).TopicId = wire.UUID{1}
	req.Topics[0].Name = nil
	_, err = req.AppendTo(nil, 13)
	require.NoError(t, err)
	req.Topics[0].TopicId = wire.UUID{}
	_, err = req.AppendTo(nil, 9)
	require.ErrorIs(t, err, wire.ErrNull)

	// The other way round: bytes that say null where the version does not allow it.
	require.ErrorIs(t, req.ReadFrom(wire.NewReader([]byte{0xff, 0xff, 0xff, 0xff}), 0), wire.ErrMalformed)
	require.NoError(t, req.ReadFrom(wire.NewReader([]byte{0xff, 0xff, 0xff, 0xff}), 1))
	require.Nil(t, req.Topics)
	require.NoError(t, req.ReadFrom(wire.NewReader([]byte{0, 0, 0, 0}), 1))
	require.NotNil(t, req.Topics)
}

func TestNilInFieldsThatCannotBeNullIsEmpty(t *testing.T) {
	withNil := &SaslAuthenticateRequest{}
	withEmpty := &SaslAuthenticateRequest{AuthBytes: []byte{}}
	for version := int16(0); version <= 2; version++ {
		require.Equal(t, encoded(t, withEmpty, version), encoded(t, withNil, version))
	}
}

func TestTagsNeedAFlexibleVersion(t *testing.T) {
	req := NewHeartbeatRequest()
	req.UnknownTags = wire.Tags{{ID: 3, Data: []byte{1}}}
	_, err := req.AppendTo(nil, 4)
	require.NoError(t, err)
	_, err = req.AppendTo(nil, 3)
	require.ErrorIs(t, err, wire.ErrUnsupportedVersion)
}

func TestAFailedWriteLeavesWhatWasThere(t *testing.T) {
	req := NewMetadataRequest()
	req.Topics = nil
	out, err := req.AppendTo([]byte("before"), 0)
	require.Error(t, err)
	require.Equal(t, "before", string(out[:6]))
}
