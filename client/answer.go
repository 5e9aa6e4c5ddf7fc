package client

import (
	"encoding/binary"
	"time"

	"github.com/ottla-kafka/ottla/wire"
)

// stripHeader is the body of an answer: what follows the correlation id and, in flexible versions, the header's
// tagged fields.
func stripHeader(frame []byte, k wire.Key, version int16) ([]byte, error) {
	_, header := wire.HeaderVersions(k, version)
	if header == 0 {
		return frame[4:], nil
	}
	if len(frame) > 4 && frame[4] == 0 { // no tags, as ever so far
		return frame[5:], nil
	}
	var r wire.Reader
	r.Reset(frame)
	if _, err := wire.ReadResponseHeader(&r, k, version); err != nil {
		return nil, err
	}
	return r.Rest(), nil
}

// throttleSince has, for every request, the version from which the answer begins with throttle_time_ms. Where it
// has not in any version, the API is in notThrottleFirst.
var throttleSince = map[wire.Key]int16{
	wire.KeyFetch: 1, wire.KeyListOffsets: 2, wire.KeyMetadata: 3, wire.KeyOffsetCommit: 3, wire.KeyOffsetFetch: 3,
	wire.KeyFindCoordinator: 1, wire.KeyJoinGroup: 2, wire.KeyHeartbeat: 1, wire.KeyLeaveGroup: 1, wire.KeySyncGroup: 1,
	wire.KeyDescribeGroups: 1, wire.KeyListGroups: 1, wire.KeyCreateTopics: 2, wire.KeyDeleteTopics: 1,
	wire.KeyOffsetForLeaderEpoch: 2,
}

// notThrottleFirst lists the answers that begin with something else: the field comes later or not at all.
var notThrottleFirst = map[wire.Key]bool{
	wire.KeyProduce: true, wire.KeyApiVersions: true, wire.KeySaslHandshake: true, wire.KeySaslAuthenticate: true,
	wire.KeyCreateDelegationToken: true, wire.KeyRenewDelegationToken: true, wire.KeyExpireDelegationToken: true,
	wire.KeyDescribeDelegationToken: true, wire.KeyOffsetDelete: true, wire.KeyWriteTxnMarkers: true,
	wire.KeyVote: true, wire.KeyBeginQuorumEpoch: true, wire.KeyEndQuorumEpoch: true, wire.KeyDescribeQuorum: true,
	wire.KeyEnvelope:                  true,
	wire.KeyInitializeShareGroupState: true, wire.KeyReadShareGroupState: true, wire.KeyWriteShareGroupState: true,
	wire.KeyDeleteShareGroupState: true, wire.KeyReadShareGroupStateSummary: true,
}

// throttleOf is how long an answer asks the client to wait (KIP-219), where the field comes first.
func throttleOf(k wire.Key, version int16, body []byte) time.Duration {
	if len(body) < 4 || body[0] != 0 || body[0]|body[1]|body[2]|body[3] == 0 {
		return 0 // the usual case, without a look at the tables; a first byte set would be 4 hours and more
	}
	if notThrottleFirst[k] || version < throttleSince[k] {
		return 0
	}
	return time.Duration(binary.BigEndian.Uint32(body)) * time.Millisecond
}

// throttled mutes the link and tells.
func (l *link) throttled(now time.Time, k wire.Key, d time.Duration) {
	l.mute(now, d)
	l.c.meter.throttledNanos.Add(int64(d))
	e := ThrottleEvent{Broker: l.id(), Purpose: l.purpose, Key: k, Duration: d}
	for _, o := range l.c.cfg.Observers {
		o.Throttled(e)
	}
}
