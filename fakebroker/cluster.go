package fakebroker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"strings"
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

// A Cluster is a running (or stopped) cluster of one node. Its methods may be called from any goroutine. Under a context
// that has ended already they return its cause and begin nothing, but for Close; what needs a running broker returns
// ErrStopped when there is none, or it stops meanwhile.
type Cluster struct {
	settings *Settings
	layers   map[string]string // server properties but for the listeners
	node     int32
	fs       vfs.FS
	dir      string
	faults   fault.Set

	life    chan struct{} // one slot: Stop, Crash, Restart and Close one at a time; what follows belongs to whoever has it
	process *vfs.Process  // the broker's hold on fs
	muzzle  *atomic.Bool  // silences the broker's log
	ending  *ending       // of the last broker, while it is not known to be over
	closed  bool

	mu        sync.Mutex
	listeners []*bound
	broker    *server.Broker  // nil while stopped
	up        context.Context // ends with broker, its cause is ErrStopped
	down      context.CancelCauseFunc
}

// ending is a broker that closes.
type ending struct {
	over chan struct{} // closed when it has
	err  error         // what it says then
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

// located is an error of the data folder with its name, which the operating system's may lack.
func (s *Settings) located(err error) error {
	if s.Dir == "" || strings.Contains(err.Error(), s.Dir) {
		return err
	}
	return fmt.Errorf("data in %s: %w", s.Dir, err)
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
	layers, err := config.NewLayers(k.layers)
	if err != nil {
		return err
	}
	id := layers.Int("node.id")
	if id < 0 {
		return &config.InvalidValueError{Key: "node.id", Value: k.layers["node.id"], Reason: "Value must be at least 0"}
	}
	k.node = int32(id)
	return nil
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
		return k.settings.located(err)
	}
	k.mu.Lock()
	k.broker = b
	k.up, k.down = context.WithCancelCause(context.Background())
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

// ErrStopped is returned by what needs a running broker, also when the broker stops in the middle of it.
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

// begun returns the cause of a ctx that has ended already: nothing is begun under it.
func begun(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("fakebroker: not begun: %w", context.Cause(ctx))
	}
	return nil
}

// with runs f on the running broker. The context of f ends with ctx, and with ErrStopped when the broker stops: nobody
// would answer any more.
func (k *Cluster) with(ctx context.Context, f func(ctx context.Context, b *server.Broker) error) error {
	if err := begun(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	b, up := k.broker, k.up
	k.mu.Unlock()
	if b == nil {
		return ErrStopped
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(up, func() { cancel(ErrStopped) })()
	err := f(ctx, b)
	if errors.Is(err, server.ErrClosed) {
		return fmt.Errorf("%w: %w", ErrStopped, err) // it was quicker than the context
	}
	return err
}

// about says what an error is about.
func about(what, id string, err error) error {
	if err != nil {
		return fmt.Errorf("fakebroker: %s %s: %w", what, id, err)
	}
	return nil
}

// exclusive lets one of Stop, Crash, Restart and Close work at a time. Whoever need not wait is let in, even if ctx has
// ended.
func (k *Cluster) exclusive(ctx context.Context) (release func(), err error) {
	release = func() { <-k.life }
	select {
	case k.life <- struct{}{}:
		return release, nil
	default:
	}
	select {
	case k.life <- struct{}{}:
		return release, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("fakebroker: another Stop, Crash, Restart or Close is still at work: %w", context.Cause(ctx))
	}
}

// Stop stops the broker as SIGTERM does: connections are closed, logs are flushed and closed. Addresses and data stay
// for Restart, in memory too. Stopping a stopped cluster does nothing. When ctx ends before the broker has, the broker
// goes on closing, and the next Stop, Restart or Close waits for it.
func (k *Cluster) Stop(ctx context.Context) error {
	if err := begun(ctx); err != nil {
		return err
	}
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
	if b != nil {
		k.down(ErrStopped)
	}
	k.mu.Unlock()
	if b != nil {
		e := &ending{over: make(chan struct{})}
		k.ending = e
		go func() { // ends with the broker
			e.err = b.Close()
			close(e.over)
		}()
	}
	e := k.ending
	if e == nil {
		return nil
	}
	select {
	case <-e.over:
	case <-ctx.Done():
		select {
		case <-e.over: // at the same moment
		default:
			return fmt.Errorf("fakebroker: the broker is still closing its logs: %w", context.Cause(ctx))
		}
	}
	k.ending = nil
	return e.err
}

// Restart stops the broker if it runs and starts it again, with the same addresses and data. Fault rules stay.
func (k *Cluster) Restart(ctx context.Context) error {
	if err := begun(ctx); err != nil {
		return err
	}
	release, err := k.exclusive(ctx)
	if err != nil {
		return err
	}
	defer release()
	if k.closed {
		return errors.New("fakebroker: Close has ended the cluster for good; Stop is for one that is to start again")
	}
	if err := k.stop(ctx); err != nil {
		return err
	}
	return k.start(ctx)
}

// Close stops the broker for good. It may be called more than once. What was in memory is gone. It does so also when ctx
// has ended or ends: then it returns the cause, and the broker goes on closing.
func (k *Cluster) Close(ctx context.Context) error {
	release, err := k.exclusive(ctx)
	if err != nil {
		go func() { // ends when what is at work has, and the broker
			release, _ := k.exclusive(context.Background())
			defer release()
			k.closed = true
			_ = k.stop(context.Background()) // nobody is left to hear of it
		}()
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
