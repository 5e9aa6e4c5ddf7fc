package admin

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// ResetTo says where the offsets of a group are to be put.
type ResetTo struct {
	name string
	kind resetKind
	n    int64
	at   time.Time
}

type resetKind uint8

const (
	resetSpec resetKind = iota + 1
	resetTime
	resetShift
	resetOffset
	resetCurrent
)

// Places that a partition has.
var (
	// ResetToEarliest is the first offset that is still there.
	ResetToEarliest = ResetTo{name: "earliest", kind: resetSpec, n: Earliest.timestamp}
	// ResetToLatest is the offset of the next record.
	ResetToLatest = ResetTo{name: "latest", kind: resetSpec, n: Latest.timestamp}
	// ResetToCurrent is what is committed, and the latest offset where nothing is.
	ResetToCurrent = ResetTo{name: "current", kind: resetCurrent}
)

// ResetToTime is the first record that is not older than t, or the latest offset when there is none.
func ResetToTime(t time.Time) ResetTo {
	return ResetTo{name: "time " + t.Format(time.RFC3339Nano), kind: resetTime, at: t}
}

// ResetByDuration is ResetToTime of d before now.
func ResetByDuration(d time.Duration) ResetTo {
	r := ResetToTime(time.Now().Add(-d))
	r.name = "now - " + d.String()
	return r
}

// ResetByShift moves what is committed by n records: back when n is negative. It does not leave the log.
func ResetByShift(n int64) ResetTo {
	return ResetTo{name: fmt.Sprintf("current%+d", n), kind: resetShift, n: n}
}

// ResetToOffset is one offset, or the end of the log that is nearer when the log does not have it.
func ResetToOffset(offset int64) ResetTo {
	return ResetTo{name: fmt.Sprintf("offset %d", offset), kind: resetOffset, n: offset}
}

// String says the place in words.
func (r ResetTo) String() string { return r.name }

// ResetPlan is what a reset would do: the dry run. It can be printed, looked through and executed. It is a value: nothing
// happens to a group by making one, and rows may be changed or dropped before Execute.
type ResetPlan struct {
	Group string
	To    ResetTo
	Rows  []ResetRow // by topic and partition when no partitions were named, else in their order
}

// ResetRow is what a reset would do to a partition.
type ResetRow struct {
	TopicPartition
	Committed  int64 // what is committed now; -1 when nothing is
	Offset     int64 // what would be; -1 with an error
	Start, End int64 // the offsets that the log has: the first one, and the one of the next record; -1 with an error
	Clamped    bool  // Offset is the nearest end of the log, because it has not got the one asked for
	Err        error
}

// String is the partition with the offset that is committed and the new one, or what went wrong.
func (r ResetRow) String() string {
	if r.Err != nil {
		return fmt.Sprintf("%v: %v", r.TopicPartition, r.Err)
	}
	return fmt.Sprintf("%v@%s -> %s", r.TopicPartition, numberOrDash(r.Committed), numberOrDash(r.Offset))
}

// Lag is how many records the group would have before it.
func (r ResetRow) Lag() int64 {
	if r.Offset < 0 {
		return -1
	}
	return r.End - r.Offset
}

// String is the plan as a table.
func (p ResetPlan) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GROUP\tTOPIC\tPARTITION\tCOMMITTED\tNEW-OFFSET\tLAG\tNOTE")
	for _, r := range p.Rows {
		note := ""
		switch {
		case r.Err != nil:
			note = r.Err.Error()
		case r.Clamped:
			note = fmt.Sprintf("the log has %d to %d", r.Start, r.End)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", p.Group, r.Topic, r.Partition, numberOrDash(r.Committed), numberOrDash(r.Offset), numberOrDash(r.Lag()), note)
	}
	w.Flush()
	lines := strings.SplitAfter(b.String(), "\n")
	for i, l := range lines { // the last column may be empty
		if trimmed := strings.TrimRight(l, " \n"); trimmed != "" {
			lines[i] = trimmed + "\n"
		}
	}
	return strings.Join(lines, "")
}

