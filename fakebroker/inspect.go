package fakebroker

import (
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker/internal/server"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// APIMetrics is what one API has cost; see Cluster.Metrics.
type APIMetrics = server.APIMetrics

// Requests returns how many requests of an API the broker has answered since it was started.
func (k *Cluster) Requests(key wire.Key) int64 {
	b, err := k.running()
	if err != nil {
		return 0
	}
	return b.Metrics().API(key).Requests
}

// Metrics returns the APIs that had requests since the broker was started, by key: how many, and where their time went.
func (k *Cluster) Metrics() []APIMetrics {
	b, err := k.running()
	if err != nil {
		return nil
	}
	return b.Metrics().All()
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
