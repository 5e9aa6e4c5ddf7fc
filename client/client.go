package client

import (
	"context"
	"log/slog"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/client/sasl"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
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
	cfg    Config
	log    *slog.Logger
	meter  Meter
	budget *Budget
}

// New makes a client. It does no I/O: the first connection is opened by the first call that needs one. The
// error is only ever about the configuration and lists everything that is wrong with it.
func New(opts ...Option) (*Client, error) { return nil, nil }

// Close ends every connection and goroutine of the client. Calls under way end with ErrClosed. It returns
// when all goroutines are gone, or with context.Cause(ctx) when ctx ends first. Further calls do the same.
func (c *Client) Close(ctx context.Context) error { return nil }

// Config is a copy of the configuration in use.
func (c *Client) Config() Config { return c.cfg }

// Logger is the configured logger, never nil.
func (c *Client) Logger() *slog.Logger { return c.log }

// Topology is the newest picture of the cluster; empty, never nil, before the first answer.
func (c *Client) Topology() *Topology { return nil }

// AwaitTopics adds the topics to those the client keeps track of and waits until metadata knows each with all
// its leaders. It ends early with the error of a topic that waiting cannot help (not authorized, invalid name),
// and at ctx's end with an *OpError that names a topic that is still missing and why.
func (c *Client) AwaitTopics(ctx context.Context, names ...string) (*Topology, error) {
	return nil, nil
}

// AddTopics adds topics to those the client keeps track of and asks for them soon. It does not block.
func (c *Client) AddTopics(names ...string) {}

// RemoveTopics undoes one AddTopics of each name.
func (c *Client) RemoveTopics(names ...string) {}

// RefreshMetadata asks for new metadata soon; many requests become one, and attempts keep retry.backoff.ms
// apart. It does not block.
func (c *Client) RefreshMetadata() {}

// OnTopology calls f with the present topology if there is one and then after each change, in order, from one
// goroutine. f must not block. stop ends it; a call under way may still finish afterwards.
func (c *Client) OnTopology(f func(*Topology)) (stop func()) { return func() {} }

// LearnLeader takes the hint of a produce or fetch answer (KIP-951): the leader and epoch of a partition, and
// where the brokers named in the hint are. Older epochs than the known one are ignored.
func (c *Client) LearnLeader(topicID wire.UUID, partition, leader, epoch int32, endpoints []Node) {}

// Issue sends one request to one broker, once. It does not block: the outcome goes to call.Done. Calls of one
// broker and purpose are written in the order in which they are issued, and pipelined.
func (c *Client) Issue(broker int32, p Purpose, call *Call) {}

// Request sends a request to the broker the target stands for and gives its answer. It finds that broker, tries
// again after retriable errors (connection, leader, coordinator or controller moved, broker loading) with
// retry.backoff.ms, and ends at the end of ctx or after default.api.timeout.ms. An error code at the top of the
// answer is looked at for that, and returned beside the answer when it remains.
func (c *Client) Request(ctx context.Context, to Target, req message.Request) (message.Response, error) {
	return nil, nil
}

// Throttle mutes the connection of a broker and purpose for d, as an answer's throttle_time_ms asks (KIP-219).
// The client does it by itself for answers that begin with that field, which are nearly all; a producer calls
// it, because a produce answer has the field at its end.
func (c *Client) Throttle(broker int32, p Purpose, key wire.Key, d time.Duration) {}

// Coordinators finds the coordinators of several groups or transactional ids with as few requests as the broker
// allows (one from FindCoordinator version 4 on). The error of a single key is in errs.
func (c *Client) Coordinators(ctx context.Context, kind CoordinatorKind, keys ...string) (nodes map[string]Node, errs map[string]error, err error) {
	return nil, nil, nil
}

// ForgetCoordinator drops what the client knows of a coordinator, after an answer that says it moved.
func (c *Client) ForgetCoordinator(kind CoordinatorKind, key string) {}
