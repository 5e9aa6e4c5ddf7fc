package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/admin"
)

// places are what -o says.
type places struct {
	kind   placeKind
	n      int64
	at     time.Time
	single map[int32]int64 // P:N
}

type placeKind uint8

const (
	atEnd placeKind = iota
	atStart
	atOffset
	atLast // the last n
	atTime
)

// where reads the values of -o, and takes those out that are about the output.
func (c *consumeCmd) where(now time.Time) (p places, err error) {
	if c.Exit {
		p.kind = atStart // the end would be nothing at all
	}
	if c.Count < 0 {
		return p, fmt.Errorf("-n %d: want a number of records", c.Count)
	}
	general := ""
	for _, v := range c.Offset {
		switch v {
		case "json", "jsonl", "text":
			c.Output = v
			continue
		}
		if partition, offset, ok := strings.Cut(v, ":"); ok && !strings.HasPrefix(v, "@") {
			n, err1 := strconv.ParseInt(partition, 10, 32)
			at, err2 := strconv.ParseInt(offset, 10, 64)
			if err1 != nil || err2 != nil || n < 0 || at < 0 {
				return p, fmt.Errorf("-o %s: want PARTITION:OFFSET, such as 0:42", v)
			}
			if p.single == nil {
				p.single = map[int32]int64{}
			}
			p.single[int32(n)] = at
			continue
		}
		if general != "" {
			return p, fmt.Errorf("-o %s and -o %s: there can be only one start for all partitions", general, v)
		}
		general = v
		if err := p.parse(v, now); err != nil {
			return p, err
		}
	}
	if p.single != nil && general != "" {
		return p, fmt.Errorf("-o %s does not go with starts of single partitions", general)
	}
	return p, nil
}

// parse reads a start that is the same for all partitions.
func (p *places) parse(v string, now time.Time) (err error) {
	switch {
	case v == "start" || v == "beginning" || v == "earliest":
		p.kind = atStart
	case v == "end" || v == "latest":
		p.kind = atEnd
	case strings.HasPrefix(v, "@"):
		p.kind = atTime
		if p.at, err = parseTime(v[1:], now); err != nil {
			return fmt.Errorf("-o %s: %w", v, err)
		}
	default:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return fmt.Errorf("-o %s: want start, end, -N, N, @TIME, P:N, json or jsonl", v)
		}
		if p.kind, p.n = atOffset, n; strings.HasPrefix(v, "-") {
			p.kind, p.n = atLast, -n
		}
	}
	return nil
}

// partitions are those of a topic that are to be read: those that the command line names, or all.
func (p *places) partitions(t admin.Topic, only []int32) (list []admin.TopicPartition, err error) {
	wanted := slices.Concat(only, slices.Collect(maps.Keys(p.single)))
	slices.Sort(wanted)
	for _, n := range slices.Compact(wanted) {
		if n < 0 || int(n) >= len(t.Partitions) {
			return nil, fmt.Errorf("topic '%s' has partitions 0 to %d, there is no partition %d", t.Name, len(t.Partitions)-1, n)
		}
		list = append(list, admin.TopicPartition{Topic: t.Name, Partition: n})
	}
	if len(wanted) == 0 {
		for _, partition := range t.Partitions {
			list = append(list, admin.TopicPartition{Topic: t.Name, Partition: partition.ID})
		}
	}
	return list, nil
}

// start is the offset to start at, of what the partition has.
func (p *places) start(tp admin.TopicPartition, first, end, byTime int64) (int64, error) {
	n, single := p.single[tp.Partition]
	switch {
	case single:
	case p.kind == atOffset:
		n = p.n
	case p.kind == atStart:
		return first, nil
	case p.kind == atLast:
		return max(first, end-p.n), nil
	case p.kind == atTime && byTime >= 0:
		return byTime, nil
	default:
		return end, nil
	}
	if n < first || n > end {
		return 0, fmt.Errorf("%v has offsets %d to %d, not %d: start with -o start, -o end or one of these", tp, first, end, n)
	}
	return n, nil
}