func numberOrDash(n int64) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// PlanReset works out what ResetGroupOffsets would do to a group and changes nothing. Without partitions the plan is about
// all that the group has committed. The group must have no members, else the error is an *ActiveGroupError and the plan is
// made none the less. A group that does not exist is created by executing the plan.
func (a *Admin) PlanReset(ctx context.Context, group string, to ResetTo, partitions ...TopicPartition) (ResetPlan, error) {
	plan := ResetPlan{Group: group, To: to}
	if to.kind == 0 {
		return plan, fmt.Errorf("reset offsets of group %s: the zero ResetTo is no place; use ResetToEarliest, ResetToTime(t) or another", group)
	}
	committed, err := a.ListGroupOffsets(ctx, group, partitions...)
	for _, c := range committed {
		plan.Rows = append(plan.Rows, ResetRow{TopicPartition: c.TopicPartition, Committed: c.Offset, Offset: -1, Start: -1, End: -1, Err: c.Err})
	}
	if err != nil {
		return plan, err
	}
	if len(plan.Rows) == 0 {
		return plan, &Error{Op: "reset offsets of", What: "group " + group, Code: errcode.GroupIdNotFound, Message: "it has committed nothing: name the partitions to reset"}
	}
	a.findOffsets(ctx, &plan)
	errs := []error{a.inactive(ctx, group)}
	for _, r := range plan.Rows {
		errs = append(errs, r.Err)
	}
	return plan, joinErrors(errs)
}

// findOffsets fills the rows of a plan from the partitions' leaders.
func (a *Admin) findOffsets(ctx context.Context, plan *ResetPlan) {
	var partitions []TopicPartition
	for _, r := range plan.Rows {
		partitions = append(partitions, r.TopicPartition)
	}
	starts, _ := a.ListOffsets(ctx, Earliest, partitions...) // errors are in the rows
	ends, _ := a.ListOffsets(ctx, Latest, partitions...)
	wanted := ends
	if plan.To.kind == resetTime {
		wanted, _ = a.ListOffsets(ctx, AtTime(plan.To.at), partitions...)
	}
	for i := range plan.Rows {
		r := &plan.Rows[i]
		for _, o := range []Offset{starts[i], ends[i], wanted[i]} {
			if r.Err == nil {
				r.Err = o.Err
			}
		}
		if r.Err == nil {
			r.Start, r.End = starts[i].Offset, ends[i].Offset
			r.place(plan.To, wanted[i].Offset)
		}
	}
}

// place chooses the offset. byTime is the one that was found for a time.
func (r *ResetRow) place(to ResetTo, byTime int64) {
	switch {
	case to == ResetToEarliest:
		r.Offset = r.Start
	case to == ResetToLatest, to.kind == resetTime && byTime < 0, to.kind == resetCurrent && r.Committed < 0:
		r.Offset = r.End
	case to.kind == resetTime:
		r.Offset = byTime
	case to.kind == resetCurrent:
		r.Offset = r.Committed
	case to.kind == resetShift && r.Committed < 0:
		r.Err = &Error{Op: "reset offset of", What: r.TopicPartition.String(), Code: errcode.InvalidRequest, Message: "it cannot be shifted, because the group has committed none there"}
		return
	case to.kind == resetShift:
		r.Offset = r.Committed + to.n
	default:
		r.Offset = to.n
	}
	if within := min(max(r.Offset, r.Start), r.End); within != r.Offset {
		r.Offset, r.Clamped = within, true
	}
}

// Execute commits the offsets of the plan. If a row of the plan has an error, nothing is committed; drop such rows to go on
// without them. Offsets that records got or retention took since the plan was made are not looked at again.
func (p ResetPlan) Execute(ctx context.Context, a *Admin) ([]AlteredOffset, error) {
	offsets := make(map[TopicPartition]NewOffset, len(p.Rows))
	var errs []error
	for _, r := range p.Rows {
		errs = append(errs, r.Err)
		offsets[r.TopicPartition] = NewOffset{Offset: r.Offset}
	}
	if err := joinErrors(errs); err != nil {
		return nil, fmt.Errorf("reset offsets of group %s: nothing was changed: %w", p.Group, err)
	}
	return a.AlterGroupOffsets(ctx, p.Group, offsets)
}

// ResetGroupOffsets puts the offsets of a group somewhere else: it plans and executes. Without partitions it is about all
// that the group has committed. If anything of the plan fails, or the group has members, nothing is changed.
func (a *Admin) ResetGroupOffsets(ctx context.Context, group string, to ResetTo, partitions ...TopicPartition) (ResetPlan, error) {
	plan, err := a.PlanReset(ctx, group, to, partitions...)
	if err != nil {
		return plan, err
	}
	rows, err := plan.Execute(ctx, a)
	failed := map[TopicPartition]error{}
	for _, r := range rows {
		failed[r.TopicPartition] = r.Err
	}
	for i := range plan.Rows {
		plan.Rows[i].Err = failed[plan.Rows[i].TopicPartition]
	}
	return plan, err
}
