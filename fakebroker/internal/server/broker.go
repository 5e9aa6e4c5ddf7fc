package server

import (
	"log/slog"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
)

// A Broker answers requests: it owns the partitions, the fetch sessions and the purgatories, and learns everything else
// from the metadata image.
type Broker struct {
	nodeID     int32
	clusterID  string
	log        *slog.Logger
	controller Controller
	storage    *storage.Manager
	image      atomic.Pointer[image.Image] // what handlers read; replaced after partitions follow it
}

// Image returns the newest metadata image that this broker has applied. It is immutable.
func (b *Broker) Image() *image.Image { return b.image.Load() }
