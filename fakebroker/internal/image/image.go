package image

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/timeline"
	"github.com/ottla-kafka/ottla/wire"
)

// Image is all metadata as of one offset of the metadata log. It is immutable: any goroutine may read it for as long as it likes,
// and nothing that it returns may be changed.
type Image struct {
	offset int64 // of the last record in it; -1 for the empty image
	epoch  int32 // leader epoch of that record

	features      map[string]int16
	featuresEpoch int64 // offset of the last change of a feature; -1 none

	brokers     map[int32]*Broker
	controllers map[int32]*Controller

	topics  timeline.Map[wire.UUID, *Topic]
	names   timeline.Map[string, *Topic]
	configs timeline.Map[config.Resource, map[string]string]
	// similar groups the names that hold a '.' or '_' by their form with all '_': names of one group would collide as
	// names of metrics, so CreateTopics refuses to add to a group.
	similar timeline.Map[string, []string]

	nextProducerID int64 // first id that no block holds
	producerIDs    bool  // a block was ever given out

	others timeline.Map[string, Record] // see apply_other.go
}

// Empty returns the image before any record.
func Empty() *Image {
	return &Image{
		offset: -1, featuresEpoch: -1,
		topics:  timeline.NewMap[wire.UUID, *Topic](timeline.UUID),
		names:   timeline.NewMap[string, *Topic](timeline.String),
		configs: timeline.NewMap[config.Resource, map[string]string](hashResource),
		similar: timeline.NewMap[string, []string](timeline.String),
		others:  timeline.NewMap[string, Record](timeline.String),
	}
}

func hashResource(r config.Resource) uint64 { return timeline.String(r.Name) + uint64(r.Type) }

// Offset returns the offset of the last record in the image, -1 when there is none, and its leader epoch.
func (i *Image) Offset() (offset int64, epoch int32) { return i.offset, i.epoch }

// Feature returns the finalised level of a feature, 0 when it is not finalised.
func (i *Image) Feature(name string) int16 { return i.features[name] }

// Features returns all finalised levels and the epoch that ApiVersions tells clients: the offset of the image, as Apache Kafka's
// brokers do, -1 for the empty image.
func (i *Image) Features() (levels map[string]int16, epoch int64) { return i.features, i.offset }

// Broker returns the registration of a broker, nil when it is not registered.
func (i *Image) Broker(id int32) *Broker { return i.brokers[id] }

// Brokers returns all registered brokers, fenced ones too, by id.
func (i *Image) Brokers() []*Broker {
	all := make([]*Broker, 0, len(i.brokers))
	for _, id := range slices.Sorted(maps.Keys(i.brokers)) {
		all = append(all, i.brokers[id])
	}
	return all
}

// Alive reports whether a broker is registered and not fenced: what Metadata lists, and what is no offline replica.
func (i *Image) Alive(id int32) bool {
	b := i.brokers[id]
	return b != nil && !b.Fenced
}

// Controller returns the registration of a controller, nil when it is not registered.
func (i *Image) Controller(id int32) *Controller { return i.controllers[id] }

// Controllers returns all registered controllers by id.
func (i *Image) Controllers() []*Controller {
	all := make([]*Controller, 0, len(i.controllers))
	for _, id := range slices.Sorted(maps.Keys(i.controllers)) {
		all = append(all, i.controllers[id])
	}
	return all
}

// Topic returns a topic by name, nil when there is none.
func (i *Image) Topic(name string) *Topic {
	t, _ := i.names.Get(name)
	return t
}

// TopicByID returns a topic by id, nil when there is none.
func (i *Image) TopicByID(id wire.UUID) *Topic {
	t, _ := i.topics.Get(id)
	return t
}

// TopicCount is the number of topics.
func (i *Image) TopicCount() int { return i.topics.Len() }

// Topics walks all topics in an order that depends on their names alone (not the alphabet's; see TopicNames).
func (i *Image) Topics() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range i.names.All() {
			if !yield(t) {
				return
			}
		}
	}
}

// TopicNames returns the names of all topics in alphabetical order.
func (i *Image) TopicNames() []string {
	names := make([]string, 0, i.names.Len())
	for n := range i.names.All() {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Similar returns the topics whose names equal name once every '.' is taken for '_', name itself included; nil when name
// has neither.
func (i *Image) Similar(name string) []string {
	if !hasCollisionChars(name) {
		return nil
	}
	names, _ := i.similar.Get(unified(name))
	return names
}

func hasCollisionChars(name string) bool { return strings.ContainsAny(name, "._") }

func unified(name string) string { return strings.ReplaceAll(name, ".", "_") }

// Configs returns the dynamic configs of a resource, nil when it has none. Broker "" is the default of all brokers.
func (i *Image) Configs(r config.Resource) map[string]string {
	m, _ := i.configs.Get(r)
	return m
}

// ConfigResources returns the resources that have configs, by type and name.
func (i *Image) ConfigResources() []config.Resource {
	all := make([]config.Resource, 0, i.configs.Len())
	for r := range i.configs.All() {
		all = append(all, r)
	}
	slices.SortFunc(all, compareResources)
	return all
}

func compareResources(a, b config.Resource) int {
	if a.Type != b.Type {
		return int(a.Type) - int(b.Type)
	}
	if a.Name < b.Name {
		return -1
	} else if a.Name > b.Name {
		return 1
	}
	return 0
}

// NextProducerID returns the first producer id that no block holds yet.
func (i *Image) NextProducerID() int64 { return i.nextProducerID }
