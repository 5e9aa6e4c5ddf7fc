package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// names are all topics that there may be.
var names = []string{"a", "b", "c"}

// part is a partition of one life of a topic.
type part struct {
	id    wire.UUID
	index int32
}

// topics is the cluster's metadata and how many records each partition has.
type topics struct {
	w    *world
	img  *image.Image
	end  map[part]int64
	made uint64
}

func (t *topics) init(w *world) {
	t.w, t.img, t.end = w, image.Empty(), map[part]int64{}
	t.change(func(d *image.Delta) {
		t.create(d, "a", 4)
		t.create(d, "b", 3)
	})
}

// change makes a new image; what follows from it comes to the coordinator at once and to members later.
func (t *topics) change(f func(d *image.Delta)) {
	d := image.NewDelta(t.img)
	f(d)
	t.img = d.Image()
	w := t.w
	if w.brokers == nil {
		return
	}
	w.Note("topics %v", t.counts())
	w.brokers.environment(group.Environment{Image: t.img, Config: w.brokers.config, Changed: d.Topics()})
	for _, n := range w.nodes {
		w.After(w.delay(), func() { n.do(func() { n.look() }) })
	}
}

func (t *topics) apply(d *image.Delta, r logrecord.Record) {
	offset, _ := t.img.Offset()
	if err := d.Apply(offset+1, 1, image.Record{Record: r}); err != nil {
		t.w.Fail("%v", err)
	}
}

func (t *topics) create(d *image.Delta, name string, n int) {
	t.made++
	var id wire.UUID
	copy(id[:], name)
	binary.BigEndian.PutUint64(id[8:], t.made)
	t.apply(d, &logrecord.TopicRecord{Name: name, TopicId: id})
	t.add(d, id, 0, n)
}

func (t *topics) add(d *image.Delta, id wire.UUID, from, to int) {
	for i := from; i < to; i++ {
		r := logrecord.NewPartitionRecord()
		r.PartitionId, r.TopicId, r.Replicas, r.Isr, r.Leader = int32(i), id, []int32{1}, []int32{1}, 1
		t.apply(d, r)
		t.end[part{id, int32(i)}] = int64(t.w.work.IntN(20))
	}
}

// grow adds partitions, or makes the topic.
func (t *topics) grow(name string, by int) {
	t.change(func(d *image.Delta) {
		if old := t.img.Topic(name); old != nil {
			t.add(d, old.ID, len(old.Partitions), min(len(old.Partitions)+by, 8))
		} else {
			t.create(d, name, by)
		}
	})
}

func (t *topics) remove(name string) {
	if old := t.img.Topic(name); old != nil {
		t.change(func(d *image.Delta) { t.apply(d, &logrecord.RemoveTopicRecord{TopicId: old.ID}) })
	}
}

func (t *topics) counts() map[string]int {
	out := map[string]int{}
	for _, name := range names {
		if topic := t.img.Topic(name); topic != nil {
			out[name] = len(topic.Partitions)
		}
	}
	return out
}

// parts are all partitions there are, in order.
func (t *topics) parts() (out []part) {
	for _, name := range names {
		if topic := t.img.Topic(name); topic != nil {
			for i := range topic.Partitions {
				out = append(out, part{topic.ID, int32(i)})
			}
		}
	}
	return out
}

// produce writes records now and then, as long as faults go on.
func (t *topics) produce() {
	w := t.w
	if !w.faulty {
		return
	}
	all := t.parts()
	if len(all) > 0 {
		p := all[w.work.IntN(len(all))]
		t.end[p] += int64(w.work.IntN(6))
		for _, n := range w.nodes {
			w.After(w.delay(), func() { n.do(n.pump) })
		}
	}
	w.After(clockwork.Between(w.work, 0, 800*time.Millisecond), t.produce)
}

// view is an image as members see it.
type view struct{ img *image.Image }

// Topic implements machine.View.
func (v view) Topic(name string) (machine.TopicRacks, bool, bool) {
	t := v.img.Topic(name)
	if t == nil {
		return machine.TopicRacks{Name: name}, false, true
	}
	return machine.TopicRacks{Name: name, Racks: make([][]string, len(t.Partitions))}, true, true
}

// Name implements machine.View.
func (v view) Name(id wire.UUID) (string, bool) {
	if t := v.img.TopicByID(id); t != nil {
		return t.Name, true
	}
	return "", false
}

// nameOf is the name of a topic id as long as it is there.
func (t *topics) nameOf(id wire.UUID) (string, bool) { return view{t.img}.Name(id) }

func sortParts(list []part) []part {
	slices.SortFunc(list, func(a, b part) int {
		if c := a.id.Compare(b.id); c != 0 {
			return c
		}
		return int(a.index - b.index)
	})
	return list
}
