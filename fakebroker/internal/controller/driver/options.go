package driver

import (
	"log/slog"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
)

// Options are what a Driver is made of.
type Options struct {
	FS          vfs.FS
	Dir         string // log dir; the metadata log is the folder __cluster_metadata-0 in it
	NodeID      int32
	ClusterID   string
	DirectoryID wire.UUID // of Dir, from its meta.properties
	Config      *config.Layers
	// Controller is where this node's controller listener is said to be: it stands in the voter's record and in the
	// controller's registration. Nobody listens there as long as the quorum has one voter. Nil is CONTROLLER at
	// 127.0.0.1:9093.
	Controller *Endpoint
	// StaticQuorum gives a new folder kraft.version 0, as with controller.quorum.voters: no voters in the log.
	StaticQuorum bool
	// Levels are the feature levels of a new cluster; nil for Apache Kafka 4.4's defaults.
	Levels []image.FeatureRange
	// NewUUID makes topic ids and incarnation ids.
	NewUUID func() wire.UUID
	// Rand returns a number in [0, n), for placement; nil starts each topic's placement at the first broker.
	Rand   func(n int) int
	Logger *slog.Logger // nil: silent
}

// Endpoint is where a listener is reached.
type Endpoint struct {
	Name             string
	Host             string
	Port             uint16
	SecurityProtocol int16
}

// Registration is what this process's broker registers with.
type Registration struct {
	BrokerID    int32
	Listeners   []Endpoint
	Rack        *string
	Directories []wire.UUID // of its log dirs
	// PreviousBrokerEpoch is the epoch in the clean shutdown file, -1 when there is none: then the broker's data may be
	// incomplete, and its partitions are led by it only as a last resort.
	PreviousBrokerEpoch int64
}
