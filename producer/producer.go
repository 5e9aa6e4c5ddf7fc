package producer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer/internal/buffer"
	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/producer/partition"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// Producer sends records. All methods may be called from any goroutine; callbacks of one partition run one after the
// other, in the order in which its records were submitted.
type Producer struct {
	cl       *client.Client
	ownsCl   bool
	cfg      Config
	meter    *client.Meter
	mem      *buffer.Memory
	batches  shelf
	waiters  sync.Pool // of *waiter
	loop     *loop
	teller   *teller
	packer   *packer
	unpacker *compress.Decompressor // for splitting and rebuilding batches

	topicsMu  sync.Mutex      // for adding; reading needs none
	tracked   map[string]bool // topics the client keeps track of for us; under topicsMu
	topics    atomic.Pointer[map[string]*topic]
	lastTopic atomic.Pointer[topic] // the one sent to last: saves a look-up in a map

	// Of transactions; see transactional.go. The gate is the number of the transaction that takes records, zero when
	// none does and in a producer without transactions, whose records have the number zero.
	gate  atomic.Uint64
	txnID *string
	hooks Hooks

	rack string // for the sticky partitioner, empty when it does not care

	closed       atomic.Bool   // by the first Close
	dead         chan struct{} // closed when that one is through
	life         sync.WaitGroup
	quit         context.Context // ends with the producer; for requests of its own
	quitNow      context.CancelFunc
	stopTopology func()
	closeErr     error // of the first Close, once dead is closed
}

// New makes a producer on a client, which stays the caller's to close, after the producer. It does no I/O: brokers are
// asked when the first record comes. request.timeout.ms, retry.backoff.ms and retry.backoff.max.ms are the client's unless
// an option says otherwise. The error lists everything that is wrong with the configuration, as errors.Join of
// *client.FieldError.
func New(cl *client.Client, opts ...Option) (*Producer, error) {
	cfg := DefaultConfig()
	base := cl.Config()
	cfg.RequestTimeout = base.RequestTimeout
	cfg.RetryBackoff, cfg.RetryBackoffMax = base.RetryBackoff, base.RetryBackoffMax
	cfg.apply(opts)
	return NewFromConfig(cl, cfg)
}

