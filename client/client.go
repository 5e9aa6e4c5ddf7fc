package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/client/sasl"
	"github.com/ottla-kafka/ottla/wire"
)

// The picture of the cluster; see package machine.
type (
	// Topology is one immutable picture of the cluster.
	Topology = machine.Topology
	// Node is a broker in it.
	Node = machine.Node
	// Topic is a topic in it.
	Topic = machine.Topic
	// Partition is a partition of a topic.
	Partition = machine.Partition
	// Secret is a password or key that never prints.
	Secret = sasl.Secret
)

// Client is a connection to a cluster, shared by any number of producers, consumers and administrators. All
// methods may be called from any goroutine.
type Client struct {
	cfg        Config
	log        *slog.Logger
	tls        *tls.Config // nil without TLS
	writeLimit time.Duration
	meter      Meter
	budget     *Budget

	life   lifetime
	ctx    context.Context // of the client's own goroutines; ends with Close
	cancel context.CancelFunc

	meta   metadata
	coords coordinators

	features atomic.Pointer[machine.Features] // nil until a broker has told of any

	linksMu sync.RWMutex
	links   map[linkKey]*link
	working map[*link]int // see attend
	lanes   atomic.Uint32 // made so far

	randMu sync.Mutex
	rand   machine.Rand
}

// New makes a client. It does no I/O: the first connection is opened by the first call that needs one. The
// error is only ever about the configuration and lists everything that is wrong with it, as errors.Join of *FieldError.
func New(opts ...Option) (*Client, error) {
	cfg := DefaultConfig()
	for _, opt := range opts {
		if opt != nil {
			opt(&cfg)
		}
	}
	return NewFrom(cfg)
}

// NewFrom is New with a finished configuration.
func NewFrom(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, log: cfg.Logger, budget: NewBudget(cfg.MemoryBudget), links: make(map[linkKey]*link), working: make(map[*link]int)}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if cfg.Security.UsesTLS() {
		c.tls = cfg.TLS
		if c.tls == nil {
			built, err := cfg.SSL.Build()
			if err != nil {
				return nil, err
			}
			c.tls = built
		}
	}
	c.writeLimit = min(cfg.WriteTimeout, cfg.RequestTimeout)
	seed := cfg.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	c.rand = machine.NewRand(seed)
	c.life.gone = make(chan struct{})
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.meta.init(c)
	c.coords.nodes = make(map[coordKey]int32)
	for _, w := range cfg.Lint() {
		c.log.Warn("kafka: configuration: " + w)
	}
	return c, nil
}

// Close ends every connection and goroutine of the client. Calls under way end with ErrClosed. It returns
// when all goroutines are gone, or with context.Cause(ctx) when ctx ends first; everything is told to end then all the
// same, also by a ctx that had ended before. Further calls do the same.
func (c *Client) Close(ctx context.Context) error {
	if c.life.close() {
		c.cancel()
		for _, l := range c.atWork() {
			l.close()
		}
	}
	return c.life.wait(ctx)
}

// attend counts the goroutines of a link: one more when it begins, before it looks at c.ctx, one less when it ends. A
// lane that was freed is at work until its last answer, and found here alone.
func (c *Client) attend(l *link, by int) {
	c.linksMu.Lock()
	defer c.linksMu.Unlock()
	if c.working[l] += by; c.working[l] == 0 {
		delete(c.working, l)
	}
}

func (c *Client) atWork() []*link {
	c.linksMu.RLock()
	defer c.linksMu.RUnlock()
	return slices.Collect(maps.Keys(c.working))
}

// closing is closed when Close has been called.
func (c *Client) closing() <-chan struct{} { return c.ctx.Done() }

// Config is a copy of the configuration in use.
func (c *Client) Config() Config { return c.cfg }

// Logger is the configured logger, never nil.
func (c *Client) Logger() *slog.Logger { return c.log }

// Issue sends one request to one broker, once. It does not block: the outcome goes to call.Done. Calls of one
// broker and purpose are written in the order in which they are issued, and pipelined.
func (c *Client) Issue(broker int32, p Purpose, call *Call) {
	l, err := c.link(broker, p)
	if err != nil {
		c.newLink(broker, p).refuse(call, err) // a link only to word the error
		return
	}
	l.issue(call)
}

// link finds or makes the link; not when the broker is not known or the client is closed.
func (c *Client) link(broker int32, p Purpose) (*link, error) {
	key := linkKey{broker, p}
	c.linksMu.RLock()
	l := c.links[key]
	c.linksMu.RUnlock()
	if l != nil {
		return l, nil
	}
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if _, err := c.addrOf(broker); err != nil {
		return nil, err
	}
	c.linksMu.Lock()
	defer c.linksMu.Unlock()
	if l = c.links[key]; l == nil {
		l = c.newLink(broker, p)
		c.links[key] = l
	}
	return l, nil
}

func (c *Client) allLinks() []*link {
	c.linksMu.RLock()
	defer c.linksMu.RUnlock()
	out := make([]*link, 0, len(c.links))
	for _, l := range c.links {
		out = append(out, l)
	}
	return out
}

// existing is the link if there is one.
func (c *Client) existing(broker int32, p Purpose) *link {
	c.linksMu.RLock()
	defer c.linksMu.RUnlock()
	return c.links[linkKey{broker, p}]
}

// adoptSeeds gives the links to seeds the ids that metadata has for their addresses, so that there are not two
// connections to one broker. A seed that is no broker's address (a load balancer, another name of a host) is
// retired: from now on there are better addresses.
func (c *Client) adoptSeeds(top *Topology) {
	byAddr := make(map[string]int32, len(top.Brokers))
	for id, n := range top.Brokers {
		byAddr[n.Addr()] = id
	}
	var retired []*link
	c.linksMu.Lock()
	for i, seed := range c.cfg.Seeds {
		for p := range Purpose(purposes) {
			l := c.links[linkKey{machine.SeedID(i), p}]
			if l == nil {
				continue
			}
			id, known := byAddr[seed]
			if known && c.links[linkKey{id, p}] == nil {
				delete(c.links, linkKey{machine.SeedID(i), p})
				c.links[linkKey{id, p}] = l
				l.mu.Lock()
				l.broker = id
				l.mu.Unlock()
			} else {
				retired = append(retired, l)
			}
		}
	}
	c.linksMu.Unlock()
	for _, l := range retired {
		l.retire()
	}
}

// Throttle mutes the connection of a broker and purpose for d, as an answer's throttle_time_ms asks (KIP-219).
// The client does it by itself for answers that begin with that field, which are nearly all; a producer calls
// it, because a produce answer has the field at its end.
func (c *Client) Throttle(broker int32, p Purpose, key wire.Key, d time.Duration) {
	if l := c.existing(broker, p); l != nil && d > 0 {
		l.throttled(time.Now(), key, d)
	}
}

// jittered draws a wait.
func (c *Client) jittered(b machine.Backoff, failures int) time.Duration {
	c.randMu.Lock()
	defer c.randMu.Unlock()
	return b.After(failures, &c.rand)
}

// shortened is 85 to 95 % of a login's lifetime, as Kafka's clients take it.
func (c *Client) shortened(life time.Duration) time.Duration {
	c.randMu.Lock()
	defer c.randMu.Unlock()
	return time.Duration(float64(life) * (0.85 + 0.10*c.rand.Float64()))
}
