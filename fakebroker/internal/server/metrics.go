package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/wire"
)

// Metrics counts what the broker does, per API. It may be read at any time.
type Metrics struct {
	apis [wire.Keys]apiMetrics

	waiters atomic.Int64
	mu      sync.Mutex
	changed chan struct{} // closed when a request was counted while somebody waits; nil before anybody did
}

// apiMetrics are the sums of one API's requests; times in nanoseconds.
type apiMetrics struct {
	requests, requestBytes, responseBytes                  atomic.Int64
	queue, local, remote, throttle, responseQueue, sending atomic.Int64
	slowest                                                atomic.Int64
}

// APIMetrics is what one API has cost: the time of all its requests by where it was spent, as in Apache Kafka's request
// metrics (RequestQueueTimeMs, LocalTimeMs, RemoteTimeMs, ThrottleTimeMs, ResponseQueueTimeMs, ResponseSendTimeMs).
type APIMetrics struct {
	Key                         wire.Key
	Requests                    int64
	RequestBytes, ResponseBytes int64
	Queue                       time.Duration // waiting for a handler
	Local                       time.Duration // in the handler
	Remote                      time.Duration // waiting for other requests, replicas, the controller
	Throttle                    time.Duration // held back by quotas
	ResponseQueue               time.Duration // answered, not yet picked up by the connection
	Send                        time.Duration // encoding and writing
	Slowest                     time.Duration // the longest request, from its last byte to its answer's last byte
}

func (m *Metrics) record(k wire.Key, t *network.Timing) {
	if k < 0 || int(k) >= len(m.apis) {
		return
	}
	a := &m.apis[k]
	a.requests.Add(1)
	a.requestBytes.Add(int64(t.RequestBytes))
	a.responseBytes.Add(int64(t.ResponseBytes))
	for _, part := range [...]struct {
		sum *atomic.Int64
		d   time.Duration
	}{{&a.queue, t.Queue}, {&a.local, t.Local}, {&a.remote, t.Remote}, {&a.throttle, t.Throttle}, {&a.responseQueue, t.Response}, {&a.sending, t.Send}} {
		if part.d > 0 {
			part.sum.Add(int64(part.d))
		}
	}
	total := int64(t.Queue + t.Local + t.Remote + t.Throttle + t.Response + t.Send)
	for old := a.slowest.Load(); total > old && !a.slowest.CompareAndSwap(old, total); old = a.slowest.Load() {
	}
	if m.waiters.Load() > 0 {
		m.mu.Lock()
		if m.changed != nil {
			close(m.changed)
			m.changed = nil
		}
		m.mu.Unlock()
	}
}

// Await returns when n requests of an API have been answered.
func (m *Metrics) Await(ctx context.Context, k wire.Key, n int64) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	m.waiters.Add(1)
	defer m.waiters.Add(-1)
	for {
		m.mu.Lock()
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed := m.changed
		m.mu.Unlock()
		have := m.API(k).Requests
		if have >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d %s requests were answered: %w", have, n, k, context.Cause(ctx))
		}
	}
}

// API returns what one API has cost so far.
func (m *Metrics) API(k wire.Key) APIMetrics {
	if k < 0 || int(k) >= len(m.apis) {
		return APIMetrics{Key: k}
	}
	a := &m.apis[k]
	return APIMetrics{
		Key:           k,
		Requests:      a.requests.Load(),
		RequestBytes:  a.requestBytes.Load(),
		ResponseBytes: a.responseBytes.Load(),
		Queue:         time.Duration(a.queue.Load()),
		Local:         time.Duration(a.local.Load()),
		Remote:        time.Duration(a.remote.Load()),
		Throttle:      time.Duration(a.throttle.Load()),
		ResponseQueue: time.Duration(a.responseQueue.Load()),
		Send:          time.Duration(a.sending.Load()),
		Slowest:       time.Duration(a.slowest.Load()),
	}
}

// All returns the APIs that had requests, by key.
func (m *Metrics) All() []APIMetrics {
	var all []APIMetrics
	for k := range m.apis {
		if a := m.API(wire.Key(k)); a.Requests > 0 {
			all = append(all, a)
		}
	}
	return all
}
