package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/consumer"
)

// consumeCmd prints records.
type consumeCmd struct {
	connection
	Topics    []string `arg:"" name:"topic" help:"Names."`
	Offset    []string `short:"o" sep:"none" placeholder:"WHERE" help:"Where to start: start, end, -N (the last N of each partition), N, @TIME (also @-1h), P:N (only partition P, at N; may be repeated). Default: end, with -e start. For short, -o json and -o jsonl set the output."`
	Partition []int32  `short:"p" help:"Only these partitions."`
	Group     string   `short:"g" placeholder:"GROUP" help:"Read as a member of this group: from what it has committed, sharing partitions with its other members, committing what is printed. -o start, end or @TIME is for partitions without a committed offset."`
	Count     int64    `short:"n" placeholder:"N" help:"Stop after N records."`
	Exit      bool     `short:"e" help:"Stop at what is the end now."`
	Format    string   `short:"f" placeholder:"FORMAT" help:"As kcat has it: %t topic, %p partition, %o offset, %T timestamp in ms, %k key, %s value, %h headers, %K and %S sizes; \\n, \\t and \\xHH."`
	Output    string   `default:"text" enum:"text,json,jsonl" help:"text (by -f, values without it), jsonl (an object a line) or json (one array)."`
	Isolation string   `default:"" enum:",read_committed,read_uncommitted" placeholder:"LEVEL" help:"read_committed leaves out records of open and aborted transactions (default: isolation.level of the properties)."`
}

// endPoll is how often a partition without records is looked at for its end: control records at the end of a log move the
// position and are not handed out.
const endPoll = 100 * time.Millisecond

// Run prints records until it is interrupted, has printed enough, or is at the end.
func (c *consumeCmd) Run(ctx context.Context, io streams) error {
	where, err := c.where(time.Now())
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("consume: %w", err)}
	}
	show, err := newPrinter(c.Output, c.Format, io.out)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("consume: %w", err)}
	}
	return c.on(ctx, io, func(s *session) error {
		cfg := s.consumer
		switch c.Isolation {
		case "read_committed":
			cfg.Isolation = consumer.ReadCommitted
		case "read_uncommitted":
			cfg.Isolation = consumer.ReadUncommitted
		}
		cfg.FailFast = true
		var span []partSpan
		var err error
		if c.Group != "" {
			span, err = c.subscribe(ctx, s, &cfg, where)
		} else {
			span, err = c.assign(ctx, s, &cfg, where)
		}
		if err != nil {
			return err
		}
		r, err := consumer.NewFromConfig(s.cl, cfg)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		err = c.read(ctx, r, span, show)
		if ended := show.end(); err == nil {
			err = ended
		}
		return printed(c.leave(ctx, r, err), err) // a member commits what is printed, so it leaves last
	})
}

// assign makes the consumer read partitions on its own.
func (c *consumeCmd) assign(ctx context.Context, s *session, cfg *consumer.Config, where places) ([]partSpan, error) {
	cfg.Group = consumer.DefaultConfig().Group // group.id of the properties is for -g
	span, err := s.span(ctx, c.Topics, c.Partition, where, cfg.Isolation)
	for _, p := range span {
		cfg.Assigned = append(cfg.Assigned, consumer.Assignment{TopicPartition: p.tp, Start: consumer.AtOffset(p.start)})
	}
	return span, err
}

// read prints until one of the ends. Records of one poll are flushed together, so that a pipe gets them when they come.
func (c *consumeCmd) read(ctx context.Context, r *consumer.Consumer, span []partSpan, show *printer) error {
	ends := endsOf(span, c.Group != "")
	for n := int64(0); (!c.Exit || !ends.reached(r)) && (c.Count == 0 || n < c.Count); {
		most := 0
		if c.Count > 0 {
			most = int(min(c.Count-n, 500))
		}
		wait, stop := ctx, func() {}
		if c.Exit {
			wait, stop = context.WithTimeout(ctx, endPoll)
		}
		records, err := r.Poll(wait, most)
		stop()
		for i := range records {
			if rec := &records[i]; !c.Exit || ends.want(rec) {
				if err := show.record(rec); err != nil {
					return err
				}
				n++
			}
		}
		if flushed := show.flush(); flushed != nil {
			return flushed
		}
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return err
		}
	}
	return nil
}

// partSpan is what is to be read of a partition.
type partSpan struct {
	tp         consumer.TopicPartition
	start, end int64 // end is of now
}

// span finds the partitions to read and where they start.
func (s *session) span(ctx context.Context, names []string, only []int32, from places, isolation consumer.Isolation) ([]partSpan, error) {
	topics, _ := s.adm.DescribeTopics(ctx, names...) // errors are in the rows
	if err := s.topicErrors(ctx, topics); err != nil {
		return nil, err
	}
	var list []admin.TopicPartition
	for _, t := range topics {
		some, err := from.partitions(t, only)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	last := admin.Latest
	if isolation == consumer.ReadCommitted {
		last = admin.LastStable
	}
	starts, err := s.adm.ListOffsets(ctx, admin.Earliest, list...)
	if err != nil {
		return nil, err
	}
	ends, err := s.adm.ListOffsets(ctx, last, list...)
	if err != nil {
		return nil, err
	}
	times := ends
	if !from.at.IsZero() {
		if times, err = s.adm.ListOffsets(ctx, admin.AtTime(from.at), list...); err != nil {
			return nil, err
		}
	}
	out := make([]partSpan, len(list))
	for i, tp := range list {
		start, err := from.start(tp, starts[i].Offset, ends[i].Offset, times[i].Offset)
		if err != nil {
			return nil, err
		}
		out[i] = partSpan{tp, start, ends[i].Offset}
	}
	return out, nil
}
