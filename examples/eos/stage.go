package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// workerEnv makes this program a worker: it has the job in JSON.
const workerEnv = "EOS_WORKER"

// job says what a worker does.
type job struct {
	Brokers []string
	Stage   int
	Name    string // also after a restart, so that the new one takes over from the old one at once
	Group   string
	In, Out string
	Unsafe  bool
}

// worker works until the parent closes its end of the pipe, or is gone.
func worker(spec string) int {
	var j job
	err := json.Unmarshal([]byte(spec), &j)
	ctx, stop := context.WithCancel(context.Background())
	go func() { io.Copy(io.Discard, os.Stdin); stop() }() // ends with the process
	if err == nil {
		err = j.run(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (j job) run(ctx context.Context) error {
	cl, err := client.New(client.Seeds(j.Brokers...), client.ClientID(j.Name))
	if err != nil {
		return err
	}
	c, err := consumer.New(cl, consumer.Group(j.Group), consumer.Subscribe(j.In), consumer.OnReset(consumer.Earliest), consumer.SessionTimeout(10*time.Second, 200*time.Millisecond),
		consumer.WithIsolation(consumer.ReadCommitted), consumer.InstanceID(j.Name), consumer.GroupProtocol("classic"))
	if err != nil {
		return err
	}
	if j.Unsafe {
		err = j.atLeastOnce(ctx, cl, c)
	} else {
		err = j.exactlyOnce(ctx, cl, c)
	}
	bounded, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return errors.Join(err, c.Close(bounded), cl.Close(bounded))
}

// closing is how long a worker may take to leave in good order.
const closing = time.Minute

// exactlyOnce is a stage: what it writes and how far it has read are committed together, or not at all.
func (j job) exactlyOnce(ctx context.Context, cl *client.Client, c *consumer.Consumer) error {
	s, err := txn.New(ctx, cl, j.Name)
	if err != nil {
		return err
	}
	defer s.Close(context.WithoutCancel(ctx))
	return s.Pipe(ctx, c, func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
		return tx.Submit(ctx, producer.Record{Topic: j.Out, Key: r.Key, Value: work(j.Stage, r.Value)}, nil)
	})
}

// atLeastOnce is the same without transactions: it writes, then commits. Whoever is killed in between writes again.
func (j job) atLeastOnce(ctx context.Context, cl *client.Client, c *consumer.Consumer) error {
	p, err := producer.New(cl)
	if err != nil {
		return err
	}
	defer p.Close(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		for wait.Err() == nil && err == nil {
			rs, _ := c.Poll(wait, 0)
			for _, r := range rs {
				err = errors.Join(err, p.Submit(ctx, producer.Record{Topic: j.Out, Key: r.Key, Value: work(j.Stage, r.Value)}, nil))
			}
		}
		cancel()
		if err = errors.Join(err, p.Flush(context.WithoutCancel(ctx))); err == nil {
			c.Commit(context.WithoutCancel(ctx)) // what fails is processed again: that is what at least once means
		} else {
			return err
		}
	}
	return nil
}

// work is what a stage does to a line: the first trims it, the second counts its words, the third adds a checksum.
func work(stage int, line []byte) []byte {
	switch stage {
	case 1:
		return bytes.TrimSpace(line)
	case 2:
		return fmt.Appendf(nil, "%d words: %s", len(bytes.Fields(line)), line)
	}
	return fmt.Appendf(nil, "%s #%08x", line, crc32.ChecksumIEEE(line))
}
