package client

import (
	"math"
	"math/bits"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// Metrics is a snapshot of a client's numbers since it was made, over all producers, consumers and administrators on
// it. Counters only grow, so a scraper takes differences; from Connections on the fields are gauges. Latencies sum up
// the whole life of the client. Prometheus or OpenTelemetry are fed from here (the table has
// OpenTelemetry's names): this module depends on neither.
//
//	messaging.client.sent.messages       SentRecords + SendErrors, the latter with error.type
//	messaging.client.consumed.messages   FetchedRecords
//	messaging.client.operation.duration  SendLatency, FetchLatency, CommitLatency
type Metrics struct {
	SentRecords int64        // acknowledged records
	SentBytes   int64        // bytes of produce requests' batches, compressed, acknowledged
	SendErrors  int64        // records whose final verdict was an error
	SendRetries int64        // batches sent again
	SendLatency LatencyStats // of produce requests, from the write to the answer

	FetchedRecords int64
	FetchedBytes   int64        // bytes of batches, compressed
	FetchErrors    int64        // of partitions: what stopped one or had it asked again
	FetchLatency   LatencyStats // of fetch requests, the broker's wait for data included

	Rebalances         int64        // finished, of all group members on this client
	RebalancesLastHour int64        // of them, within the last 60 minutes: the rate
	RebalanceTime      LatencyStats // from the moment a member had to join (again) to its assignment
	Commits            int64        // offset commits that the coordinator took
	CommitErrors       int64        // offset commits whose final verdict was an error
	CommitLatency      LatencyStats // of commits that succeeded, retries included

	Requests        int64         // written, every kind
	RequestErrors   int64         // attempts that ended without an answer
	RequestRetries  int64         // further attempts by Client.Request
	BytesOut        int64         // on all sockets, headers included
	BytesIn         int64         // likewise
	Dials           int64         // attempts to connect that ended
	DialErrors      int64         // of them, failed: refused, late, not Kafka, not logged in
	MetadataUpdates int64         // answers taken
	Throttled       time.Duration // asked for by brokers, in all
	Blocked         time.Duration // spent by submitters waiting for buffer memory

	Connections   int64          // up now
	BufferedBytes int64          // held by producers, not yet acknowledged
	BudgetUsed    int64          // of Config.MemoryBudget
	BudgetLimit   int64          // zero for none
	Lag           []PartitionLag // of partitions being consumed, sorted
}

// PartitionLag is how far a consumer is behind the end of a partition, in offsets.
type PartitionLag struct {
	Topic     string
	Partition int32
	Lag       int64
}

// Meter is where roles on a client count. All fields may be added to from any goroutine.
type Meter struct {
	SentRecords, SentBytes, SendErrors, SendRetries atomic.Int64
	FetchedRecords, FetchedBytes, FetchErrors       atomic.Int64
	Buffered                                        atomic.Int64 // gauge, bytes
	BlockedNanos                                    atomic.Int64
	SendLatency, FetchLatency                       Latency
	Commits, CommitErrors                           atomic.Int64
	CommitLatency                                   Latency

	rebalanceTime                           Latency
	rebalancesMu                            sync.Mutex
	rebalances                              [60]rebalanceMinute
	requests, requestErrors, requestRetries atomic.Int64
	bytesOut, bytesIn                       atomic.Int64
	dials, dialErrors, connections          atomic.Int64
	metadataUpdates, throttledNanos         atomic.Int64

	lagMu sync.Mutex
	lag   map[lagKey]int64
}

type lagKey struct {
	topic     string
	partition int32
}

// rebalanceMinute counts the rebalances of one minute of an hour.
type rebalanceMinute struct{ minute, count int64 } // minute since 1970

// Rebalanced counts a rebalance that ended now.
func (m *Meter) Rebalanced(took time.Duration) {
	m.rebalanceTime.Add(took)
	minute := time.Now().Unix() / 60
	m.rebalancesMu.Lock()
	defer m.rebalancesMu.Unlock()
	slot := &m.rebalances[minute%60]
	if slot.minute != minute {
		*slot = rebalanceMinute{minute: minute}
	}
	slot.count++
}

// lastHour sums up the rebalances of the last 60 minutes.
func (m *Meter) lastHour() (n int64) {
	minute := time.Now().Unix() / 60
	m.rebalancesMu.Lock()
	defer m.rebalancesMu.Unlock()
	for _, slot := range m.rebalances {
		if slot.minute > minute-60 {
			n += slot.count
		}
	}
	return n
}

// SetLag records the lag of a partition being consumed.
func (m *Meter) SetLag(topic string, partition int32, lag int64) {
	m.lagMu.Lock()
	defer m.lagMu.Unlock()
	if m.lag == nil {
		m.lag = make(map[lagKey]int64)
	}
	m.lag[lagKey{topic, partition}] = lag
}

// ForgetLag drops a partition that is not consumed any more.
func (m *Meter) ForgetLag(topic string, partition int32) {
	m.lagMu.Lock()
	defer m.lagMu.Unlock()
	delete(m.lag, lagKey{topic, partition})
}

// Meter is shared by the roles on this client.
func (c *Client) Meter() *Meter { return &c.meter }

// Metrics takes a snapshot. Counters are read one by one, so sums may differ by what happens meanwhile.
func (c *Client) Metrics() Metrics {
	m := &c.meter
	used, limit := c.budget.Used()
	out := Metrics{
		SentRecords: m.SentRecords.Load(), SentBytes: m.SentBytes.Load(), SendErrors: m.SendErrors.Load(),
		SendRetries: m.SendRetries.Load(), SendLatency: m.SendLatency.Stats(),
		FetchedRecords: m.FetchedRecords.Load(), FetchedBytes: m.FetchedBytes.Load(),
		FetchErrors: m.FetchErrors.Load(), FetchLatency: m.FetchLatency.Stats(),
		RebalancesLastHour: m.lastHour(), RebalanceTime: m.rebalanceTime.Stats(),
		Commits: m.Commits.Load(), CommitErrors: m.CommitErrors.Load(), CommitLatency: m.CommitLatency.Stats(),
		Requests: m.requests.Load(), RequestErrors: m.requestErrors.Load(), RequestRetries: m.requestRetries.Load(),
		BytesOut: m.bytesOut.Load(), BytesIn: m.bytesIn.Load(),
		Dials: m.dials.Load(), DialErrors: m.dialErrors.Load(), MetadataUpdates: m.metadataUpdates.Load(),
		Throttled: time.Duration(m.throttledNanos.Load()), Blocked: time.Duration(m.BlockedNanos.Load()),
		Connections: m.connections.Load(), BufferedBytes: m.Buffered.Load(),
		BudgetUsed: used, BudgetLimit: limit,
	}
	out.Rebalances = out.RebalanceTime.Count
	m.lagMu.Lock()
	for k, v := range m.lag {
		out.Lag = append(out.Lag, PartitionLag{k.topic, k.partition, v})
	}
	m.lagMu.Unlock()
	sort.Slice(out.Lag, func(i, j int) bool {
		a, b := out.Lag[i], out.Lag[j]
		return a.Topic < b.Topic || a.Topic == b.Topic && a.Partition < b.Partition
	})
	return out
}

// LatencyStats sums up a Latency. Quantiles are exact to about 10 %.
type LatencyStats struct {
	Count         int64
	Mean          time.Duration
	P50, P99, Max time.Duration
}

// Latency counts durations in buckets that grow by an eighth of a power of two. It is safe for concurrent use
// and allocates nothing.
type Latency struct {
	count, sum, max atomic.Int64
	buckets         [latencyBuckets]atomic.Int64
}

// Buckets cover 1 µs to about an hour: 8 for each of 32 powers of two.
const latencyBuckets = 32 * 8

// Add counts one duration.
func (l *Latency) Add(d time.Duration) {
	l.count.Add(1)
	l.sum.Add(int64(d))
	for {
		old := l.max.Load()
		if int64(d) <= old || l.max.CompareAndSwap(old, int64(d)) {
			break
		}
	}
	l.buckets[latencyBucket(d)].Add(1)
}

func latencyBucket(d time.Duration) int {
	us := uint64(max(d/time.Microsecond, 1))
	power := bits.Len64(us) - 1
	var eighth uint64
	if power >= 3 {
		eighth = us >> (power - 3) & 7
	} else {
		eighth = us << (3 - power) & 7
	}
	return min(power*8+int(eighth), latencyBuckets-1)
}

// latencyOf is the middle of a bucket.
func latencyOf(bucket int) time.Duration {
	low := math.Ldexp(1+float64(bucket%8)/8, bucket/8)
	return time.Duration(low * (1 + 1.0/16) * float64(time.Microsecond))
}

// Stats sums up.
func (l *Latency) Stats() LatencyStats {
	s := LatencyStats{Count: l.count.Load(), Max: time.Duration(l.max.Load())}
	if s.Count == 0 {
		return s
	}
	s.Mean = time.Duration(l.sum.Load() / s.Count)
	s.P50, s.P99 = min(l.quantile(0.50), s.Max), min(l.quantile(0.99), s.Max)
	return s
}

func (l *Latency) quantile(q float64) time.Duration {
	var total int64
	for i := range l.buckets {
		total += l.buckets[i].Load()
	}
	want, seen := int64(math.Ceil(q*float64(total))), int64(0)
	for i := range l.buckets {
		if seen += l.buckets[i].Load(); seen >= want {
			return latencyOf(i)
		}
	}
	return time.Duration(l.max.Load())
}
