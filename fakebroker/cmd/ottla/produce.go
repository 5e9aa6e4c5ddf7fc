package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/compress"
)

// produceCmd writes lines, or records in JSON, to a topic.
type produceCmd struct {
	connection
	output
	Topic         string   `arg:"" help:"Name of the topic; it must exist."`
	Files         []string `arg:"" optional:"" name:"file" help:"What to write, - for stdin; without any, stdin."`
	KeySeparator  string   `short:"k" placeholder:"SEP" help:"What stands before the first SEP of a line is the key. Without it records have none."`
	Header        []string `short:"H" sep:"none" placeholder:"NAME=VALUE" help:"A header for every record (may be repeated)."`
	Partition     int32    `short:"p" default:"-1" help:"Write to this partition, instead of the one that the key or the partitioner says."`
	Repartition   bool     `help:"Do not go by the partitions that records in JSON name."`
	Acks          string   `enum:",all,-1,0,1" default:"" placeholder:"all|0|1" help:"Replicas that must have a record (default: acks of the properties, else all)."`
	Compression   string   `short:"z" name:"compression" aliases:"codec" placeholder:"CODEC" help:"none, gzip, snappy, lz4 or zstd."`
	TxnID         string   `name:"txn-id" placeholder:"ID" help:"Write everything in one transaction of this transactional id, committed when all is written and aborted when something fails (default: transactional.id of the properties)."`
	Input         string   `default:"lines" enum:"lines,jsonl" help:"What a line is: lines (its bytes are the value) or jsonl (a record as consume -o jsonl prints it)."`
	MaxFailedShow int      `name:"max-errors" default:"5" help:"How many failed records to describe on stderr."`
}

// Run writes everything and waits for the acknowledgements. What was written is printed by partition; a record that could
// not be is an error, and does not keep the others.
func (c *produceCmd) Run(ctx context.Context, io streams) error {
	headers, err := c.headers()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	return c.on(ctx, io, func(s *session) error {
		if err := c.configure(&s.producer); err != nil {
			return &exitError{exitUsage, err}
		}
		topics, _ := s.adm.DescribeTopics(ctx, c.Topic) // errors are in the rows
		if err := s.topicErrors(ctx, topics); err != nil {
			return err
		}
		to, err := c.sink(ctx, s)
		if err != nil {
			return err
		}
		t := &tally{topic: c.Topic, show: c.MaxFailedShow}
		failed := c.feed(ctx, io, func(rec producer.Record, at string) error {
			rec.Topic, rec.Headers = c.Topic, append(rec.Headers, headers...)
			return to.submit(ctx, rec, func(a producer.Ack, err error) { t.verdict(a, err, at) })
		})
		closed := to.end(context.WithoutCancel(ctx), failed != nil)
		if closed != nil && to.atomic {
			t.parts = nil // what was acknowledged is not there, or nobody knows
		}
		if err := t.table().print(io.out, c.Output); failed == nil && closed == nil {
			closed = err
		}
		return joinLines([]error{failed, t.err(), closedError(closed, t)})
	})
}

// closedError leaves out what the tally says in other words.
func closedError(err error, t *tally) error {
	if t.failed > 0 && !errors.Is(err, errAborted) {
		return nil
	}
	return err
}

// headers are those of the command line.
func (c *produceCmd) headers() (list []producer.Header, err error) {
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			return nil, fmt.Errorf("-H %s: want NAME=VALUE", h)
		}
		list = append(list, producer.Header{Key: name, Value: []byte(value)})
	}
	return list, nil
}

// configure puts the flags over the properties.
func (c *produceCmd) configure(cfg *producer.Config) error {
	switch c.Acks {
	case "all", "-1":
		cfg.Acks = producer.AcksAll
	case "0":
		cfg.Acks = producer.AcksNone
	case "1":
		cfg.Acks = producer.AcksLeader
	}
	if c.Compression != "" {
		codec, err := compress.Parse(c.Compression)
		if err != nil {
			return fmt.Errorf("-z %s: %w", c.Compression, err)
		}
		cfg.Compression = codec
	}
	return nil
}

// feed reads all inputs and hands out their records, each with the place of its line.
func (c *produceCmd) feed(ctx context.Context, in streams, submit func(rec producer.Record, at string) error) error {
	files := c.Files
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		r, place := in.in, "stdin"
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			r, place = f, name
		}
		lines := bufio.NewReaderSize(r, 1<<16)
		for n := 1; ; n++ {
			line, err := lines.ReadBytes('\n')
			if err != nil && err != io.EOF {
				return fmt.Errorf("%s: %w", place, err)
			}
			if err == io.EOF && len(line) == 0 {
				break
			}
			at := fmt.Sprintf("%s:%d", place, n)
			rec, parseErr := c.record(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")))
			if parseErr != nil {
				return fmt.Errorf("%s: %w", at, parseErr)
			}
			if err := submit(rec, at); err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// record makes a record of a line.
func (c *produceCmd) record(line []byte) (rec producer.Record, err error) {
	if c.Input == "jsonl" {
		if rec, err = recordFromJSON(line); err != nil {
			return rec, err
		}
		if c.Repartition {
			rec = producer.Record{Key: rec.Key, Value: rec.Value, Headers: rec.Headers, Timestamp: rec.Timestamp}
		}
	} else {
		rec.Value = line
		if c.KeySeparator != "" {
			key, value, ok := bytes.Cut(line, []byte(c.KeySeparator))
			if !ok {
				return rec, fmt.Errorf("there is no key separator %q in this line", c.KeySeparator)
			}
			rec.Key, rec.Value = key, value
		}
	}
	if c.Partition >= 0 {
		rec = rec.To(c.Partition)
	}
	return rec, nil
}

// tally counts verdicts. Its methods are called by the producer's one goroutine for callbacks, and after Close by the
// command.
type tally struct {
	topic  string
	show   int
	failed int
	errs   []error
	parts  map[int32]*partTally
}

type partTally struct{ records, first, last int64 }

func (t *tally) verdict(a producer.Ack, err error, at string) {
	if err != nil {
		if t.failed++; len(t.errs) < t.show {
			t.errs = append(t.errs, fmt.Errorf("%s: %w", at, err))
		}
		return
	}
	if t.parts == nil {
		t.parts = map[int32]*partTally{}
	}
	p := t.parts[a.Partition]
	if p == nil {
		p = &partTally{first: a.Offset, last: a.Offset}
		t.parts[a.Partition] = p
	}
	p.records, p.first, p.last = p.records+1, min(p.first, a.Offset), max(p.last, a.Offset)
}

// table is a row for each partition that got records.
func (t *tally) table() *table {
	out := newTable("topic", "partition", "records", "first_offset", "last_offset")
	var partitions []int32
	for p := range t.parts {
		partitions = append(partitions, p)
	}
	slices.Sort(partitions)
	for _, p := range partitions {
		out.add(t.topic, p, t.parts[p].records, known(t.parts[p].first), known(t.parts[p].last))
	}
	return out
}

// err says what failed, in detail for the first.
func (t *tally) err() error {
	if t.failed == 0 {
		return nil
	}
	errs := slices.Clone(t.errs)
	if t.failed > len(errs) {
		errs = append(errs, errors.New("and so on"))
	}
	return joinLines(append(errs, fmt.Errorf("%d records were not written", t.failed)))
}
