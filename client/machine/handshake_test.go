package machine_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// asked reads what a handshake sent.
func asked(t *testing.T, e machine.HandshakeEffects) (wire.RequestHeader, message.Request) {
	t.Helper()
	require.NoError(t, e.Err)
	require.NotNil(t, e.Send)
	require.EqualValues(t, len(e.Send)-4, binary.BigEndian.Uint32(e.Send))
	r := wire.NewReader(e.Send[4:])
	h, err := wire.ReadRequestHeader(r)
	require.NoError(t, err)
	req := message.NewRequest(h.Key)
	require.NoError(t, req.ReadFrom(r, h.Version))
	return h, req
}

// answer builds the frame that answers a request.
func answer(t *testing.T, h wire.RequestHeader, bodyVersion int16, resp message.Response) []byte {
	t.Helper()
	frame := wire.AppendResponseHeader(nil, h.Key, h.Version, h.CorrelationID)
	frame, err := resp.AppendTo(frame, bodyVersion)
	require.NoError(t, err)
	return frame
}

func versions(max int16, keys ...wire.Key) *message.ApiVersionsResponse {
	resp := new(message.ApiVersionsResponse)
	resp.SetDefaults()
	resp.ApiKeys = append(resp.ApiKeys, message.ApiVersion{ApiKey: int16(wire.KeyApiVersions), MaxVersion: max})
	for _, k := range keys {
		resp.ApiKeys = append(resp.ApiKeys, message.ApiVersion{ApiKey: int16(k), MaxVersion: 2})
	}
	return resp
}

func hello(mechanism string) machine.Hello {
	return machine.Hello{ClientID: "c", SoftwareName: "s", SoftwareVersion: "1", NodeID: 4, ClusterID: "cluster", Mechanism: mechanism}
}

func TestHandshakeWithoutLoginIsOneRequest(t *testing.T) {
	h := machine.NewHandshake(hello(""))
	head, req := asked(t, h.Start())
	require.Equal(t, wire.LatestStable(wire.KeyApiVersions), head.Version)
	v := req.(*message.ApiVersionsRequest)
	require.Equal(t, "s", v.ClientSoftwareName)
	if head.Version >= 5 {
		require.Equal(t, "cluster", *v.ClusterId)
		require.EqualValues(t, 4, v.NodeId)
	}
	require.Nil(t, h.Features())
	resp := versions(head.Version)
	resp.FinalizedFeaturesEpoch, resp.FinalizedFeatures = 7, []message.FinalizedFeatureKey{{Name: "transaction.version", MaxVersionLevel: 2, MinVersionLevel: 0}}
	e := h.Received(answer(t, head, head.Version, resp))
	require.NoError(t, e.Err)
	require.True(t, e.Up)
	require.EqualValues(t, 1, h.NextCorrelation())
	require.EqualValues(t, 7, h.Features().Epoch)
	require.EqualValues(t, 2, h.Features().Level("transaction.version"))
	require.Zero(t, h.Features().Level("share.version"))
}

func TestHandshakeFallsBackToAVersionTheBrokerNames(t *testing.T) {
	for _, named := range []int16{2, 0, -1} { // -1: a broker that names none
		h := machine.NewHandshake(hello(""))
		head, _ := asked(t, h.Start())
		refusal := versions(named)
		refusal.ErrorCode = int16(errcode.UnsupportedVersion)
		if named < 0 {
			refusal.ApiKeys = nil
		}
		head, _ = asked(t, h.Received(answer(t, head, 0, refusal)))
		require.Equal(t, max(named, 0), head.Version)
		require.True(t, h.Received(answer(t, head, head.Version, versions(named))).Up)
	}
}

func TestHandshakeAsksTwiceAtMost(t *testing.T) {
	h := machine.NewHandshake(hello(""))
	e := h.Start()
	for range 2 {
		head, _ := asked(t, e)
		refusal := versions(1)
		refusal.ErrorCode = int16(errcode.UnsupportedVersion)
		e = h.Received(answer(t, head, 0, refusal))
	}
	require.ErrorIs(t, e.Err, errcode.UnsupportedVersion)
}

