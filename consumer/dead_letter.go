package consumer

import (
	"context"
	"strconv"

	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/record"
)

// The headers of a dead letter, behind the record's own. They have the names that Apache Kafka's brokers use for dead
// letters of share groups (KIP-1191); values are text.
const (
	HeaderDeadTopic     = "__dlq.errors.topic"
	HeaderDeadPartition = "__dlq.errors.partition"
	HeaderDeadOffset    = "__dlq.errors.offset"
	HeaderDeadGroup     = "__dlq.errors.group"
	HeaderDeadCount     = "__dlq.errors.delivery.count"
	HeaderDeadMessage   = "__dlq.errors.message"
)

// maxDeadMessage bounds the error's text in a dead letter.
const maxDeadMessage = 1000

// deadLetter writes a record to the dead-letter topic and waits until it is there: key, value, headers and timestamp as
// they were.
func (e *engine) deadLetter(ctx context.Context, r *Record, attempts int, cause error) error {
	text := cause.Error()
	if len(text) > maxDeadMessage {
		text = text[:maxDeadMessage]
	}
	headers := r.Headers.AppendTo(nil)
	for _, h := range [...][2]string{
		{HeaderDeadTopic, r.Topic}, {HeaderDeadPartition, strconv.Itoa(int(r.Partition))}, {HeaderDeadOffset, strconv.FormatInt(r.Offset, 10)},
		{HeaderDeadGroup, e.g.cfg.ID}, {HeaderDeadCount, strconv.Itoa(attempts)}, {HeaderDeadMessage, text},
	} {
		headers = append(headers, record.Header{Key: h[0], Value: []byte(h[1])})
	}
	_, err := e.run.Producer.Send(ctx, producer.Record{Topic: e.run.DeadLetter, Key: r.Key, Value: r.Value, Headers: headers, Timestamp: r.Timestamp()})
	return err
}
