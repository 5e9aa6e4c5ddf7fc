package consumer

import (
	"context"

	"github.com/ottla-kafka/ottla/wire/record"
)

// Poll waits until there is something to hand out and returns up to max records (max.poll.records if max is zero or
// less) without waiting for more. The slice is the caller's. When ctx ends first the error is its cause and no record
// is lost. An error of one partition is returned alone, after the records that came before it; calling again goes on
// with the others.
func (c *Consumer) Poll(ctx context.Context, max int) ([]Record, error) {
	if max <= 0 {
		max = c.cfg.MaxPollRecords
	}
	if !c.reader.Enter() {
		return nil, ErrBusy
	}
	defer c.reader.Leave()
	defer c.reader.Watch(ctx)()
	var out []Record
	for len(out) < max {
		g, failed, err := c.reader.Next(ctx, len(out) == 0)
		switch {
		case err != nil && len(out) == 0:
			return nil, err
		case failed != nil && len(out) == 0:
			return nil, c.partitionError(failed)
		case failed != nil:
			c.reader.Later(failed)
			return out, nil
		case err != nil, g == nil:
			return out, nil
		}
		if out == nil {
			out = make([]Record, 0, min(max, g.Expect()))
		}
		shared := blank(g)
		var r record.Record
		for len(out) < max && g.It.Into(&r) {
			if r.Offset < g.From {
				continue
			}
			g.Took(r.Offset)
			shared.Offset, shared.TimestampMs, shared.Key, shared.Value, shared.Headers = r.Offset, r.Timestamp, r.Key, r.Value, r.Headers
			if len(c.cfg.Interceptors) > 0 {
				out = append(out, c.intercept(shared))
			} else {
				out = append(out, shared)
			}
			if c.reader.Stopped(g) {
				break
			}
		}
	}
	return out, nil
}
