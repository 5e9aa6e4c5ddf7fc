package consumer

import (
	"context"

	"github.com/ottla-kafka/ottla/wire/record"
)

// Poll waits until there is something to hand out and returns up to n records (max.poll.records if n is zero or less) without waiting for more. The slice is the caller's. When ctx ends first the error is its cause and no record
// is lost. An error of one partition is returned alone, after the records that came before it; calling again goes on
// with the others.
func (c *Consumer) Poll(ctx context.Context, n int) ([]Record, error) {
	if n <= 0 {
		n = c.cfg.MaxPollRecords
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []Record
	for len(out) < n {
		g, failed, err := c.more(ctx, len(out) == 0)
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
		g.Keep()
		if out == nil {
			out = make([]Record, 0, min(n, g.Expect()))
		}
		shared := blank(g)
		if c.group != nil {
			shared.claim = c.hold(g)
		}
		var r record.Record
		for len(out) < n && g.It.Into(&r) {
			if r.Offset < g.From {
				continue
			}
			if c.group != nil && !g.Cell.Held() {
				g.Cell.Hold(r.Offset)
			}
			g.Took(r.Offset)
			if c.group != nil && g.Void() {
				g.Untook(r.Offset, r.Offset+1)
				g.Cell.UnholdAt(r.Offset)
				break
			}
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
