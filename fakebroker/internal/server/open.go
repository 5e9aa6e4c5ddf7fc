package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/controller/driver"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/fakebroker/internal/purgatory"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
)

// A Listener is one of the broker's listeners, already bound.
type Listener struct {
	Name     string // such as PLAINTEXT
	Host     string // where clients are told to find it
	Port     int32
	Listener net.Listener
	TLS      *tls.Config // nil = plain
	SASL     bool        // authentication comes first
}

// protocol is the listener's security protocol as registrations name it.
func (l *Listener) protocol() image.SecurityProtocol {
	switch {
	case l.TLS != nil && l.SASL:
		return image.SASLSSL
	case l.TLS != nil:
		return image.SSL
	case l.SASL:
		return image.SASLPlaintext
	}
	return image.Plaintext
}

// Open starts a broker with its controller: it locks and recovers the log dirs, replays the metadata log (or formats a
// new one), takes the lead of the single-voter quorum, registers, and serves. When Open returns, clients are answered.
// On an error everything that was started has ended again.
//
//	log dirs -> metadata log -> image -> partitions' logs -> publishing -> registration -> listeners
func Open(ctx context.Context, opts Options) (*Broker, error) {
	b := &Broker{
		opts:     opts,
		log:      opts.Logger,
		faults:   opts.Faults,
		metrics:  &Metrics{},
		table:    newPartitionTable(),
		waiting:  purgatory.New[*partition](),
		awaiting: purgatory.New[string](),
		upkeep:   make(chan struct{}, 1),
		stop:     make(chan struct{}),
	}
	b.config.Store(opts.Config)
	b.image.Store(image.Empty())
	if err := b.open(ctx); err != nil {
		for i := range opts.Listeners {
			_ = opts.Listeners[i].Listener.Close()
		}
		return nil, errors.Join(err, b.shut(time.Now()))
	}
	return b, nil
}

func (b *Broker) open(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	now := time.Now()
	if err := b.adoptClusterID(); err != nil {
		return err
	}
	m, err := storage.NewManager(b.storageOptions(), now)
	if err != nil {
		return fmt.Errorf("open log dirs %s: %w", strings.Join(b.opts.Dirs, ","), err)
	}
	b.storage = m
	dirs := make([]wire.UUID, len(b.opts.Dirs))
	for i, dir := range b.opts.Dirs {
		dirs[i] = m.DirectoryID(dir)
	}
	d, err := driver.Open(driver.Options{
		FS:          b.opts.FS,
		Dir:         b.opts.Dirs[0],
		NodeID:      b.opts.NodeID,
		ClusterID:   m.ClusterID(),
		DirectoryID: dirs[0],
		Config:      b.opts.Config,
		Controller:  b.controllerEndpoint(),
		Levels:      b.opts.Levels,
		NewUUID:     b.opts.NewUUID,
		Rand:        func(n int) int { return int(b.opts.Random(int64(n))) },
		Logger:      b.log,
	})
	if err != nil {
		return fmt.Errorf("open metadata log: %w", err)
	}
	b.driver, b.controller = d, d
	img := d.Image()
	own := config.Resource{Type: config.BrokerResource, Name: b.nodeName()}
	b.config.Store(b.Config().With(img.Configs(own), img.Configs(config.Resource{Type: config.BrokerResource})))
	if err := m.LoadLogs(func(topic string) storage.LogConfig { return b.topicConfig(img, topic).log }, now); err != nil {
		return fmt.Errorf("load logs: %w", err)
	}
	b.sessions = newFetchSessions(int(b.Config().Int("max.incremental.fetch.session.cache.slots")), b.opts.Random)
	b.background.Add(1)
	go b.keepUp()
	b.groups = newGroups(b)
	b.transactions = newTransactions(b)
	d.Start(b.ApplyImage)
	epoch, err := d.Register(ctx, b.registration(dirs))
	if err != nil {
		return fmt.Errorf("register with the controller: %w", err)
	}
	b.epoch.Store(epoch)
	b.front = network.NewFront(b.frontConfig(), b)
	for i := range b.opts.Listeners {
		l := &b.opts.Listeners[i]
		b.front.Serve(network.Listener{Name: l.Name, Listener: l.Listener, TLS: l.TLS, Auth: l.SASL})
	}
	return nil
}

// adoptClusterID keeps the id that a log dir has already, unless another one was asked for; a new cluster gets a new one.
func (b *Broker) adoptClusterID() error {
	if b.opts.ClusterID != "" {
		return nil
	}
	text, err := vfs.ReadFile(b.opts.FS, filepath.Join(b.opts.Dirs[0], storage.MetaPropertiesFile))
	switch {
	case errors.Is(err, vfs.ErrNotExist):
		b.opts.ClusterID = b.opts.NewUUID().String()
		return nil
	case err != nil:
		return fmt.Errorf("read the cluster id: %w", err)
	}
	p, err := storage.ParseMetaProperties(text)
	b.opts.ClusterID = p.ClusterID
	return err
}

