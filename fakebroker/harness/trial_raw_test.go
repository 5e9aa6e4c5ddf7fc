package harness_test

import (
	"context"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/history"
)

// rawReader is a read_committed consumer made of single Fetch requests and the filter of the trial's style: what programs
// have that do without a client.
func (tr *trial) rawReader() func(*life) error {
	return func(l *life) error {
		r := tr.random(l.id)
		cl, done, err := l.client()
		if err != nil {
			return err
		}
		defer done()
		p := tr.log.Process(l.id)
		var parts []history.TopicPartition
		for _, topic := range []string{"in", "out", "ledger"} {
			parts = append(parts, history.TopicPartition{Topic: topic, Partition: 0}, history.TopicPartition{Topic: topic, Partition: 1})
		}
		positions := make([]int64, len(parts))
		for l.ctx.Err() == nil {
			for i, tp := range parts {
				at := positions[i]
				ctx, cancel := context.WithTimeout(l.ctx, 5*time.Second)
				f, err := fetchRaw(ctx, cl, tp.Topic, tp.Partition, at, int32(200+r.IntN(1000)), true)
				cancel()
				if err != nil {
					continue // again, later
				}
				list, next, err := tr.style.filter.visible(f, at)
				if err != nil {
					tr.find("raw reader: %s@%d: %v", tp, at, err)
					return nil
				}
				var reads []history.Read
				for _, rec := range list {
					reads = append(reads, history.Read{TopicPartition: tp, Offset: rec.Offset, Value: string(rec.Value)})
				}
				p.Poll(history.ReadCommitted, reads...)
				positions[i] = next
			}
			l.sleep(time.Duration(100+r.IntN(400)) * time.Millisecond)
		}
		return context.Cause(l.ctx)
	}
}
