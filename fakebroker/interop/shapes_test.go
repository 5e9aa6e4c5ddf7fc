package interop

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// shapes are records at the limits of what a record may be, without a topic.
func shapes() map[string]producer.Record {
	all := map[string]producer.Record{
		"null key, null value":   {},
		"null key, empty value":  {Value: []byte{}},
		"empty key, null value":  {Key: []byte{}},
		"empty key, empty value": {Key: []byte{}, Value: []byte{}},
		"tombstone":              {Key: []byte("deleted")},
		"only a value":           {Value: []byte("value")},
		"bytes that are no text": {Key: []byte{0, 255, 254}, Value: []byte{0xc3, 0x28, 0}},
		"year 1969":              {Value: []byte("x"), Timestamp: time.UnixMilli(-1000)},
		"year 1900":              {Value: []byte("x"), Timestamp: time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)},
		"year 1":                 {Value: []byte("x"), Timestamp: time.Date(1, 1, 2, 3, 4, 5, 6e6, time.UTC)},
		"year 1970":              {Value: []byte("x"), Timestamp: time.UnixMilli(0)},
		"no headers, empty list": {Value: []byte("x"), Headers: []record.Header{}},
	}
	for _, size := range []int{16, 100, 1 << 10, 16<<10 - 1, 100 << 10, 1 << 20} {
		all[fmt.Sprint(size, " bytes")] = producer.Record{Key: []byte("k"), Value: bytes.Repeat([]byte{byte(size), 'x', 'y'}, size)[:size]}
	}
	all["a key of 1 MiB"] = producer.Record{Key: make([]byte, 1<<20)}
	var headers []record.Header
	for i := range 100 {
		h := record.Header{Key: fmt.Sprint("header-", i%40), Value: []byte(strings.Repeat("v", i))}
		switch {
		case i%9 == 0:
			h.Value = nil
		case i%9 == 1:
			h.Value = []byte{}
		case i%9 == 2:
			h.Key = ""
		}
		headers = append(headers, h)
	}
	all["100 headers"] = producer.Record{Value: []byte("x"), Headers: headers}
	return all
}

// TestRecordsOfEveryShapeComeBackTheSame sends the shapes with each codec, alone and side by side with others.
func TestRecordsOfEveryShapeComeBackTheSame(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, addr string) {
		cl := newClient(t, addr)
		for _, codec := range codecs {
			t.Run(codec.String(), func(t *testing.T) {
				topic := "shapes-" + codec.String()
				createTopic(t, cl, admin.NewTopic{Name: topic, Partitions: 1, Replicas: 1, Configs: map[string]string{"max.message.bytes": "8000000"}})
				p, err := producer.New(cl, producer.Compression(codec), producer.MaxRequestSize(4<<20), producer.Linger(0))
				require.NoError(t, err)
				defer p.Close(context.Background())
				at := map[int64]string{} // offset -> shape
				acks := map[string]chan producer.Ack{}
				for name, r := range shapes() {
					r.Topic = topic
					ack, err := p.Send(t.Context(), r) // alone
					require.NoError(t, err, name)
					at[ack.Offset] = name
					done := make(chan producer.Ack, 1)
					acks[name] = done
					require.NoError(t, p.Submit(t.Context(), r, func(a producer.Ack, err error) { // with those that follow
						assert.NoError(t, err, name)
						done <- a
					}))
				}
				require.NoError(t, p.Flush(t.Context()))
				for name, done := range acks {
					at[(<-done).Offset] = name
				}
				all := shapes()
				require.Len(t, at, 2*len(all))
				for _, r := range readAll(t, cl, topic, 1) {
					requireSameRecord(t, at[r.Offset], all[at[r.Offset]], r)
				}
			})
		}
	})
}

