package config

import (
	"strconv"
	"sync"
)

// synonym is one broker config that stands in for a topic config, and what its unit is worth in the topic's.
type synonym struct {
	broker string
	factor int64
}

// topicSynonyms is data/topic_synonyms.tsv: topic config -> broker configs in the order they are asked. The last column
// of the table is what the value 2 becomes, so the factor is half of it (log.retention.hours: 7200000 ms).
var topicSynonyms = sync.OnceValue(func() map[string][]synonym {
	rows, err := readTable("data/topic_synonyms.tsv")
	if err != nil {
		panic("config: " + err.Error())
	}
	m := make(map[string][]synonym)
	for _, row := range rows {
		two, err := strconv.ParseInt(row["conversionOf2"], 10, 64)
		if err != nil || two%2 != 0 {
			panic("config: topic_synonyms.tsv: conversion of " + row["brokerConfig"])
		}
		m[row["topicConfig"]] = append(m[row["topicConfig"]], synonym{row["brokerConfig"], two / 2})
	}
	return m
})

// TopicValue returns the value in effect of a topic config: the topic's override, else the first of its broker
// synonyms that is set, else the default of the table. Overrides that do not parse are passed over.
func (l *Layers) TopicValue(name string, overrides map[string]string) Value {
	k, ok := TopicKeys().Lookup(name)
	if !ok {
		panic("config: " + name + " is no topic config")
	}
	if text, ok := overrides[name]; ok {
		if v, err := k.Parse(&text); err == nil {
			return v
		}
	}
	return l.topicDefault(k)
}

func (l *Layers) topicDefault(k *Key) Value {
	for _, s := range topicSynonyms()[k.Name] {
		v := l.Value(s.broker)
		if v.Null {
			continue
		}
		if s.factor != 1 {
			v.Int = max(v.Int*s.factor, -1) // -1 hour means unlimited, as -1 ms does
		}
		return v
	}
	v, _ := k.Parse(k.Default) // the tables are tested to parse
	return v
}

// Log is the typed form of a topic's effective configs: what storage and the produce path go by. Times are in
// milliseconds, sizes in bytes, -1 is unlimited.
type Log struct {
	SegmentBytes      int // internal.segment.bytes goes before segment.bytes
	SegmentMs         int64
	SegmentJitterMs   int64
	SegmentIndexBytes int
	Preallocate       bool

	RetentionBytes, RetentionMs           int64
	LocalRetentionBytes, LocalRetentionMs int64 // -2: as RetentionBytes, RetentionMs
	FileDeleteDelayMs                     int64
	DeleteRetentionMs                     int64

	FlushMessages, FlushMs int64
	IndexIntervalBytes     int

	Compact, Delete        bool // cleanup.policy
	MinCompactionLagMs     int64
	MaxCompactionLagMs     int64
	MinCleanableDirtyRatio float64

	MaxMessageBytes             int
	MaxDecompressedMessageBytes int
	MinInSyncReplicas           int
	UncleanLeaderElectionEnable bool
	TimestampType               string // CreateTime, LogAppendTime
	TimestampBeforeMaxMs        int64
	TimestampAfterMaxMs         int64

	CompressionType string // producer, uncompressed, gzip, snappy, lz4, zstd
	GzipLevel       int
	Lz4Level        int
	ZstdLevel       int

	RemoteStorageEnable bool
}

// Log resolves a topic's overrides to what is in effect. Topics without overrides share one Log; it must not be changed.
func (l *Layers) Log(overrides map[string]string) *Log {
	if len(overrides) == 0 {
		return l.logDefaults()
	}
	return l.resolveLog(overrides)
}

func (l *Layers) resolveLog(overrides map[string]string) *Log {
	v := func(name string) Value { return l.TopicValue(name, overrides) }
	log := &Log{
		SegmentBytes:      int(v("segment.bytes").Int),
		SegmentMs:         v("segment.ms").Int,
		SegmentJitterMs:   v("segment.jitter.ms").Int,
		SegmentIndexBytes: int(v("segment.index.bytes").Int),
		Preallocate:       v("preallocate").Bool,

		RetentionBytes:      v("retention.bytes").Int,
		RetentionMs:         v("retention.ms").Int,
		LocalRetentionBytes: v("local.retention.bytes").Int,
		LocalRetentionMs:    v("local.retention.ms").Int,
		FileDeleteDelayMs:   v("file.delete.delay.ms").Int,
		DeleteRetentionMs:   v("delete.retention.ms").Int,

		FlushMessages:      v("flush.messages").Int,
		FlushMs:            v("flush.ms").Int,
		IndexIntervalBytes: int(v("index.interval.bytes").Int),

		MinCompactionLagMs:     v("min.compaction.lag.ms").Int,
		MaxCompactionLagMs:     v("max.compaction.lag.ms").Int,
		MinCleanableDirtyRatio: v("min.cleanable.dirty.ratio").Double,

		MaxMessageBytes:             int(v("max.message.bytes").Int),
		MaxDecompressedMessageBytes: int(v("max.decompressed.message.bytes").Int),
		MinInSyncReplicas:           int(v("min.insync.replicas").Int),
		UncleanLeaderElectionEnable: v("unclean.leader.election.enable").Bool,
		TimestampType:               v("message.timestamp.type").Text,
		TimestampBeforeMaxMs:        v("message.timestamp.before.max.ms").Int,
		TimestampAfterMaxMs:         v("message.timestamp.after.max.ms").Int,

		CompressionType: v("compression.type").Text,
		GzipLevel:       int(v("compression.gzip.level").Int),
		Lz4Level:        int(v("compression.lz4.level").Int),
		ZstdLevel:       int(v("compression.zstd.level").Int),

		RemoteStorageEnable: v("remote.storage.enable").Bool,
	}
	if internal := v("internal.segment.bytes"); !internal.Null {
		log.SegmentBytes = int(internal.Int)
	}
	for _, policy := range v("cleanup.policy").List {
		log.Compact = log.Compact || policy == "compact"
		log.Delete = log.Delete || policy == "delete"
	}
	return log
}
