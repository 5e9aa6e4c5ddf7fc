package group

import (
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
)

// A consumer group's record holds a hash of the topics that it reads: when the hash changes, the group's epoch does. All
// numbers are little endian, strings are UTF-16 code units followed by their count:
//
//	topic: 0 (format), id (two longs), name, partition count, per partition: number, racks of its replicas, sorted, each
//	       with its length before it
//	group: the hashes of its topics, in the order of the topics' names
type hasher struct{ b []byte }

func (h *hasher) int(v int32)  { h.b = binary.LittleEndian.AppendUint32(h.b, uint32(v)) }
func (h *hasher) long(v int64) { h.b = binary.LittleEndian.AppendUint64(h.b, uint64(v)) }

func (h *hasher) string(s string) {
	units := utf16Units(s)
	for _, u := range units {
		h.b = binary.LittleEndian.AppendUint16(h.b, u)
	}
	h.int(int32(len(units)))
}

func utf16Units(s string) []uint16 {
	units := make([]uint16, 0, len(s))
	for _, r := range s {
		if r >= 0x10000 {
			r -= 0x10000
			units = append(units, uint16(0xd800+r>>10), uint16(0xdc00+r&0x3ff))
			continue
		}
		units = append(units, uint16(r))
	}
	return units
}

// hashTopic hashes a topic of which racks gives the racks of each partition's replicas.
func hashTopic(id wire.UUID, name string, racks [][]string) int64 {
	h := hasher{b: []byte{0}}
	h.long(int64(binary.BigEndian.Uint64(id[:8])))
	h.long(int64(binary.BigEndian.Uint64(id[8:])))
	h.string(name)
	h.int(int32(len(racks)))
	for p, of := range racks {
		h.int(int32(p))
		sorted := slices.Clone(of)
		slices.Sort(sorted)
		for _, rack := range sorted {
			h.int(int32(len(utf16Units(rack))))
			h.string(rack)
		}
	}
	return int64(xxh3.Hash(h.b))
}

// hashTopics hashes what a group reads; 0 for nothing. names must be sorted.
func hashTopics(names []string, hash func(name string) int64) int64 {
	if len(names) == 0 {
		return 0
	}
	var h hasher
	for _, name := range names {
		h.long(hash(name))
	}
	return int64(xxh3.Hash(h.b))
}

// racksOf lists the racks of the replicas of each partition, as far as brokers have one.
func racksOf(img *image.Image, t *image.Topic) [][]string {
	racks := make([][]string, len(t.Partitions))
	for i, p := range t.Partitions {
		if p == nil {
			continue
		}
		for _, id := range p.Replicas {
			if b := img.Broker(id); b != nil && b.Rack != nil {
				racks[i] = append(racks[i], *b.Rack)
			}
		}
	}
	return racks
}

func sortedStrings(s []string) []string {
	t := slices.Clone(s)
	slices.Sort(t)
	return slices.Compact(t)
}