func requireSameRecord(t testing.TB, name string, want producer.Record, got consumer.Record) {
	t.Helper()
	require.Equal(t, want.Key == nil, got.Key == nil, "%s: null key", name)
	require.Equal(t, want.Value == nil, got.Value == nil, "%s: null value", name)
	require.True(t, bytes.Equal(want.Key, got.Key), "%s: key", name)
	require.True(t, bytes.Equal(want.Value, got.Value), "%s: value", name)
	if want.Timestamp.IsZero() {
		require.WithinDuration(t, time.Now(), got.Timestamp(), time.Hour, name)
	} else {
		require.Equal(t, want.Timestamp.UnixMilli(), got.TimestampMs, name)
	}
	require.Equal(t, len(want.Headers), got.Headers.Len(), name)
	for i, h := range got.Headers.AppendTo(nil) {
		require.Equal(t, want.Headers[i].Key, h.Key, name)
		require.Equal(t, want.Headers[i].Value, h.Value, "%s: header %d", name, i) // null and empty differ
	}
}

// readAll reads what the topic's partitions hold now.
func readAll(t testing.TB, cl *client.Client, topic string, partitions int32) (all []consumer.Record) {
	t.Helper()
	var list []int32
	var parts []consumer.TopicPartition
	for i := range partitions {
		list = append(list, i)
		parts = append(parts, consumer.TopicPartition{Topic: topic, Partition: i})
	}
	c, err := consumer.New(cl, consumer.Assign(topic, list...), consumer.StartAt(consumer.Earliest))
	require.NoError(t, err)
	defer c.Close(t.Context())
	ends, err := c.EndOffsets(t.Context(), parts...)
	require.NoError(t, err)
	total := 0
	for _, end := range ends {
		total += int(end)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(all) < total {
		records, err := c.Poll(ctx, math.MaxInt32)
		require.NoError(t, err, "%d of %d records are read", len(all), total)
		all = append(all, records...)
	}
	return all
}

// TestTopicNamesAtTheirLimits writes to and reads from topics with the longest, shortest and strangest names.
func TestTopicNamesAtTheirLimits(t *testing.T) {
	t.Parallel()
	onBothBrokers(t, func(t *testing.T, addr string) {
		cl := newClient(t, addr)
		for _, name := range []string{strings.Repeat("n", 249), "a", "_", "-", "...", "A.b-c0123456789-Z", "__own"} {
			createTopic(t, cl, admin.NewTopic{Name: name, Partitions: 2, Replicas: 1})
			p, err := producer.New(cl)
			require.NoError(t, err)
			_, err = p.Send(t.Context(), producer.Record{Topic: name, Value: []byte(name)}.To(1))
			require.NoError(t, err, name)
			require.NoError(t, p.Close(t.Context()))
			records := readAll(t, cl, name, 2)
			require.Len(t, records, 1)
			require.Equal(t, name, string(records[0].Value))
		}
		for _, name := range []string{strings.Repeat("n", 250), "", ".", "..", "ä", "a b"} {
			_, err := admin.New(cl).CreateTopics(t.Context(), admin.NewTopic{Name: name, Partitions: 1, Replicas: 1})
			require.Error(t, err, "%.10q", name)
		}
	})
}

// TestAThousandPartitions sends to each partition of a topic and finds one record in each.
//
// It runs alone: Apache Kafka is busy with so many for seconds, and slow for everybody else.
func TestAThousandPartitions(t *testing.T) {
	onBothBrokers(t, func(t *testing.T, addr string) {
		cl := newClient(t, addr)
		createTopic(t, cl, admin.NewTopic{Name: "thousand", Partitions: 1000, Replicas: 1})
		p, err := producer.New(cl, producer.Compression(compress.Lz4))
		require.NoError(t, err)
		for i := range int32(1000) {
			r := producer.Record{Topic: "thousand", Value: fmt.Append(nil, i)}
			require.NoError(t, p.Submit(t.Context(), r.To(i), func(_ producer.Ack, err error) {
				if err != nil {
					t.Error(err)
				}
			}))
		}
		require.NoError(t, p.Close(t.Context()))
		seen := map[int32]bool{}
		for _, r := range readAll(t, cl, "thousand", 1000) {
			require.Equal(t, fmt.Sprint(r.Partition), string(r.Value))
			seen[r.Partition] = true
		}
		require.Len(t, seen, 1000)
	})
}