// NewFromConfig is New with a whole configuration, from FromProperties for example. Nothing of it is the client's.
func NewFromConfig(cl *client.Client, cfg Config) (*Producer, error) {
	if len(cfg.client) > 0 {
		cfg.problems = append(cfg.problems, errors.New("producer.Client is for Dial; New is given a client, which has its options"))
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return start(cl, cfg, nil, Hooks{})
}

// Dial makes a producer with a client of its own, which Close closes. It does no I/O either. Options for the client
// go in with Client; request.timeout.ms and the back-off hold for the client too.
func Dial(seeds []string, opts ...Option) (*Producer, error) {
	cfg := DefaultConfig()
	cfg.apply(opts)
	copts := append([]client.Option{client.Seeds(seeds...), client.RequestTimeout(cfg.RequestTimeout),
		client.RetryBackoff(cfg.RetryBackoff, cfg.RetryBackoffMax)}, cfg.client...)
	cfg.client = nil
	err := cfg.Validate()
	cl, clErr := client.New(copts...)
	if err = errors.Join(clErr, err); err != nil {
		if cl != nil {
			_ = cl.Close(context.Background())
		}
		return nil, err
	}
	p, err := start(cl, cfg, nil, Hooks{})
	if err != nil {
		return nil, errors.Join(err, cl.Close(context.Background()))
	}
	p.ownsCl = true
	return p, nil
}

func start(cl *client.Client, cfg Config, txnID *string, hooks Hooks) (*Producer, error) {
	for _, w := range cfg.Lint() {
		cl.Logger().Warn("kafka producer: " + w)
	}
	seed := cl.Config().Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	p := &Producer{
		cl: cl, cfg: cfg, meter: cl.Meter(), txnID: txnID, hooks: hooks,
		mem:      buffer.New(int(cfg.BufferMemory)),
		unpacker: compress.NewDecompressor(),
		tracked:  make(map[string]bool),
		dead:     make(chan struct{}),
	}
	if _, limit := cl.Budget().Used(); limit > 0 {
		p.mem.Shared = cl.Budget()
	}
	p.mem.Changed = func(delta int) { p.meter.Buffered.Add(int64(delta)) }
	p.quit, p.quitNow = context.WithCancel(context.Background())
	p.topics.Store(&map[string]*topic{})
	if cfg.IgnoreKeys {
		p.cfg.Partitioner = partition.IgnoreKeys
	}
	if cfg.RackAware {
		p.rack = cl.Config().Rack
	}
	var err error
	if p.packer, err = newPacker(p); err != nil {
		return nil, err
	}
	p.loop = newLoop(p, machine.New(machine.Config{
		Linger: cfg.Linger, DeliveryTimeout: cfg.DeliveryTimeout,
		RetryBackoff: cfg.RetryBackoff, RetryBackoffMax: cfg.RetryBackoffMax, Retries: cfg.Retries,
		MaxInFlight: cfg.MaxInFlight, MaxRequestSize: cfg.MaxRequestSize,
		Idempotent: cfg.Idempotence, Compressed: cfg.Compression != compress.None, NoAcks: cfg.Acks == AcksNone,
		Transactional: txnID != nil, Seed: seed,
	}))
	p.teller = &teller{p: p, most: maxUntold, wake: make(chan struct{}, 1)}
	p.life.Add(2)
	go p.loop.main()   // until Close
	go p.teller.main() // until Close
	p.stopTopology = cl.OnTopology(func(top *client.Topology) {
		p.loop.control(func() { p.loop.follow(top) })
	})
	return p, nil
}

// Config is a copy of the configuration in use.
func (p *Producer) Config() Config { return p.cfg }

// Client is the client the producer works on.
func (p *Producer) Client() *client.Client { return p.cl }

// Warm fetches the metadata of topics before the first record needs it, so that Submit and TrySubmit do not wait. It
// waits itself, as long as ctx and, for each topic, max.block.ms allow. The error joins those of the topics.
func (p *Producer) Warm(ctx context.Context, topics ...string) error {
	if err := context.Cause(ctx); err != nil {
		return notWritten(fmt.Errorf("warm: %w", err))
	}
	var errs []error
	for _, name := range topics {
		if _, err := p.topic(ctx, name, true); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Partitions is the number of partitions of a topic; it may wait for metadata like Submit.
func (p *Producer) Partitions(ctx context.Context, name string) (int32, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, notWritten(fmt.Errorf("partitions of %s: %w", name, err))
	}
	t, err := p.topic(ctx, name, true)
	if err != nil {
		return 0, err
	}
	return int32(len(*t.parts.Load())), nil
}

// Flush sends what is buffered without lingering, and waits until every record submitted before has its verdict and
// its callback has run. It returns ctx's cause when ctx ends first; nothing is lost then, and a ctx that has ended
// already hurries nothing. It does not report records that failed, their callbacks do. Do not call it from a callback: it
// would wait for itself.
func (p *Producer) Flush(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	select {
	case <-p.dead:
		return ErrClosed
	default:
	}
	f := &flush{done: make(chan struct{})}
	f.left.Store(1) // kept while the batches are counted
	p.loop.control(func() { p.loop.flush(f) })
	select {
	case <-f.done:
	case <-ctx.Done():
	case <-p.dead:
	}
	p.loop.control(func() { p.loop.event(machine.Event{Kind: machine.Relaxed}) })
	select {
	case <-f.done: // perhaps at the same moment as another
		return nil
	default:
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return ErrClosed
}

// Close refuses further records, flushes, and ends the producer's goroutines (and the client, if Dial made it). When
// ctx ends first, or has ended before, the records still on the way are given up and their callbacks told; the error is
// then a *LostError that counts them, or ctx's cause when there were none. Every record gets its one verdict either way.
// Further calls wait for the first, as long as their ctx allows, and return the same.
func (p *Producer) Close(ctx context.Context) error {
	if p.closed.Swap(true) {
		select {
		case <-p.dead:
			return p.closeErr
		default:
		}
		select {
		case <-p.dead:
			return p.closeErr
		case <-ctx.Done():
			return fmt.Errorf("close: %w", context.Cause(ctx))
		}
	}
	p.closeErr = p.shutDown(ctx)
	close(p.dead)
	return p.closeErr
}

func (p *Producer) shutDown(ctx context.Context) (err error) {
	p.topicsMu.Lock() // no topic is added from here on
	topics := *p.topics.Load()
	tracked := slices.Collect(maps.Keys(p.tracked))
	p.topicsMu.Unlock()
	for _, t := range topics {
		for _, pt := range *t.parts.Load() {
			pt.mu.Lock()
			pt.closed = true
			pt.mu.Unlock()
		}
	}
	p.mem.Close()
	if flushErr := p.Flush(ctx); flushErr != nil {
		lost := make(chan LostError, 1)
		p.loop.control(func() { p.loop.abort(lost) })
		n := <-lost // at once: the runner does not block
		n.Err = context.Cause(ctx)
		if n.NotWritten+n.Unknown > 0 {
			err = &n
		} else {
			err = flushErr
		}
	}
	p.stopTopology()
	p.cl.RemoveTopics(tracked...)
	p.quitNow()
	close(p.loop.stop)
	p.teller.stop()
	p.packer.stop()
	gone := make(chan struct{})
	go func() { // ends when the callbacks that run have returned
		p.life.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done(): // a callback that does not return must not hold up Close
	}
	if p.ownsCl {
		err = errors.Join(err, p.cl.Close(ctx))
	}
	return err
}
