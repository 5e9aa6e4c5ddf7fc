package transaction

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

const (
	noProducerID    int64 = -1
	noProducerEpoch int16 = -1
	noTime          int64 = -1
	// exhausted is the last epoch that a producer is given. The one above it, the highest there is, is the coordinator's:
	// with it a producer can always be fenced.
	exhausted int16 = math.MaxInt16 - 1
)

// A TopicPartition is one partition that a transaction has written to, or may have.
type TopicPartition struct {
	Topic     string
	Partition int32
}

func (p TopicPartition) compare(q TopicPartition) int {
	return cmp.Or(cmp.Compare(p.Topic, q.Topic), cmp.Compare(p.Partition, q.Partition))
}

// A txn is what is known of one transactional id. All but lastEpoch and the counts is in its newest record.
type txn struct {
	id         string
	producerID int64
	// previousID is the producer id before the last transition, nextID the one that the end of an exhausted epoch leads to.
	previousID, nextID int64
	epoch              int16
	// lastEpoch is the epoch before the last bump, by which a repeated InitProducerId is known. It is in no record: after a
	// failover such a repetition is fenced, as in Apache Kafka.
	lastEpoch  int16
	timeoutMs  int32
	state      State
	partitions []TopicPartition // sorted, never changed in place
	start      int64            // when the first partition was added, Unix ms; -1 for never
	updated    int64            // of the last transition, Unix ms
	version    int16            // transaction.version of the client in the last transition: 0 or 2

	counts counts
}

// counts say what has become of an id's transactions since the coordinator was loaded.
type counts struct{ committed, aborted, timedOut, fenced int }

func (t *txn) has(p TopicPartition) bool {
	_, found := slices.BinarySearchFunc(t.partitions, p, TopicPartition.compare)
	return found
}

func (t *txn) hasAll(parts []TopicPartition) bool {
	return !slices.ContainsFunc(parts, func(p TopicPartition) bool { return !t.has(p) })
}

// union returns the sorted partitions of both lists.
func union(a, b []TopicPartition) []TopicPartition {
	all := append(slices.Clone(a), b...)
	slices.SortFunc(all, TopicPartition.compare)
	return slices.Compact(all)
}

func (t *txn) exhausted() bool { return t.epoch >= exhausted }

// deadline is when the transaction times out: strictly after this many milliseconds.
func (t *txn) deadline() int64 { return t.start + int64(t.timeoutMs) }

// write proposes that t becomes next. The previous producer id of next is filled in. lastEpoch, which is in no record, is
// taken over when the log has the record.
func (m *Machine) write(t *txn, next txn, out *coordinator.Result) {
	if !next.state.mayFollow(t.state) {
		panic(fmt.Sprintf("transaction: %q cannot go from %s to %s", t.id, t.state, next.state))
	}
	next.previousID = t.producerID
	out.Record(&logrecord.TransactionLogKey{TransactionalId: t.id}, next.record(m.env.Level), recordVersion(m.env.Level))
	out.Written = append(out.Written, func(now time.Time, out *coordinator.Result) {
		if written := m.txns[t.id]; written != nil {
			written.lastEpoch, written.counts = next.lastEpoch, next.counts
		}
		m.o.Changed(t.id)
		m.resume(now, t.id, out)
	})
}

// writable reports whether the log's records have room for a client's transaction.version. Clients see in ApiVersions
// whether they may use theirs; in a cluster of level 0 one that does so all the same is told UNSUPPORTED_VERSION. (Apache
// Kafka 4.4 fails on that record and answers CONCURRENT_TRANSACTIONS for the id from then on, until it is restarted.)
func (m *Machine) writable(client int16) bool { return m.env.Level >= 1 || client == 0 }

// recordVersion is the version of TransactionLogValue at a level of transaction.version: flexible from 1 on.
func recordVersion(level int16) int16 { return min(level, 1) }

// record is the form of t in the log. Version 0 has no room for the ids before and after; what reads it does without.
func (t *txn) record(level int16) *logrecord.TransactionLogValue {
	v := logrecord.NewTransactionLogValue()
	v.ProducerId, v.ProducerEpoch = t.producerID, t.epoch
	v.TransactionTimeoutMs, v.TransactionStatus = t.timeoutMs, int8(t.state)
	v.TransactionStartTimestampMs, v.TransactionLastUpdateTimestampMs = t.start, t.updated
	v.TransactionPartitions = nil
	if t.state != Empty {
		v.TransactionPartitions = schema(t.partitions)
	}
	if recordVersion(level) >= 1 {
		v.PreviousProducerId, v.NextProducerId, v.ClientTransactionVersion = t.previousID, t.nextID, t.version
	}
	return v
}

// schema groups sorted partitions by topic.
func schema(parts []TopicPartition) []logrecord.PartitionsSchema {
	topics := []logrecord.PartitionsSchema{}
	for _, p := range parts {
		if n := len(topics); n == 0 || topics[n-1].Topic != p.Topic {
			topics = append(topics, logrecord.PartitionsSchema{Topic: p.Topic})
		}
		last := &topics[len(topics)-1]
		last.PartitionIds = append(last.PartitionIds, p.Partition)
	}
	return topics
}

// Replay implements coordinator.Shard.
func (m *Machine) Replay(_ int64, key, value logrecord.Record) error {
	k, ok := key.(*logrecord.TransactionLogKey)
	if !ok {
		return fmt.Errorf("a %T is no key of a transaction log", key)
	}
	if value == nil {
		m.remove(k.TransactionalId)
		return nil
	}
	v, ok := value.(*logrecord.TransactionLogValue)
	if !ok {
		return fmt.Errorf("a %T is no value of a transaction log", value)
	}
	s := State(v.TransactionStatus)
	if !s.valid() {
		return fmt.Errorf("transactional id %q has state %d", k.TransactionalId, v.TransactionStatus)
	}
	t := &txn{id: k.TransactionalId, producerID: v.ProducerId, previousID: v.PreviousProducerId, nextID: v.NextProducerId,
		epoch: v.ProducerEpoch, lastEpoch: noProducerEpoch, timeoutMs: v.TransactionTimeoutMs, state: s,
		start: v.TransactionStartTimestampMs, updated: v.TransactionLastUpdateTimestampMs, version: v.ClientTransactionVersion}
	if s != Empty {
		for i := range v.TransactionPartitions {
			for _, index := range v.TransactionPartitions[i].PartitionIds {
				t.partitions = append(t.partitions, TopicPartition{v.TransactionPartitions[i].Topic, index})
			}
		}
		t.partitions = union(nil, t.partitions)
	}
	m.put(t)
	return nil
}
