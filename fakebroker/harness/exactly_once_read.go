package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
)

// settle is how often a cluster is asked again for what is awaited.
const settle = 50 * time.Millisecond

// topicReader reads all partitions of a topic.
type topicReader struct {
	cl    *client.Client
	topic string
	parts []consumer.TopicPartition
}

// newTopicReader asks for the topic. One that is not there is an error: it is not made, as a client's first use would have
// it, for then a misspelt name would be a topic without records, of which nothing is lost.
func newTopicReader(ctx context.Context, cl *client.Client, topic string) (*topicReader, error) {
	rows, err := admin.New(cl).DescribeTopics(ctx, topic)
	if err != nil {
		return nil, err
	}
	t := &topicReader{cl: cl, topic: topic}
	for _, p := range rows[0].Partitions {
		t.parts = append(t.parts, consumer.TopicPartition{Topic: topic, Partition: p.ID})
	}
	return t, nil
}

// ends asks for the offsets at which readers of a level end.
func (t *topicReader) ends(ctx context.Context, level consumer.Isolation) (map[consumer.TopicPartition]int64, error) {
	c, err := consumer.New(t.cl, consumer.WithIsolation(level)) // it is asked, and reads nothing
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close(ctx) }()
	return c.EndOffsets(ctx, t.parts...)
}

// read hands out everything that read_committed readers see now, in the order of each partition.
func (t *topicReader) read(ctx context.Context, each func(consumer.Record)) error {
	ends, err := t.ends(ctx, consumer.ReadCommitted)
	if err != nil {
		return err
	}
	var assign []int32
	for _, tp := range t.parts {
		if ends[tp] > 0 {
			assign = append(assign, tp.Partition)
		}
	}
	if assign == nil {
		return nil
	}
	// The end is known, so a fetch need not wait for more, nor Close for the fetch.
	c, err := consumer.New(t.cl, consumer.Assign(t.topic, assign...), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted),
		consumer.Fetching(1, 10*time.Millisecond))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	moved := progress{since: time.Now()}
	for {
		missing := short(c.Partitions(), ends)
		if missing == nil {
			return nil
		}
		if moved.stalled(missing) {
			return fmt.Errorf("read %s: nothing has come for %s: %s", t.topic, stall, strings.Join(missing, ", "))
		}
		// Behind markers and aborted records a poll may wait for ever: the position moves over them, and nothing comes.
		quick, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		list, err := c.Poll(quick, 0)
		cancel()
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return fmt.Errorf("read %s: %w", t.topic, err)
		}
		for _, r := range list {
			if r.Offset < ends[r.TopicPartition()] {
				each(r)
			}
		}
	}
}

// stall is how long a reader may get no further before it gives up: a cluster that does not answer must not hold a test
// for ever.
const stall = time.Minute

// short says which partitions have not been read to their ends, and where they stand.
func short(parts []consumer.PartitionState, ends map[consumer.TopicPartition]int64) (list []string) {
	for _, p := range parts {
		end := ends[p.TopicPartition]
		if p.Position >= end {
			continue
		}
		text := fmt.Sprintf("%s is at offset %d of %d", p.TopicPartition, p.Position, end)
		if p.Halted != nil {
			text += fmt.Sprintf(" (%v)", p.Halted)
		}
		list = append(list, text)
	}
	return list
}

// progress knows when something moved last.
type progress struct {
	since time.Time
	last  []string
}

func (p *progress) stalled(now []string) bool {
	if !slices.Equal(now, p.last) {
		p.last, p.since = now, time.Now()
	}
	return time.Since(p.since) >= stall
}

// checkOpen waits until no transaction is open in the topic, and names those that stay.
func (t *topicReader) checkOpen(ctx context.Context, r *Result, deadline time.Time) error {
	for {
		stable, err := t.ends(ctx, consumer.ReadCommitted)
		if err != nil {
			return err
		}
		high, err := t.ends(ctx, consumer.ReadUncommitted)
		if err != nil {
			return err
		}
		var open []consumer.TopicPartition
		for _, tp := range t.parts {
			if stable[tp] < high[tp] {
				open = append(open, tp)
			}
		}
		if len(open) > 0 && time.Now().Before(deadline) {
			time.Sleep(settle)
			continue
		}
		for _, tp := range open {
			r.finding(&r.Open, "open transaction: %s is stable up to offset %d only, its high watermark is %d%s", tp, stable[tp], high[tp], t.openedBy(ctx, tp))
		}
		return nil
	}
}

// openedBy says which producers have transactions open in a partition, where the cluster can say that (2.8 and later).
func (t *topicReader) openedBy(ctx context.Context, tp consumer.TopicPartition) string {
	rows, err := admin.New(t.cl).DescribeProducers(ctx, tp)
	if err != nil || len(rows) == 0 {
		return ""
	}
	var names []string
	for _, p := range rows[0].Producers {
		if p.Open() {
			names = append(names, fmt.Sprintf("producer %d epoch %d since offset %d", p.ID, p.Epoch, p.TxnStart))
		}
	}
	if names == nil {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

// checkGroup waits until the group has committed everything, and says what is left. last has the last record of each
// partition.
func (t *topicReader) checkGroup(ctx context.Context, r *Result, group string, seen *inputs, deadline time.Time) error {
	for {
		rows, err := admin.New(t.cl).ListGroupOffsets(ctx, group, t.parts...)
		if err != nil {
			return err
		}
		committed := map[int32]int64{}
		for _, row := range rows {
			committed[row.Partition] = row.Offset
		}
		r.Left = seen.left(committed)
		if r.Left > 0 && time.Now().Before(deadline) {
			time.Sleep(settle)
			continue
		}
		for _, p := range seen.partitions() {
			if at, last := committed[p], seen.last[p]; at <= last {
				r.findings = append(r.findings, fmt.Sprintf("group %q has committed %s-%d up to offset %d, there are records up to %d", group, t.topic, p, at, last))
			}
		}
		return nil
	}
}