func TestLoginGoesThroughItsSteps(t *testing.T) {
	h := machine.NewHandshake(hello("SCRAM"))
	head, _ := asked(t, h.Start())
	head, req := asked(t, h.Received(answer(t, head, head.Version, versions(5, wire.KeySaslHandshake, wire.KeySaslAuthenticate))))
	require.Equal(t, "SCRAM", req.(*message.SaslHandshakeRequest).Mechanism)
	require.EqualValues(t, 1, head.Version)
	e := h.Received(answer(t, head, head.Version, new(message.SaslHandshakeResponse)))
	require.True(t, e.NeedToken)
	head, req = asked(t, h.Token([]byte("one"), false))
	require.EqualValues(t, "one", req.(*message.SaslAuthenticateRequest).AuthBytes)
	require.EqualValues(t, 2, head.Version)
	e = h.Received(answer(t, head, head.Version, &message.SaslAuthenticateResponse{AuthBytes: []byte("two")}))
	require.True(t, e.NeedToken)
	require.EqualValues(t, "two", e.Challenge)
	head, _ = asked(t, h.Token([]byte("three"), true))
	e = h.Received(answer(t, head, head.Version, &message.SaslAuthenticateResponse{AuthBytes: []byte("proof"), SessionLifetimeMs: 1 << 62}))
	require.True(t, e.Up)
	require.EqualValues(t, "proof", e.Challenge)
	require.Positive(t, h.SessionLifetime(), "nonsense does not overflow")
	require.Greater(t, h.SessionLifetime(), 24*365*time.Hour)
}

func TestLoginRefusalsAreTyped(t *testing.T) {
	h := machine.NewHandshake(hello("PLAIN"))
	head, _ := asked(t, h.Start())
	head, _ = asked(t, h.Received(answer(t, head, head.Version, versions(5, wire.KeySaslHandshake, wire.KeySaslAuthenticate))))
	e := h.Received(answer(t, head, head.Version, &message.SaslHandshakeResponse{ErrorCode: int16(errcode.UnsupportedSaslMechanism), Mechanisms: []string{"GSSAPI"}}))
	var login *machine.LoginError
	require.ErrorAs(t, e.Err, &login)
	require.Equal(t, []string{"GSSAPI"}, login.Offered)
	require.ErrorContains(t, e.Err, "it offers GSSAPI")

	h = machine.NewHandshake(hello("PLAIN"))
	head, _ = asked(t, h.Start())
	e = h.Received(answer(t, head, head.Version, versions(5)))
	require.ErrorContains(t, e.Err, "offers no SASL login")
}

func TestHandshakeRefusesWhatIsOutOfStep(t *testing.T) {
	for _, frame := range [][]byte{nil, {0, 0}, {0, 0, 0, 9, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0xff}} {
		h := machine.NewHandshake(hello(""))
		asked(t, h.Start())
		require.Error(t, h.Received(frame).Err)
	}
	h := machine.NewHandshake(hello(""))
	require.Error(t, h.Token(nil, true).Err, "no token was asked for")
}

func FuzzHandshake(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, true)
	f.Fuzz(func(t *testing.T, frame []byte, login bool) {
		mechanism := ""
		if login {
			mechanism = "PLAIN"
		}
		h := machine.NewHandshake(hello(mechanism))
		e := h.Start()
		for range 4 {
			switch {
			case e.Err != nil || e.Up:
				return
			case e.NeedToken:
				e = h.Token([]byte("token"), true)
			default:
				if len(frame) >= 4 { // in step, so that more of it is reached
					binary.BigEndian.PutUint32(frame, uint32(h.NextCorrelation()-1))
				}
				e = h.Received(frame)
			}
		}
	})
}
