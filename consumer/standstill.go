package consumer

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// findHolder asks the leader whose transaction a partition waits for (DescribeProducers, Apache Kafka 2.8), once, without
// waiting; the event is told with the answer, or without one.
func (c *Consumer) findHolder(e Event) {
	req := message.NewDescribeProducersRequest()
	req.Topics = []message.DescribeProducersRequestTopicRequest{{Name: e.Topic, PartitionIndexes: []int32{e.Partition}}}
	c.cl.Issue(e.Broker, client.Metadata, &client.Call{Key: wire.KeyDescribeProducers, Append: req.AppendTo, Done: func(r client.Reply) {
		open, err := holder(r)
		if e.Open = &open; err != nil {
			e.Err = fmt.Errorf("its producer is not known: %w", err)
		} else {
			e.Reason += fmt.Sprintf("; it belongs to producer id %d epoch %d", open.ProducerID, open.ProducerEpoch)
			if !open.LastWrite.IsZero() {
				e.Reason += ", which wrote here last at " + open.LastWrite.UTC().Format(time.RFC3339)
			}
			e.Reason += "; if its application is gone, abort the transaction (admin, or kafka-transactions.sh abort)"
		}
		c.driver.Tell(e) // dropped when the consumer is closed
	}})
}

// holder finds the producer with the oldest open transaction in an answer.
func holder(r client.Reply) (open OpenTransaction, err error) {
	open.ProducerID, open.FirstOffset = -1, -1
	if r.Err != nil {
		return open, r.Err
	}
	var resp message.DescribeProducersResponse
	if err := resp.ReadFrom(wire.NewReader(r.Body), r.Version); err != nil {
		return open, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if code := errcode.Code(p.ErrorCode); code != errcode.None {
				return open, code
			}
			for _, s := range p.ActiveProducers {
				if at := s.CurrentTxnStartOffset; at >= 0 && (open.FirstOffset < 0 || at < open.FirstOffset) {
					open = OpenTransaction{ProducerID: s.ProducerId, ProducerEpoch: int16(s.ProducerEpoch), FirstOffset: at}
					if s.LastTimestamp >= 0 {
						open.LastWrite = time.UnixMilli(s.LastTimestamp)
					}
				}
			}
		}
	}
	if open.FirstOffset < 0 {
		return open, errors.New("the leader knows of no open transaction any more")
	}
	return open, nil
}
