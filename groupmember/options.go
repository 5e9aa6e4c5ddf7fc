package groupmember

import "time"

// Option changes a Config. Options run in order, so a later one wins.
type Option func(*Config)

// Group sets group.id.
func Group(id string) Option { return func(c *Config) { c.GroupID = id } }

// InstanceID sets group.instance.id and makes the member static.
func InstanceID(id string) Option { return func(c *Config) { c.InstanceID = id } }

// Topics subscribes to topics by name.
func Topics(names ...string) Option {
	return func(c *Config) { c.Topics = append(c.Topics, names...) }
}

// Pattern subscribes to all topics whose whole name an RE2 expression matches.
func Pattern(re2 string) Option { return func(c *Config) { c.Pattern = re2 } }

// DiscoverEvery sets how often a client-side Pattern looks for new topics.
func DiscoverEvery(d time.Duration) Option { return func(c *Config) { c.DiscoverEvery = d } }

// WithProtocol sets group.protocol.
func WithProtocol(p Protocol) Option { return func(c *Config) { c.Protocol = p } }

// Assignors sets partition.assignment.strategy, the preferred one first, and makes Auto choose Classic.
func Assignors(list ...Assignor) Option {
	return func(c *Config) { c.Assignors, c.assignorsSet = list, true }
}

// RemoteAssignor sets group.remote.assignor.
func RemoteAssignor(name string) Option { return func(c *Config) { c.RemoteAssignor = name } }

// SessionTimeout sets session.timeout.ms.
func SessionTimeout(d time.Duration) Option { return func(c *Config) { c.SessionTimeout = d } }

// HeartbeatInterval sets heartbeat.interval.ms.
func HeartbeatInterval(d time.Duration) Option { return func(c *Config) { c.HeartbeatInterval = d } }

// RebalanceTimeout sets how long giving up partitions may take (max.poll.interval.ms).
func RebalanceTimeout(d time.Duration) Option { return func(c *Config) { c.RebalanceTimeout = d } }

// Rack sets client.rack for this member.
func Rack(rack string) Option { return func(c *Config) { c.Rack = rack } }

// WithListener sets who is told of partitions.
func WithListener(l Listener) Option { return func(c *Config) { c.Listener = l } }

// OnTransition sets who is told of changes of the state.
func OnTransition(f func(Transition)) Option { return func(c *Config) { c.OnTransition = f } }

// OnEnd sets who is told why the member ended.
func OnEnd(f func(error)) Option { return func(c *Config) { c.OnEnd = f } }
