package fakebroker

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// APIMetrics is what the requests of one API have cost since the broker was started. The times are sums over all of
// them, by where they were spent, as in Apache Kafka's request metrics (RequestQueueTimeMs and so on): divided by
// Requests they are means. They count from a request's last byte to its answer's last byte, whose longest time for one
// request is Slowest.
type APIMetrics struct {
	Key                         wire.Key
	Requests                    int64         // answered
	RequestBytes, ResponseBytes int64         // of whole frames
	Queue                       time.Duration // waiting for a handler
	Local                       time.Duration // in the handler
	Remote                      time.Duration // waiting for other requests, replicas, the controller
	Throttle                    time.Duration // held back by quotas
	ResponseQueue               time.Duration // answered, not yet picked up by the connection
	Send                        time.Duration // encoding and writing
	Slowest                     time.Duration
}

// Requests returns how many requests of an API the broker has answered since it was started; 0 while it is stopped.
func (k *Cluster) Requests(key wire.Key) int64 {
	b, err := k.running()
	if err != nil {
		return 0
	}
	return b.Metrics().API(key).Requests
}

// Metrics returns the APIs that had requests since the broker was started, by key: how many, and where their time went.
// A restart begins anew; a stopped broker has none. Counting goes on meanwhile, so numbers of one API may differ by a
// request.
func (k *Cluster) Metrics() []APIMetrics {
	b, err := k.running()
	if err != nil {
		return nil
	}
	var all []APIMetrics
	for _, m := range b.Metrics().All() {
		all = append(all, APIMetrics(m))
	}
	return all
}

// Connections returns how many client connections are open.
func (k *Cluster) Connections() int {
	b, err := k.running()
	if err != nil {
		return 0
	}
	return b.Connections()
}

// Offsets are the offsets of one partition.
type Offsets struct {
	LogStart      int64 // of the oldest record
	LastStable    int64 // read_committed consumers read below it
	HighWatermark int64 // consumers read below it
	LogEnd        int64 // of the next record
}

// Offsets returns where a partition stands.
func (k *Cluster) Offsets(topic string, partition int32) (Offsets, error) {
	log, err := k.log(topic, partition)
	if err != nil {
		return Offsets{}, err
	}
	var o Offsets
	o.LogStart, o.LastStable, o.HighWatermark, o.LogEnd = log.Offsets()
	return o, nil
}

// Records returns the records of a partition from an offset up to the high watermark, without control records: what a
// read_uncommitted consumer would see. Everything is copied and held in memory.
func (k *Cluster) Records(topic string, partition int32, from int64) ([]record.Record, error) {
	log, err := k.log(topic, partition)
	if err != nil {
		return nil, err
	}
	var all []record.Record
	for next := max(from, log.LogStartOffset()); ; {
		data, err := log.Read(next, 1<<20, storage.BoundHighWatermark, true)
		if err != nil {
			return nil, fmt.Errorf("fakebroker: read %s-%d at %d: %w", topic, partition, next, err)
		}
		if data.Records.Len == 0 {
			return all, nil
		}
		raw, err := data.Records.AppendTo(nil)
		data.Records.Release()
		if err != nil {
			return nil, fmt.Errorf("fakebroker: read %s-%d at %d: %w", topic, partition, next, err)
		}
		if all, err = appendRecords(all, raw, from); err != nil {
			return nil, fmt.Errorf("fakebroker: read %s-%d at %d: %w", topic, partition, next, err)
		}
		next = data.NextOffset
	}
}

func (k *Cluster) log(topic string, partition int32) (*storage.Log, error) {
	b, err := k.running()
	if err != nil {
		return nil, err
	}
	log, ok := b.Log(topic, partition)
	if !ok {
		return nil, fmt.Errorf("fakebroker: there is no partition %s-%d", topic, partition)
	}
	return log, nil
}

// appendRecords takes the records of whole batches apart.
func appendRecords(all []record.Record, raw []byte, from int64) ([]record.Record, error) {
	var d compress.Decompressor
	for len(raw) > 0 {
		batch, rest, err := record.Next(raw)
		if err != nil {
			return all, err
		}
		raw = rest
		it, err := record.Open(batch, record.ReadOptions{Decompressor: &d})
		if err != nil {
			return all, err
		}
		if h := it.Header(); h.Control() {
			continue
		}
		for r := range it.All() {
			if r.Offset >= from {
				all = append(all, r)
			}
		}
		if err := it.Err(); err != nil {
			return all, err
		}
	}
	return all, nil
}
