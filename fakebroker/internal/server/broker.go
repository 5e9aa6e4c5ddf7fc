package server

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/internal/bug"
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/controller/driver"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/fakebroker/internal/purgatory"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Options says what a Broker is made of. All fields but Users and Rack must be set.
type Options struct {
	Config    *config.Layers // server properties
	FS        vfs.FS
	Dirs      []string // log.dirs; the metadata log is in the first
	NodeID    int32
	ClusterID string
	Rack      *string
	Listeners []Listener
	Users     map[string]string // SASL/PLAIN: user -> password
	Faults    *fault.Set
	Logger    *slog.Logger
	NewUUID   func() wire.UUID
	// Random draws from [0, n): session ids, segment jitter.
	Random func(n int64) int64
	// FailedAuthDelay is connection.failed.authentication.delay.ms.
	FailedAuthDelay time.Duration
	// Levels are the feature levels of a new cluster; nil for Apache Kafka 4.4's defaults.
	Levels []image.FeatureRange
	// Bugs are the mistakes to be made on purpose; see package bug.
	Bugs bug.Set
}

// A Broker answers requests: it owns the partitions, the fetch sessions and the purgatories, and learns everything else
// from the metadata image.
//
//	network.Front ──Handle──> Broker ──> handler ──> partitions ──> storage.Log
//	                             │          └──Submit──> Controller ──records──┐
//	                             └────────────── ApplyImage <── image ─────────┘
type Broker struct {
	opts       Options
	log        *slog.Logger
	controller Controller     // driver, as handlers see it
	driver     *driver.Driver // controller and metadata log in this process
	front      *network.Front
	storage    *storage.Manager
	epoch      atomic.Int64 // broker epoch of this registration; 0 before it, when coordinators may be at work already
	faults     *fault.Set
	metrics    *Metrics

	config       atomic.Pointer[config.Layers]
	image        atomic.Pointer[image.Image] // what handlers read; replaced after the partitions follow it
	ordinary     atomic.Pointer[ordinaryTopic]
	table        *partitionTable
	sessions     *fetchSessions
	waiting      *purgatory.Purgatory[*partition] // delayed fetch, delayed produce, AwaitRecords
	awaiting     *purgatory.Purgatory[string]     // AwaitTopic, by topic name
	producers    producerIDs
	groups       *groups       // coordinators; they follow the partitions of their topic
	transactions *transactions // likewise
	upkeep       chan struct{} // one slot: look at the storage manager's deadline again
	stop         chan struct{}
	background   sync.WaitGroup
	late         lateRequests
}

// Image returns the newest metadata image that this broker has applied. It is immutable.
func (b *Broker) Image() *image.Image { return b.image.Load() }

// Config returns the configs in effect: server properties under the dynamic ones of the image. It is immutable.
func (b *Broker) Config() *config.Layers { return b.config.Load() }

// clusterID is the id of the cluster that the log dirs belong to.
func (b *Broker) clusterID() string { return b.storage.ClusterID() }

// Storage returns the broker's logs.
func (b *Broker) Storage() *storage.Manager { return b.storage }

// Metrics returns what the broker counts.
func (b *Broker) Metrics() *Metrics { return b.metrics }

// leads returns the partition that a request names if this broker leads it, and otherwise the error to answer with.
func (b *Broker) leads(t *topic, index int32) (*partition, errcode.Code) {
	p := t.partition(index)
	switch {
	case p == nil:
		return nil, errcode.UnknownTopicOrPartition
	case p.log == nil:
		return nil, errcode.KafkaStorageError
	case !p.isLeader(b.opts.NodeID):
		return p, errcode.NotLeaderOrFollower
	}
	return p, errcode.None
}

// AdvertisedAddr is where clients that came through a listener find this broker.
func (b *Broker) AdvertisedAddr(listener string) (host string, port int32) {
	for i := range b.opts.Listeners {
		if l := &b.opts.Listeners[i]; l.Name == listener {
			return l.Host, l.Port
		}
	}
	return "", -1
}
