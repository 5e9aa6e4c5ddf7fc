package server

import (
	"strconv"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// topicConfig is the effective config of a topic in the forms that the broker uses. It is immutable.
type topicConfig struct {
	log               storage.LogConfig
	minInSyncReplicas int
	compactOnly       bool
}

func (b *Broker) nodeName() string { return strconv.Itoa(int(b.opts.NodeID)) }

// topicConfig resolves a topic's configs: its overrides over the broker's.
func (b *Broker) topicConfig(img *image.Image, name string) *topicConfig {
	var overrides map[string]string
	if img != nil {
		overrides = img.Configs(config.Resource{Type: config.TopicResource, Name: name})
	}
	if len(overrides) > 0 {
		return makeTopicConfig(b.Config().Log(overrides))
	}
	layers := b.Config()
	if d := b.ordinary.Load(); d != nil && d.layers == layers {
		return d.config
	}
	d := &ordinaryTopic{layers: layers, config: makeTopicConfig(layers.Log(nil))}
	b.ordinary.Store(d)
	return d.config
}

// ordinaryTopic caches the config of topics without overrides: a thousand new partitions share it.
type ordinaryTopic struct {
	layers *config.Layers
	config *topicConfig
}

func makeTopicConfig(c *config.Log) *topicConfig {
	log := storage.LogConfig{
		SegmentBytes:                int32(c.SegmentBytes),
		SegmentMs:                   c.SegmentMs,
		SegmentJitterMs:             c.SegmentJitterMs,
		SegmentIndexBytes:           int32(c.SegmentIndexBytes),
		IndexIntervalBytes:          int32(c.IndexIntervalBytes),
		FlushMessages:               c.FlushMessages,
		FlushMs:                     c.FlushMs,
		RetentionMs:                 c.RetentionMs,
		RetentionBytes:              c.RetentionBytes,
		FileDeleteDelayMs:           c.FileDeleteDelayMs,
		MaxMessageBytes:             int32(c.MaxMessageBytes),
		MaxDecompressedMessageBytes: int32(c.MaxDecompressedMessageBytes),
		MessageTimestampBeforeMaxMs: c.TimestampBeforeMaxMs,
		MessageTimestampAfterMaxMs:  c.TimestampAfterMaxMs,
		CleanupDelete:               c.Delete,
		CleanupCompact:              c.Compact,
	}
	if c.TimestampType == "LogAppendTime" {
		log.MessageTimestampType = storage.LogAppendTime
	}
	switch c.CompressionType {
	case "producer":
		log.CompressionType = storage.CompressionProducer
	default: // config has checked the names; "uncompressed" is no codec's name and leaves None
		log.CompressionType = storage.CompressionFixed
		log.Compression, _ = compress.Parse(c.CompressionType)
	}
	switch log.Compression {
	case compress.Gzip:
		log.CompressionLevel = c.GzipLevel
	case compress.Lz4:
		log.CompressionLevel = c.Lz4Level
	case compress.Zstd:
		log.CompressionLevel = c.ZstdLevel
	}
	return &topicConfig{log: log, minInSyncReplicas: c.MinInSyncReplicas, compactOnly: c.Compact && !c.Delete}
}
