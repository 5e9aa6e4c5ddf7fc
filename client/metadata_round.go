package client

import (
	"errors"
	"fmt"
	"net"
	"sort"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// round is one attempt to get metadata: candidates are asked one after the other until one answers.
type round struct {
	candidates []int32 // still to be asked; the first one is being asked while waiting
	topics     []string
	partial    bool // topics are only the new ones
	waiting    bool
	began      time.Time
	errs       []error
}

// partialFrom is the number of topics from which a wish for new ones asks for those alone.
const partialFrom = 16

// begin opens a round. The lock is held.
func (m *metadata) begin(now time.Time) *round {
	c := m.c
	startOver := m.refresh.StartOver(now)
	if startOver {
		c.log.Warn("kafka: no metadata for metadata.recovery.rebootstrap.trigger.ms, starting over from the seeds", "seeds", c.cfg.Seeds)
	}
	r := &round{began: now}
	if !m.refresh.Wanted() {
		m.full = true // what is due by age is due for all topics
	}
	r.partial = !m.full && !startOver && len(m.fresh) > 0 && len(m.tracked) >= partialFrom
	for name := range m.tracked {
		if !r.partial || m.fresh[name] {
			r.topics = append(r.topics, name)
		}
	}
	sort.Strings(r.topics)
	clear(m.fresh)
	m.full = false
	top := m.top.Load()
	var known, seeds []int32
	at := make(map[string]bool)
	for _, n := range top.Nodes() {
		known = append(known, n.ID)
		at[n.Addr()] = true
	}
	for i, addr := range c.cfg.Seeds {
		// A seed that is a known broker's address is that broker: it has been asked, and has its back-off.
		if startOver || !at[addr] {
			seeds = append(seeds, machine.SeedID(i))
		}
	}
	r.candidates = machine.Candidates(known, c.metadataConnections(), seeds, c.cfg.Rebootstrap, startOver, &m.refresh.Rand)
	m.refresh.Started(now)
	return r
}

// metadataConnections are the brokers a metadata connection is open to, in order.
func (c *Client) metadataConnections() []int32 {
	var out []int32
	for _, l := range c.allLinks() {
		if l.purpose != Metadata {
			continue
		}
		if up, _ := l.connected(); up {
			out = append(out, l.id())
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}

// ask sends the request to the first candidate. Candidates in their back-off are passed over while there are
// others: a round must not wait for a dead broker.
func (m *metadata) ask(r *round) {
	r.waiting = true
	broker := r.candidates[0]
	for i, id := range r.candidates {
		if l := m.c.existing(id, Metadata); l == nil || !l.resting(time.Now()) {
			broker = id
			r.candidates = append([]int32{id}, append(append([]int32(nil), r.candidates[:i]...), r.candidates[i+1:]...)...)
			break
		}
	}
	topics, auto := r.topics, m.c.cfg.AutoCreateTopics
	call := &Call{Key: wire.KeyMetadata, MinVersion: 1}
	call.Append = func(dst []byte, version int16) ([]byte, error) {
		req := message.NewMetadataRequest()
		req.Topics = make([]message.MetadataRequestTopic, len(topics)) // empty and not nil: no topics, not all
		for i := range topics {
			req.Topics[i].Name = &topics[i]
		}
		// Before version 4 the broker creates topics as it likes, and there is no field to ask it not to.
		req.AllowAutoTopicCreation = auto || version < 4
		return req.AppendTo(dst, version)
	}
	call.Done = func(reply Reply) { m.answers <- metaAnswer{broker, reply} }
	m.c.Issue(broker, Metadata, call)
}

// answered takes the answer of one candidate. It gives the round back if another one is to be asked.
func (m *metadata) answered(r *round, a metaAnswer) *round {
	r.waiting = false
	err := a.reply.Err
	if err == nil {
		if err = m.take(r, a); err == nil {
			return nil
		}
	}
	if errors.Is(err, ErrClosed) {
		return r.endedBy(err, m)
	}
	m.c.log.Debug("kafka: metadata", "broker", a.broker, "error", err)
	r.errs = append(r.errs, err)
	if r.candidates = r.candidates[1:]; len(r.candidates) > 0 {
		return r
	}
	return r.endedBy(roundError(r.errs), m)
}

// endedBy closes a round that failed.
func (r *round) endedBy(err error, m *metadata) *round {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = true
	m.refresh.Failed(now)
	m.lastErr = m.unresolved(now, err)
	m.failed++
	m.announce()
	return nil
}

// roundError is what a round is said to have failed with: a refused login, which the next broker will refuse too;
// else what may pass, if anything may; else the first error.
func roundError(errs []error) error {
	for _, err := range errs {
		if errors.Is(err, ErrAuth) {
			return err
		}
	}
	for i := len(errs) - 1; i >= 0; i-- {
		if Retriable(errs[i]) {
			return errs[i]
		}
	}
	return errs[0]
}

// errUnresolved makes a seed whose name does not exist final after bootstrap.resolve.timeout.ms.
type errUnresolved struct{ err error }

func (e *errUnresolved) Error() string { return e.err.Error() }
func (e *errUnresolved) Unwrap() error { return e.err }

// unresolved marks an error about names of seeds as final when it has lasted for too long. The lock is held.
func (m *metadata) unresolved(now time.Time, err error) error {
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound || len(m.top.Load().Brokers) > 0 {
		m.failing = time.Time{}
		return err
	}
	if m.failing.IsZero() {
		m.failing = now
	}
	if now.Sub(m.failing) >= m.c.cfg.BootstrapResolveTimeout {
		return &errUnresolved{err}
	}
	return err
}

// take makes the topology that follows from an answer.
func (m *metadata) take(r *round, a metaAnswer) error {
	var resp message.MetadataResponse
	if err := resp.ReadFrom(wire.NewReader(a.reply.Body), a.reply.Version); err != nil {
		return m.failure(a.broker, fmt.Errorf("%w: %w", ErrProtocol, err), "")
	}
	now := time.Now()
	next, err := m.merge(now, a.broker, &resp, !r.partial)
	if err != nil {
		return err
	}
	m.c.meter.metadataUpdates.Add(1)
	m.observe(MetadataEvent{Topology: next, Took: now.Sub(r.began)})
	return nil
}

func (m *metadata) merge(now time.Time, broker int32, resp *message.MetadataResponse, full bool) (*Topology, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if code := errcode.Code(resp.ErrorCode); code != errcode.None {
		if code == errcode.RebootstrapRequired {
			m.refresh.Restart()
		}
		return nil, m.failure(broker, code, "")
	}
	if len(resp.Brokers) == 0 {
		// A broker that has just started knows no broker, not even itself.
		return nil, m.failure(broker, fmt.Errorf("%w: the answer names no broker at all", ErrUnknownBroker), "the broker is starting and does not know the cluster yet")
	}
	if err := m.checkCluster(broker, resp.ClusterId); err != nil {
		return nil, err
	}
	next := m.top.Load().Merge(now, resp, func(topic string) bool { return m.tracked[topic] > 0 })
	complete := true
	for name := range m.tracked {
		if code, waitable := next.Missing(name); code != errcode.None && waitable {
			complete = false
		}
	}
	m.refresh.Succeeded(now, complete, full)
	m.full = m.full || !complete
	m.lastErr, m.failing = nil, time.Time{}
	m.c.adoptSeeds(next)
	m.publish(next)
	return next, nil
}

func (m *metadata) failure(broker int32, err error, hint string) error {
	return &OpError{Op: "Metadata", Broker: m.c.BrokerName(broker), Partition: -1, Attempts: 1, Hint: hint, Err: err}
}

// checkCluster pins the first cluster id that is seen, and refuses any other: an address that was given to a
// broker of another cluster must not lead records there. The lock is held.
func (m *metadata) checkCluster(broker int32, id *string) error {
	if !m.c.cfg.CheckCluster || id == nil {
		return nil
	}
	if m.cluster == "" {
		m.cluster = *id
	}
	if m.cluster == *id {
		return nil
	}
	if l := m.c.existing(broker, Metadata); l != nil {
		l.retire()
	}
	return m.failure(broker, fmt.Errorf("%w: it says cluster %s, this client belongs to %s", ErrWrongCluster, *id, m.cluster),
		"an address of the old cluster is used by another one now; correct bootstrap.servers, or set metadata.cluster.check.enable=false if that is intended")
}
