package fakebroker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/server"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
)

// memoryDir is log.dirs of a cluster in memory.
const memoryDir = "/kafka-logs"

// A Cluster is a running (or stopped) cluster of one node. Its methods may be called from any goroutine.
type Cluster struct {
	settings *Settings
	layers   map[string]string // server properties but for the listeners
	node     int32
	fs       vfs.FS
	dir      string
	faults   fault.Set

	life      chan struct{} // one slot: Stop, Crash, Restart and Close one at a time
	mu        sync.Mutex
	listeners []*bound
	broker    *server.Broker // nil while stopped
	process   *vfs.Process   // the broker's hold on fs; belongs to whoever has life
	muzzle    *atomic.Bool   // silences the broker's log; likewise
	closed    bool
}

// TB is the part of testing.TB that Start needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Output() io.Writer
}

// Start starts a cluster for a test: it fails the test on an error, logs to the test's output, and closes the cluster
// when the test ends. It costs about a millisecond: a test may have a cluster of its own.
func Start(tb TB, opts ...Option) *Cluster {
	tb.Helper()
	log := slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	k, err := New(append([]Option{Logger(log)}, opts...)...)
	if err != nil {
		tb.Fatalf("fakebroker.Start: %v", err)
	}
	tb.Cleanup(func() {
		if err := k.Close(context.Background()); err != nil {
			log.Error("fakebroker: close", "err", err)
		}
	})
	return k
}

// New starts a cluster. When it returns, clients are served and the topics are there. The caller closes it.
func New(opts ...Option) (*Cluster, error) {
	s := NewSettings(opts...)
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("fakebroker: %w", err)
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	k := &Cluster{settings: s, life: make(chan struct{}, 1), fs: vfs.NewMem(), dir: memoryDir}
	if s.Dir != "" {
		k.fs, k.dir = vfs.OSFS{}, s.Dir
	}
	if s.Disk != nil {
		k.fs = nil
	}
	if err := k.properties(); err != nil {
		return nil, fmt.Errorf("fakebroker: %w", err)
	}
	k.listeners = plan(s, k.node)
	if err := k.start(context.Background()); err != nil {
		return nil, fmt.Errorf("fakebroker: %w", err)
	}
	if err := k.createTopics(context.Background(), s.Topics, true); err != nil {
		return nil, errors.Join(fmt.Errorf("fakebroker: %w", err), k.Close(context.Background()))
	}
	return k, nil
}

// properties completes the server properties with what the settings imply.
func (k *Cluster) properties() error {
	k.layers = map[string]string{
		"node.id":                   "1",
		"process.roles":             "broker,controller",
		"controller.listener.names": "CONTROLLER",
		"log.dirs":                  k.dir,
		// One node cannot hold the three replicas that internal topics have by default; Apache Kafka's example
		// server.properties sets the same.
		"offsets.topic.replication.factor":         "1",
		"transaction.state.log.replication.factor": "1",
		"transaction.state.log.min.isr":            "1",
	}
	for name, value := range k.settings.Properties {
		k.layers[name] = value
	}
	if len(k.settings.Users) > 0 {
		k.layers["sasl.enabled.mechanisms"] = "PLAIN"
	}
	id, err := strconv.ParseInt(k.layers["node.id"], 10, 32)
	if err != nil || id < 0 {
		return fmt.Errorf("node.id %q is no broker id", k.layers["node.id"])
	}
	k.node = int32(id)
	_, err = config.NewLayers(k.layers)
	return err
}

