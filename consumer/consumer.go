package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/internal/fetch"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// Consumer reads partitions that it is assigned, or as a member of a group those that the group gives it. One goroutine
// reads at a time, with Records, Batches, Poll, Run or Serve; all other methods may be called from any goroutine, also from
// inside a loop.
type Consumer struct {
	cfg    Config
	cl     *client.Client
	owned  bool // made by Dial: Close closes the client too
	driver *fetch.Driver
	reader *fetch.Reader

	group   *group        // nil without a subscription
	held    []*fetch.Cell // with a group: of what the loop or Poll handed out last; the reader's
	closing atomic.Bool
}

// New makes a consumer on a client, which stays the caller's to close, after the consumer. It does no I/O itself:
// brokers are asked from the consumer's goroutines as soon as there is a partition to read; a group is joined by the first
// call that reads or commits. The error is only ever about the configuration and lists everything that is wrong with it.
func New(cl *client.Client, opts ...Option) (*Consumer, error) {
	cfg := DefaultConfig()
	for _, o := range opts {
		o(&cfg)
	}
	return NewFromConfig(cl, cfg)
}

// NewFromConfig is New with a Config made by hand or by FromProperties; begin with DefaultConfig, since zero means
// zero.
func NewFromConfig(cl *client.Client, cfg Config) (*Consumer, error) {
	if cl == nil {
		return nil, errors.New("consumer: the client is nil")
	}
	err := cfg.Validate()
	if len(cfg.client) > 0 {
		err = errors.Join(err, errors.New("consumer.Client is for Dial; New is given a client that has its options already"))
	}
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	of := cl.Config()
	if cfg.APITimeout == 0 {
		cfg.APITimeout = of.APITimeout
	}
	if cfg.Rack == "" {
		cfg.Rack = of.Rack
	}
	if cfg.Group.subscribes() {
		member := cfg.Group.member(cfg.Rack)
		if err := member.Validate(); err != nil {
			return nil, fmt.Errorf("consumer: %w", err)
		}
	}
	for _, line := range cfg.Lint() {
		cl.Logger().Warn("kafka consumer: " + line)
	}
	c := &Consumer{cfg: cfg, cl: cl}
	c.driver = fetch.New(fetch.Options{
		Client: cl, Machine: cfg.machine(of), MinBytes: int32(cfg.MinBytes), ReadCommitted: cfg.Isolation == ReadCommitted,
		Rack: cfg.Rack, CheckCRC: cfg.CheckCRC, MaxDecompressed: cfg.MaxDecompressed, Decompressor: compress.NewDecompressor(),
		Reuse: cfg.ReuseMemory, Notice: c.notice,
	})
	c.reader = fetch.NewReader(c.driver)
	if cfg.Group.ID != "" {
		c.group = newGroup(c)
	}
	c.add(cfg.Assigned)
	return c, nil
}

// machine is the part of the configuration that decisions depend on.
func (c *Config) machine(of client.Config) machine.Config {
	m := machine.Config{
		MaxBytes: int32(c.MaxBytes), MaxPartitionBytes: int32(c.MaxPartitionBytes), MaxWait: c.MaxWait, Reset: c.Reset,
		Adopt: c.OnTopicReplaced == Adopt, ReplicaExpiry: of.MetadataMaxAge, APITimeout: c.APITimeout,
		RetryBackoff: of.RetryBackoff, RetryBackoffMax: of.RetryBackoffMax, Seed: of.Seed,
	}
	if c.Isolation == ReadCommitted {
		m.Standstill = c.Standstill
	}
	if m.Seed == 0 {
		m.Seed = rand.Uint64()
	}
	if limit := of.MemoryBudget; limit > 0 {
		// An answer may take a third of the budget at most, so that one can be read while the next one comes, and
		// what is around the records or larger than asked for has room too.
		m.MaxBytes = int32(min(int64(m.MaxBytes), max(limit/3, 1)))
	}
	return m
}

// add begins to read partitions.
func (c *Consumer) add(list []Assignment) {
	if c.group != nil && len(list) > 0 {
		c.group.alone.add(list)
		return
	}
	for _, a := range list {
		c.driver.Step(machine.Added{TopicPartition: a.TopicPartition, Start: c.start(a)})
	}
}

// start is where an assignment starts.
func (c *Consumer) start(a Assignment) Where {
	if a.Start.IsZero() {
		return c.cfg.Start
	}
	return a.Start
}

// Dial makes a client for those seeds ("host:port") and a consumer on it, without I/O, as New does; Close closes both.
// Options of the client are given by the option Client.
func Dial(seeds []string, opts ...Option) (*Consumer, error) {
	cfg := DefaultConfig()
	for _, o := range opts {
		o(&cfg)
	}
	cl, err := client.New(append([]client.Option{client.Seeds(seeds...)}, cfg.client...)...)
	if err != nil {
		return nil, err
	}
	cfg.client = nil
	c, err := NewFromConfig(cl, cfg)
	if err != nil {
		return nil, errors.Join(err, cl.Close(context.Background()))
	}
	c.owned = true
	return c, nil
}

// Client is the client that the consumer works with.
func (c *Consumer) Client() *client.Client { return c.cl }

// Config is a copy of the configuration in use.
func (c *Consumer) Config() Config { return c.cfg }

// Close ends the consumer: loops and calls under way end with ErrClosed, what was fetched and not handed out is dropped.
//
// A member of a group stops reading, waits for what is in hand (30 s at most, see DrainTimeout), commits what is done, and
// leaves the group, unless it has a group.instance.id: then its partitions wait for it to come back. What Poll returned last,
// and the record at which a loop was broken off, are not done unless Commit said so. The error has what could not be
// committed. With Group and Assign it is the same, and there is nothing to leave.
//
// Close returns when its goroutines are gone, or with context.Cause(ctx) when ctx ends first; called again it does the
// same. With a ctx that has ended already nothing is given up in good order, as if the process had died: the group notices by
// session.timeout.ms. It must not be called by a handler of Run or Serve or a callback such as OnRevoked, which it waits for.
func (c *Consumer) Close(ctx context.Context) error { return c.close(ctx, false) }

// Leave is Close, and a member with a group.instance.id leaves the group too: others get its partitions at once.
func (c *Consumer) Leave(ctx context.Context) error { return c.close(ctx, true) }

func (c *Consumer) close(ctx context.Context, leave bool) error {
	late := ctx.Err() != nil
	c.closing.Store(true)
	var err error
	if c.group != nil {
		err = c.group.close(ctx, leave)
	}
	err = errors.Join(err, c.driver.Close(ctx))
	c.reader.Abandon()
	if c.owned {
		err = errors.Join(err, c.cl.Close(ctx))
	}
	if cause := context.Cause(ctx); late && !errors.Is(err, cause) {
		err = errors.Join(err, cause) // perhaps nothing had to be waited for; but nobody can rely on that
	}
	return err
}
