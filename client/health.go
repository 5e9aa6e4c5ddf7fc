package client

import (
	"context"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/wire/message"
)

// Health is a client's state in one struct, for a readiness probe.
type Health struct {
	OK          bool          // a broker answered now, and metadata is not older than metadata.max.age.ms + default.api.timeout.ms
	ClusterID   string        // empty before the first answer
	Brokers     int           // in the metadata
	Connected   []int32       // ids of brokers with at least one connection, sorted
	Connections int           // up now, over all brokers and purposes
	MetadataAge time.Duration // zero before the first answer
	LastError   string        // of the newest attempt to get metadata; empty when it went well
	Buffered    int64         // bytes held by producers
	BudgetUsed  int64         // bytes of Config.MemoryBudget
	TotalLag    int64         // over the partitions being consumed
	RoundTrip   time.Duration // of the question asked now
	Err         error         // of the question asked now
}

// Health asks one broker for an answer now and says how the client is. It returns by ctx's end and does not fail:
// what went wrong is in the struct.
func (c *Client) Health(ctx context.Context) Health {
	began := time.Now()
	req := message.NewMetadataRequest()
	req.Topics = []message.MetadataRequestTopic{} // none, not all
	_, err := c.Request(ctx, AnyBroker().Versions(1, 0), req)
	now := time.Now()
	h := Health{RoundTrip: now.Sub(began), Err: err}
	for _, l := range c.allLinks() {
		if up, _ := l.connected(); up {
			h.Connections++
			if id := l.id(); id >= 0 { // not a seed whose id is not known
				h.Connected = append(h.Connected, id)
			}
		}
	}
	slices.Sort(h.Connected)
	h.Connected = slices.Compact(h.Connected)
	top := c.Topology()
	h.ClusterID, h.Brokers = top.ClusterID, len(top.Brokers)
	c.meta.mu.Lock()
	h.MetadataAge = c.meta.refresh.Age(now)
	if c.meta.lastErr != nil {
		h.LastError = c.meta.lastErr.Error()
	}
	c.meta.mu.Unlock()
	m := c.Metrics()
	h.Buffered, h.BudgetUsed = m.BufferedBytes, m.BudgetUsed
	for _, p := range m.Lag {
		h.TotalLag += p.Lag
	}
	// An answer may be late by one refresh that is under way.
	h.OK = err == nil && h.MetadataAge < c.cfg.MetadataMaxAge+c.cfg.APITimeout
	return h
}
