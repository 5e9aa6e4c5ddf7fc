package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
)

// place is where a record lies.
type place struct {
	partition int32
	offset    int64
}

// want is one identity that out must have.
type want struct {
	times int     // how often
	from  place   // of the first input record that leads to it
	key   string  // of that
	keyed bool    // whether it has a key
	got   []place // where it is in out
}

// inputs is what is in the input topic. It holds an entry of some hundred bytes for each identity, never the records.
type inputs struct {
	topic   string
	wants   map[string]*want
	order   []string
	offsets map[int32][]int64
	last    map[int32]int64
}

func exactlyOnce(ctx context.Context, cl *client.Client, in, out string, s *settings) (*Result, error) {
	deadline := time.Now().Add(s.within)
	from, err := newTopicReader(ctx, cl, in)
	if err != nil {
		return nil, err
	}
	to, err := newTopicReader(ctx, cl, out)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	seen := &inputs{topic: in, wants: map[string]*want{}, offsets: map[int32][]int64{}, last: map[int32]int64{}}
	if err := from.read(ctx, func(rec consumer.Record) { seen.add(r, s, rec) }); err != nil {
		return nil, err
	}
	if s.group != "" {
		if err := from.checkGroup(ctx, r, s.group, seen, deadline); err != nil {
			return nil, err
		}
	}
	if err := to.checkOpen(ctx, r, deadline); err != nil {
		return nil, err
	}
	order := &ordering{last: map[line]placed{}}
	if err := to.read(ctx, func(rec consumer.Record) { seen.compare(r, s, rec, order) }); err != nil {
		return nil, err
	}
	seen.judge(r, out)
	return r, nil
}

// add takes one input record.
func (in *inputs) add(r *Result, s *settings, rec consumer.Record) {
	r.In++
	in.offsets[rec.Partition] = append(in.offsets[rec.Partition], rec.Offset)
	in.last[rec.Partition] = rec.Offset
	ids := []string(nil)
	if s.expand != nil {
		ids = s.expand(rec)
	} else {
		ids = []string{s.inID(rec)}
	}
	for _, id := range ids {
		w := in.wants[id]
		if w == nil {
			w = &want{from: place{rec.Partition, rec.Offset}, key: string(rec.Key), keyed: rec.Key != nil}
			in.wants[id] = w
			in.order = append(in.order, id)
		}
		w.times++
	}
}

// compare takes one output record.
func (in *inputs) compare(r *Result, s *settings, rec consumer.Record, o *ordering) {
	r.Out++
	id := s.outID(rec)
	w := in.wants[id]
	if w == nil {
		r.finding(&r.Unexpected, "unexpected: %s has %q (key %q), which comes from no record of %s", at(rec.Topic, place{rec.Partition, rec.Offset}), id, rec.Key, in.topic)
		return
	}
	w.got = append(w.got, place{rec.Partition, rec.Offset})
	if s.ordered && w.times == 1 && len(w.got) == 1 && w.keyed {
		o.check(r, in, id, w, rec.Topic)
	}
}

// judge says what is missing and what is there too often, in the order of the input.
func (in *inputs) judge(r *Result, out string) {
	for _, id := range in.order {
		w := in.wants[id]
		switch n := len(w.got); {
		case n == 0:
			r.finding(&r.Lost, "lost: %q (%s, key %q) is not in %s", id, at(in.topic, w.from), w.key, out)
		case n < w.times:
			r.finding(&r.Lost, "lost: %q is in %s %d times instead of %d", id, out, n, w.times)
			r.Lost += w.times - n - 1
		case n > w.times:
			r.finding(&r.Duplicates, "duplicate: %q (%s, key %q) is at %s", id, at(in.topic, w.from), w.key, atAll(out, w.got))
			r.Duplicates += n - w.times - 1
		}
	}
}

// left counts the records that lie at committed offsets or above.
func (in *inputs) left(committed map[int32]int64) (n int64) {
	for p, offsets := range in.offsets {
		i, _ := slices.BinarySearch(offsets, max(committed[p], 0))
		n += int64(len(offsets) - i)
	}
	return n
}

func (in *inputs) partitions() []int32 { return slices.Sorted(maps.Keys(in.last)) }

// ordering is the order of results: those of input records with one key from one partition, in one partition of out.
type ordering struct{ last map[line]placed }

type line struct {
	key     string
	in, out int32
}

// placed is the result that lies highest so far.
type placed struct {
	id       string
	from, to place
}

func (o *ordering) check(r *Result, in *inputs, id string, w *want, out string) {
	l, now := line{w.key, w.from.partition, w.got[0].partition}, placed{id, w.from, w.got[0]}
	before, known := o.last[l]
	if known && now.from.offset < before.from.offset {
		r.finding(&r.Reordered, "order: key %q: %q (%s) is at %s, behind %q (%s) at %s", w.key, id, at(in.topic, now.from), at(out, now.to),
			before.id, at(in.topic, before.from), at(out, before.to))
		return
	}
	o.last[l] = now
}

func at(topic string, p place) string { return fmt.Sprintf("%s-%d@%d", topic, p.partition, p.offset) }

func atAll(topic string, list []place) string {
	s := at(topic, list[0])
	for i, p := range list[1:] {
		if i == maxFindings {
			return fmt.Sprintf("%s and %d more", s, len(list)-1-i)
		}
		s += " and " + at(topic, p)
	}
	return s
}
