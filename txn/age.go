package txn

import (
	"context"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/txn/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// ageTimeout bounds the question how old a group's coordinator is. Without an answer reading begins all the same: a coordinator
// that turns out to be too old ends the pipe at its first commit.
const ageTimeout = 3 * time.Second

// checkAge refuses a consumer that is a member of a group whose coordinator does not check who commits (KIP-447), before
// anything is read. A consumer that is assigned its partitions names no member, and any coordinator will do.
func (s *Session) checkAge(ctx context.Context, op string, g consumer.GroupConfig) error {
	if len(g.Topics) == 0 && g.Pattern == "" || s.fences.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ageTimeout)
	defer cancel()
	// Later versions of the question name the client's software once more, which the handshake has done.
	resp, err := s.cl.Request(ctx, client.Coordinator(client.GroupCoordinator, g.ID).Versions(0, 2), message.NewApiVersionsRequest())
	if err != nil {
		return nil
	}
	least, most := int16(-1), int16(-1)
	for _, k := range resp.(*message.ApiVersionsResponse).ApiKeys {
		if wire.Key(k.ApiKey) == wire.KeyTxnOffsetCommit {
			least, most = k.MinVersion, k.MaxVersion
		}
	}
	if most >= machine.FencingOffsetCommit {
		s.fences.Store(true)
		return nil
	}
	_, newest, _ := wire.Versions(wire.KeyTxnOffsetCommit)
	old := &client.VersionError{Key: wire.KeyTxnOffsetCommit, WantMin: machine.FencingOffsetCommit, WantMax: newest, BrokerMin: least, BrokerMax: most}
	return &Error{Class: Abortable, Op: op, ID: s.cfg.ID, Hint: machine.TooOldToFence,
		Err: fmt.Errorf("the coordinator of group %q is too old: %w", g.ID, old)}
}
