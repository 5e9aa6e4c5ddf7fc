package txn

import (
	"context"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// features is what the session knows of the cluster's finalised features.
type features struct{ level atomic.Int32 }

// implicitLevel is the transaction.version from which leaders add their partitions to transactions themselves (KIP-890).
const implicitLevel = 2

// learn asks a broker.
func (f *features) learn(ctx context.Context, s *Session) error {
	req := message.NewApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "ottla", "1"
	resp, err := s.cl.Request(ctx, client.AnyBroker(), req)
	if err != nil {
		return err
	}
	level := int16(0)
	for _, x := range resp.(*message.ApiVersionsResponse).FinalizedFeatures {
		if x.Name == "transaction.version" {
			level = x.MaxVersionLevel
		}
	}
	f.level.Store(int32(level))
	return nil
}

// implicit tells whether the next transaction is.
func (f *features) implicit(*Session) bool { return f.level.Load() >= implicitLevel }
