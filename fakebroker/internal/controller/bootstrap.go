package controller

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// FormatRecords are the metadata records of the checkpoint 0-0 that a log dir is formatted with: the level of each
// feature.
func FormatRecords(levels []image.FeatureRange) []image.Record {
	records := make([]image.Record, 0, len(levels))
	for _, l := range levels {
		records = append(records, image.Record{Record: &logrecord.FeatureLevelRecord{Name: l.Name, FeatureLevel: l.Max}})
	}
	return records
}

// Bootstrap returns what the first active controller of a cluster writes when it finds nothing but the format's
// checkpoint: the same feature levels, now in the log, in one metadata transaction. With ELR the cluster needs an explicit
// min.insync.replicas, since the static one could differ from node to node.
func (c *Controller) Bootstrap(levels []image.FeatureRange) []image.Record {
	name := "Bootstrap records"
	records := []image.Record{{Record: &logrecord.BeginTransactionRecord{Name: &name}}}
	records = append(records, FormatRecords(levels)...)
	for _, l := range levels {
		if l.Name == image.ELRFeature && l.Max > 0 {
			value := c.opts.Config.Value(minISR).Format(config.Int)
			records = append(records, configRecord(config.Resource{Type: config.BrokerResource}, minISR, value))
		}
	}
	return append(records, image.Record{Record: &logrecord.EndTransactionRecord{}})
}
