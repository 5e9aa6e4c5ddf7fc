package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
)

// patience is how long nothing may come out before the rest is taken for lost.
const patience = time.Minute

// feed sends the lines, keyed by their number, as evenly as it can. The second half waits until enough has been broken: on a
// slow machine, too, the lines go through what this program is about.
func (p *pipeline) feed(ctx context.Context, over time.Duration) error {
	pr, err := producer.New(p.k.cl)
	if err != nil {
		return err
	}
	defer pr.Close(context.WithoutCancel(ctx))
	begin := time.Now()
	_, err = pr.SendAll(ctx, func(yield func(producer.Record) bool) {
		for i, line := range p.lines {
			if i%100 == 0 {
				time.Sleep(time.Until(begin.Add(over * time.Duration(i) / time.Duration(len(p.lines)))))
			}
			if i > 0 && i == len(p.lines)/2 {
				select {
				case <-p.battered:
				case <-ctx.Done():
				}
			}
			if ctx.Err() != nil || !yield(producer.Record{Topic: p.k.topics[0], Key: strconv.AppendInt(nil, int64(i), 10), Value: []byte(line)}) {
				return
			}
		}
	})
	return errors.Join(err, context.Cause(ctx))
}

// watch reads what comes out and returns when every line has, or when nothing more comes.
func (p *pipeline) watch(ctx context.Context) error {
	c, err := consumer.New(p.k.cl, consumer.Assign(p.k.topics[stages], 0, 1, 2, 3), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted))
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	seen := map[string]bool{}
	for len(seen) < len(p.lines) {
		wait, cancel := context.WithTimeout(ctx, patience)
		rs, err := c.Poll(wait, 0)
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded):
			p.say("nothing has come out for %s", patience)
			return nil
		case err != nil:
			p.say("%v", err)
		}
		for _, r := range rs {
			seen[string(r.Key)] = true
		}
		p.seen.Store(int64(len(seen)))
	}
	return nil
}
