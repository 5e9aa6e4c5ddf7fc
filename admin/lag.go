package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// GroupLag is a row of Lag.
type GroupLag struct {
	Group      Group
	Partitions []PartitionLag // all that are assigned or committed, by topic and partition
	Err        error
}

// Total is the sum of what is known of the partitions' lags.
func (g GroupLag) Total() (n int64) {
	for _, p := range g.Partitions {
		n += max(p.Lag, 0)
	}
	return n
}

// PartitionLag is how far a group is behind in one partition.
type PartitionLag struct {
	TopicPartition
	Committed   int64 // -1: nothing is committed
	LeaderEpoch int32 // committed with it; -1 when unknown
	Metadata    string
	End         int64        // the offset of the next record; -1 with an error
	Lag         int64        // -1 when nothing is committed, or with an error
	Member      *GroupMember // who the partition is assigned to; nil: nobody
	Err         error
}

// String is the partition with what is committed, the log's end and the lag, or what went wrong.
func (p PartitionLag) String() string {
	if p.Err != nil {
		return fmt.Sprintf("%v: %v", p.TopicPartition, p.Err)
	}
	return fmt.Sprintf("%v@%s of %d, lag %s", p.TopicPartition, numberOrDash(p.Committed), p.End, numberOrDash(p.Lag))
}

// lagGroups is of how many groups at a time the offsets are listed: there is one request for each.
const lagGroups = 8

// Lag gives how far groups are behind, in the order of asking: for each partition what is committed, the log's end, the
// difference, and who reads it. Without groups it is about none; ListGroups has them.
func (a *Admin) Lag(ctx context.Context, groups ...string) ([]GroupLag, error) {
	described, _ := a.DescribeGroups(ctx, groups...) // errors are in the rows
	rows := make([]GroupLag, len(described))
	var wg sync.WaitGroup
	turns := make(chan struct{}, lagGroups)
	for i, g := range described {
		rows[i] = GroupLag{Group: g, Err: g.Err}
		if g.Err != nil {
			continue
		}
		turns <- struct{}{}
		wg.Go(func() { // ends with its request
			defer func() { <-turns }()
			rows[i].committed(a.ListGroupOffsets(ctx, g.ID))
		})
	}
	wg.Wait()
	a.ends(ctx, rows)
	errs := make([]error, 0, len(rows))
	for _, row := range rows {
		errs = append(errs, row.Err)
		for _, p := range row.Partitions {
			errs = append(errs, p.Err)
		}
	}
	return rows, outcome(ctx, errs)
}

// committed fills a row with what is committed and what is assigned.
func (g *GroupLag) committed(offsets []GroupOffset, err error) {
	all := map[TopicPartition]PartitionLag{}
	for _, o := range offsets {
		all[o.TopicPartition] = PartitionLag{TopicPartition: o.TopicPartition, Committed: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata, End: -1, Lag: -1, Err: o.Err}
	}
	if len(offsets) == 0 && err != nil {
		g.Err = err
		return
	}
	for i := range g.Group.Members {
		for _, tp := range g.Group.Members[i].Assigned {
			p, ok := all[tp]
			if !ok {
				p = PartitionLag{TopicPartition: tp, Committed: -1, LeaderEpoch: -1, End: -1, Lag: -1}
			}
			p.Member = &g.Group.Members[i]
			all[tp] = p
		}
	}
	g.Partitions = slices.SortedFunc(maps.Values(all), func(x, y PartitionLag) int { return comparePartitions(x.TopicPartition, y.TopicPartition) })
}

// ends fills in the logs' ends: each partition is asked about once, however many groups read it.
func (a *Admin) ends(ctx context.Context, rows []GroupLag) {
	var partitions []TopicPartition
	for _, row := range rows {
		for _, p := range row.Partitions {
			partitions = append(partitions, p.TopicPartition)
		}
	}
	listed, _ := a.ListOffsets(ctx, Latest, partitions...)
	ends := byName(listed, func(o Offset) TopicPartition { return o.TopicPartition })
	for _, row := range rows {
		for i := range row.Partitions {
			p := &row.Partitions[i]
			if p.Err == nil {
				p.Err = ends[p.TopicPartition].Err
			}
			if p.Err != nil {
				continue
			}
			if p.End = ends[p.TopicPartition].Offset; p.Committed >= 0 {
				p.Lag = max(p.End-p.Committed, 0) // a truncated log may end before what was committed
			}
		}
	}
}
