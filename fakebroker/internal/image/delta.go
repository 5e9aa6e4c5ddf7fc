package image

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/timeline"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// Delta is an image on its way to the next one: Apply adds records, Image ends it. It copies what it touches and shares
// the rest with its base. One goroutine owns a Delta; after Image it may only be read.
type Delta struct {
	base *Image
	img  *Image // under construction: its own struct, its maps still base's until own* copied them

	topics  *timeline.Edit[wire.UUID, *Topic]
	names   *timeline.Edit[string, *Topic]
	configs *timeline.Edit[config.Resource, map[string]string]
	similar *timeline.Edit[string, []string]
	others  *timeline.Edit[string, Record]

	// Which parts of img are this delta's own copies and may be written to; all others are still shared.
	ownBrokers, ownControllers, ownFeatures bool

	// What changed since base. The value says whether the Topic, or the resource's map, is this delta's own copy.
	changedTopics  map[wire.UUID]bool
	changedConfigs map[config.Resource]bool
	changedBrokers map[int32]bool
	featuresSeen   bool
}

// NewDelta starts a delta on top of base.
func NewDelta(base *Image) *Delta {
	img := *base
	return &Delta{base: base, img: &img}
}

// Base returns the image that the delta started from.
func (d *Delta) Base() *Image { return d.base }

// Apply changes the delta by one record that stands at offset under a leader epoch. It is the only way in which metadata
// changes, on every node, when loading as well as live. An error means that the record makes no sense on this image (an
// unknown topic id, for instance): a node that sees one has lost track and must not go on.
func (d *Delta) Apply(offset int64, epoch int32, rec Record) error {
	d.img.offset, d.img.epoch = offset, epoch
	if err := d.apply(rec.Record); err != nil {
		return fmt.Errorf("image: record %T at offset %d: %w", rec.Record, offset, err)
	}
	return nil
}

// apply dispatches to the file of the record's noun. Transaction records are the Loader's.
func (d *Delta) apply(rec logrecord.Record) error {
	switch r := rec.(type) {
	case *logrecord.NoOpRecord, *logrecord.ZkMigrationStateRecord:
		return nil
	case *logrecord.BeginTransactionRecord, *logrecord.EndTransactionRecord, *logrecord.AbortTransactionRecord:
		return nil
	case *logrecord.FeatureLevelRecord:
		return d.featureLevel(r)
	case *logrecord.ConfigRecord:
		return d.config(r)
	case *logrecord.ProducerIdsRecord:
		d.img.nextProducerID, d.img.producerIDs = r.NextProducerId, true
		return nil
	case *logrecord.TopicRecord:
		return d.topic(r)
	case *logrecord.RemoveTopicRecord:
		return d.removeTopic(r)
	case *logrecord.PartitionRecord:
		return d.partition(r)
	case *logrecord.PartitionChangeRecord:
		return d.partitionChange(r)
	case *logrecord.ClearElrRecord:
		return d.clearElr(r)
	case *logrecord.RegisterBrokerRecord:
		return d.registerBroker(r)
	case *logrecord.BrokerRegistrationChangeRecord:
		return d.changeBroker(r)
	case *logrecord.FenceBrokerRecord:
		return d.fenceBroker(r.Id, r.Epoch, true)
	case *logrecord.UnfenceBrokerRecord:
		return d.fenceBroker(r.Id, r.Epoch, false)
	case *logrecord.UnregisterBrokerRecord:
		return d.unregisterBroker(r)
	case *logrecord.RegisterControllerRecord:
		return d.registerController(r)
	case *logrecord.UnregisterControllerRecord:
		return d.unregisterController(r)
	}
	return d.other(rec)
}

// Image ends the delta: the image with all records applied.
func (d *Delta) Image() *Image {
	if d.topics != nil {
		d.img.topics, d.img.names = d.topics.Map(), d.names.Map()
	}
	if d.configs != nil {
		d.img.configs = d.configs.Map()
	}
	if d.similar != nil {
		d.img.similar = d.similar.Map()
	}
	if d.others != nil {
		d.img.others = d.others.Map()
	}
	return d.img
}

// TopicChange is one topic that differs between base and result. Old is nil for a created topic, New for a deleted one.
type TopicChange struct {
	Old, New *Topic
}

// Name is the topic's name.
func (c TopicChange) Name() string {
	if c.New != nil {
		return c.New.Name
	}
	return c.Old.Name
}

// Partitions returns the numbers of the partitions that are new, gone or changed, ascending.
func (c TopicChange) Partitions() []int32 {
	var changed []int32
	n := 0
	if c.Old != nil {
		n = len(c.Old.Partitions)
	}
	if c.New != nil {
		n = max(n, len(c.New.Partitions))
	}
	for i := range int32(n) {
		if c.Old.Partition(i) != c.New.Partition(i) {
			changed = append(changed, i)
		}
	}
	return changed
}

// Topics returns the topics that differ, by name. A topic that was deleted and made again under the same name is two
// changes, the deletion first. Call it after Image.
func (d *Delta) Topics() []TopicChange {
	var all []TopicChange
	for id := range d.changedTopics {
		c := TopicChange{Old: d.base.TopicByID(id), New: d.img.TopicByID(id)}
		if c.Old != nil || c.New != nil { // made and deleted within the delta: nobody ever saw it
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b TopicChange) int {
		if c := strings.Compare(a.Name(), b.Name()); c != 0 {
			return c
		}
		switch { // same name: one is a deletion
		case a.New == nil && b.New != nil:
			return -1
		case a.New != nil && b.New == nil:
			return 1
		}
		return 0
	})
	return all
}

// Configs returns the resources whose configs were written, by type and name.
func (d *Delta) Configs() []config.Resource {
	return slices.SortedFunc(maps.Keys(d.changedConfigs), compareResources)
}

// Brokers returns the ids of the brokers whose registration changed, ascending.
func (d *Delta) Brokers() []int32 { return slices.Sorted(maps.Keys(d.changedBrokers)) }

// FeaturesChanged reports whether a finalised feature level changed.
func (d *Delta) FeaturesChanged() bool { return d.ownFeatures || d.featuresSeen }
