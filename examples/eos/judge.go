package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ottla-kafka/ottla/consumer"
)

// verdict is what came out, compared with what went in.
type verdict struct{ out, duplicates, lost, wrong, aborted int }

func (v verdict) err() error {
	if v.duplicates+v.lost+v.wrong > 0 {
		return fmt.Errorf("not exactly once: %d duplicates, %d lost, %d with another content", v.duplicates, v.lost, v.wrong)
	}
	return nil
}

// place names a batch in the log; transaction names whose it is. Since Apache Kafka 4.0 every transaction has an epoch of its
// own; before that, several in a row that one worker aborted count as one.
type (
	place struct {
		consumer.TopicPartition
		offset int64
	}
	transaction struct {
		producer int64
		epoch    int16
	}
)

// judge reads the output to its end, as read_committed has it, and counts the transactions that left records nobody sees.
func judge(ctx context.Context, k *cluster, lines []string) (v verdict, err error) {
	times := make([]int, len(lines))
	visible := map[place]bool{}
	err = drain(ctx, k, consumer.ReadCommitted, func(b consumer.Batch) {
		visible[at(b)] = true
		if b.Topic != k.topics[stages] {
			return
		}
		for r := range b.Records() {
			v.out++
			i, err := strconv.Atoi(string(r.Key))
			if err != nil || i < 0 || i >= len(lines) || string(r.Value) != string(expected(lines[i])) {
				v.wrong++
			} else if times[i]++; times[i] > 1 {
				v.duplicates++
			}
		}
	})
	for _, n := range times {
		if n == 0 {
			v.lost++
		}
	}
	gone := map[transaction]bool{}
	err = errors.Join(err, drain(ctx, k, consumer.ReadUncommitted, func(b consumer.Batch) {
		if !visible[at(b)] {
			gone[transaction{b.ProducerID, b.ProducerEpoch}] = true
		}
	}))
	v.aborted = len(gone)
	return v, err
}

func at(b consumer.Batch) place {
	return place{consumer.TopicPartition{Topic: b.Topic, Partition: b.Partition}, b.FirstOffset}
}

// expected is what the three stages make of a line.
func expected(line string) []byte {
	value := []byte(line)
	for stage := 1; stage <= stages; stage++ {
		value = work(stage, value)
	}
	return value
}

// drain reads all topics of the stages from the beginning to the end.
func drain(ctx context.Context, k *cluster, isolation consumer.Isolation, each func(consumer.Batch)) error {
	opts := []consumer.Option{consumer.StartAt(consumer.Earliest), consumer.WithIsolation(isolation), consumer.Fetching(1, 20*time.Millisecond)}
	for _, topic := range k.topics[1:] {
		opts = append(opts, consumer.Assign(topic, 0, 1, 2, 3))
	}
	c, err := consumer.New(k.cl, opts...)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // ends when the lag is zero, which markers of transactions at the end can make it without a record
		for reading.Err() == nil {
			lag, err := c.Lag(reading)
			left := int64(stages*partitions - len(lag)) // whose position is not known yet
			for _, n := range lag {
				left += n
			}
			if err == nil && left == 0 {
				stop()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	for b, err := range c.Batches(reading) {
		if err == nil {
			each(b)
		} else if reading.Err() == nil {
			return err
		}
	}
	return context.Cause(ctx)
}