// start opens listeners and broker; nothing of them is left after an error.
func (k *Cluster) start(ctx context.Context) error {
	var open []server.Listener
	fail := func(err error) error {
		for i := range open {
			_ = open[i].Listener.Close()
		}
		return err
	}
	k.mu.Lock()
	for _, l := range k.listeners {
		b, err := l.bind()
		if err != nil {
			k.mu.Unlock()
			return fail(err)
		}
		open = append(open, b)
	}
	props := listenerProperties(k.listeners)
	k.mu.Unlock()
	for name, value := range k.layers {
		props[name] = value
	}
	layers, err := config.NewLayers(props)
	if err != nil {
		return fail(err)
	}
	levels, err := image.ChosenLevels(k.settings.Features)
	if err != nil {
		return fail(err)
	}
	if d := k.settings.Disk; d != nil {
		k.fs = d(k.fs)
	}
	k.process, k.muzzle = vfs.NewProcess(k.fs), new(atomic.Bool)
	b, err := server.Open(ctx, server.Options{
		Config:          layers,
		FS:              k.process,
		Dirs:            []string{k.dir},
		NodeID:          k.node,
		ClusterID:       k.settings.ClusterID,
		Listeners:       open,
		Users:           k.settings.Users,
		Faults:          &k.faults,
		Logger:          slog.New(muzzled{k.settings.Logger.Handler(), k.muzzle}),
		NewUUID:         newUUID,
		Random:          random,
		Bugs:            k.settings.Bugs,
		Levels:          levels,
		FailedAuthDelay: time.Duration(layers.Int("connection.failed.authentication.delay.ms")) * time.Millisecond,
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.broker = b
	k.mu.Unlock()
	return nil
}

func newUUID() wire.UUID {
	id, err := wire.RandomUUID(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return id
}

func random(n int64) int64 {
	v, err := rand.Int(rand.Reader, big.NewInt(n))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return v.Int64()
}

// ErrStopped is returned by what needs a running broker.
var ErrStopped = errors.New("fakebroker: the broker is stopped")

// running returns the broker, or ErrStopped.
func (k *Cluster) running() (*server.Broker, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broker == nil {
		return nil, ErrStopped
	}
	return k.broker, nil
}

// exclusive lets one of Stop, Crash, Restart and Close work at a time.
func (k *Cluster) exclusive(ctx context.Context) (release func(), err error) {
	select {
	case k.life <- struct{}{}:
		return func() { <-k.life }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Stop stops the broker as SIGTERM does: connections are closed, logs are flushed and closed. Addresses and data stay
// for Restart, in memory too. Stopping a stopped cluster does nothing.
func (k *Cluster) Stop(ctx context.Context) error {
	release, err := k.exclusive(ctx)
	if err != nil {
		return err
	}
	defer release()
	return k.stop(ctx)
}

// stop returns when the broker has ended or with ctx; in the latter case it goes on ending.
func (k *Cluster) stop(ctx context.Context) error {
	k.mu.Lock()
	b := k.broker
	k.broker = nil
	k.mu.Unlock()
	if b == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- b.Close() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("fakebroker: the broker is still closing its logs: %w", context.Cause(ctx))
	}
}

// Restart stops the broker if it runs and starts it again, with the same addresses and data. Fault rules stay.
func (k *Cluster) Restart(ctx context.Context) error {
	release, err := k.exclusive(ctx)
	if err != nil {
		return err
	}
	defer release()
	if k.closed {
		return errors.New("fakebroker: the cluster is closed")
	}
	if err := k.stop(ctx); err != nil {
		return err
	}
	return k.start(ctx)
}

// Close stops the broker for good. It may be called more than once. What was in memory is gone.
func (k *Cluster) Close(ctx context.Context) error {
	release, err := k.exclusive(ctx)
	if err != nil {
		return err
	}
	defer release()
	k.closed = true
	return k.stop(ctx)
}

// Inject puts a fault rule to work; see package fault.
func (k *Cluster) Inject(r fault.Rule) *fault.Injection { return k.faults.Add(r) }

// Disconnect closes every client connection and goes on accepting new ones. A connection that is being opened at this
// moment may stay; one that has had an answer does not.
func (k *Cluster) Disconnect() {
	if b, err := k.running(); err == nil {
		b.Disconnect()
	}
}