// controllerEndpoint is what the voter set of a new cluster says about this node. Nothing listens there yet: the quorum
// is this process. Apache Kafka, started on the folder, puts its own endpoint in.
func (b *Broker) controllerEndpoint() *driver.Endpoint {
	first := &b.opts.Listeners[0]
	return &driver.Endpoint{Name: "CONTROLLER", Host: first.Host, Port: uint16(first.Port + 1)}
}

func (b *Broker) registration(dirs []wire.UUID) driver.Registration {
	r := driver.Registration{BrokerID: b.opts.NodeID, Rack: b.opts.Rack, Directories: dirs, PreviousBrokerEpoch: b.storage.PreviousBrokerEpoch()}
	for i := range b.opts.Listeners {
		l := &b.opts.Listeners[i]
		r.Listeners = append(r.Listeners, driver.Endpoint{Name: l.Name, Host: l.Host, Port: uint16(l.Port), SecurityProtocol: int16(l.protocol())})
	}
	return r
}

func (b *Broker) storageOptions() storage.ManagerOptions {
	c := b.opts.Config
	return storage.ManagerOptions{
		FS:                     b.opts.FS,
		Dirs:                   b.opts.Dirs,
		ClusterID:              b.opts.ClusterID,
		NodeID:                 b.opts.NodeID,
		NewUUID:                b.opts.NewUUID,
		Jitter:                 b.opts.Random,
		Logger:                 b.log,
		Bugs:                   b.opts.Bugs,
		ProducerIDExpirationMs: c.Int("producer.id.expiration.ms"),
		RetentionCheckMs:       c.Int("log.retention.check.interval.ms"),
		RecoveryCheckpointMs:   c.Int("log.flush.offset.checkpoint.interval.ms"),
		StartCheckpointMs:      c.Int("log.flush.start.offset.checkpoint.interval.ms"),
		HighWatermarkCheckMs:   c.Int("replica.high.watermark.checkpoint.interval.ms"),
		ProducerCheckMs:        c.Int("producer.id.expiration.check.interval.ms"),
		OnDirFailure: func(dir string, err error) {
			b.log.Error("log dir has failed; its partitions are offline", "dir", dir, "err", err)
		},
	}
}

// frontConfig maps the broker's network configs; where Apache Kafka has no limit by default, ours holds (network.Config
// says which).
func (b *Broker) frontConfig() network.Config {
	c, f := b.Config(), network.Defaults()
	f.Logger = b.log
	f.IOThreads = int(c.Int("num.io.threads"))
	f.QueuedMaxRequests = int(c.Int("queued.max.requests"))
	f.RequestMaxBytes = int32(c.Int("socket.request.max.bytes"))
	f.LoginMaxBytes = int32(c.Int("sasl.server.max.receive.size"))
	f.MaxIdle = time.Duration(c.Int("connections.max.idle.ms")) * time.Millisecond
	set := c.Static()
	if _, ok := set["socket.send.buffer.bytes"]; ok {
		f.SendBufferBytes = int(c.Int("socket.send.buffer.bytes"))
	}
	if _, ok := set["socket.receive.buffer.bytes"]; ok {
		f.ReceiveBufferBytes = int(c.Int("socket.receive.buffer.bytes"))
	}
	if _, ok := set["queued.max.request.bytes"]; ok && c.Int("queued.max.request.bytes") > 0 {
		f.QueuedMaxBytes = c.Int("queued.max.request.bytes")
	}
	if _, ok := set["max.connections"]; ok {
		f.MaxConnections = int(c.Int("max.connections"))
	}
	if _, ok := set["max.connections.per.ip"]; ok {
		f.CountLoopback = true
		f.MaxConnectionsPerIP = int(c.Int("max.connections.per.ip"))
	}
	return f
}

// Disconnect closes every client connection; the listeners go on accepting.
func (b *Broker) Disconnect() { b.front.Disconnect() }

// Connections returns how many client connections are open.
func (b *Broker) Connections() int { return b.front.Connections() }

// Close stops serving, ends all waits, and closes controller and logs as a clean stop does. Nothing acknowledged is
// lost, and every goroutine has ended.
func (b *Broker) Close() error { return b.shut(time.Now()) }

// Cut closes listeners and connections at once and waits for nothing. Close is still to be called.
func (b *Broker) Cut() { b.front.Cut() }

// shut ends what was started, in reverse; parts that were never started are passed over.
func (b *Broker) shut(now time.Time) error {
	if b.front != nil {
		b.front.Close()
	}
	if b.groups != nil {
		b.groups.close()
	}
	if b.transactions != nil {
		b.transactions.close()
	}
	b.waiting.Close()
	b.awaiting.Close()
	close(b.stop)
	var errs []error
	if b.driver != nil {
		errs = append(errs, b.driver.Close())
	}
	b.background.Wait()
	if b.storage != nil {
		errs = append(errs, b.storage.Close(b.epoch.Load(), now))
	}
	return errors.Join(errs...)
}
