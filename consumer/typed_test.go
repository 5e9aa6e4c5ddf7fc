package consumer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/consumer/internal/logpeer"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

func TestTypedConsumerDecodesAndNamesWhatItCannot(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		b := record.NewBuilder(nil)
		b.Append(1, []byte("a"), []byte{0, 0, 0, 0, 0, 0, 0, 5}, []record.Header{{Key: "h", Value: []byte("v")}})
		b.Append(2, []byte("b"), []byte("short"), nil)
		b.Append(3, nil, []byte{0, 0, 0, 0, 0, 0, 0, 7}, nil)
		k.AppendBytes("orders", 0, append([]byte(nil), b.Seal(record.NoProducer())...))
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest))
		typed, err := consumer.NewTyped(c, consumer.String, consumer.Int64)
		require.NoError(t, err)
		var sum int64
		var keys []string
		failed := 0
		for r, err := range typed.Records(within(t, time.Minute)) {
			var bad *consumer.DecodeError
			if errors.As(err, &bad) {
				require.EqualValues(t, 1, bad.Record.Offset)
				require.ErrorContains(t, err, "orders-0 offset 1: decoding the value: 5 bytes are not a long")
				failed++
				continue
			}
			require.NoError(t, err)
			sum += r.Value
			keys = append(keys, r.Key)
			if r.Raw.Offset == 0 {
				v, ok := r.Raw.Headers.Last("h")
				require.True(t, ok)
				require.Equal(t, "v", string(v))
			}
			if r.Raw.Offset == 2 {
				require.Nil(t, r.Raw.Key)
				break
			}
		}
		require.EqualValues(t, 12, sum)
		require.Equal(t, []string{"a", ""}, keys)
		require.Equal(t, 1, failed)
	})
}

func TestInterceptorsSeeAndChangeRecords(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 6, compress.None)
		var seen []int64
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest),
			consumer.Intercept(func(r *consumer.Record) { seen = append(seen, r.Offset) }, func(r *consumer.Record) { r.Key = []byte("k") }))
		require.Equal(t, "k", string(take(t, c, 2)[1].Key))
		rs, err := c.Poll(within(t, time.Minute), 2)
		require.NoError(t, err)
		require.Equal(t, "k", string(rs[1].Key))
		for b, err := range c.Batches(within(t, time.Minute)) {
			require.NoError(t, err)
			for r := range b.Records() {
				require.Equal(t, "k", string(r.Key))
			}
			break
		}
		require.Equal(t, []int64{0, 1, 2, 3, 4, 5}, seen)
	})
}

func TestTimestampOfARecordWithoutOneIsZero(t *testing.T) {
	for _, r := range []consumer.Record{{TimestampMs: -1, TimestampType: consumer.NoTimestamp}, {TimestampMs: -1}} {
		require.True(t, r.Timestamp().IsZero())
	}
	before := consumer.Record{TimestampMs: -2}
	require.Equal(t, int64(-2), before.Timestamp().UnixMilli())
}

func TestFormatsDecodeWhatJavaWrote(t *testing.T) {
	id := "0f8fad5b-d9cb-469f-a165-70867728950e"
	for _, c := range []struct {
		format consumer.Format
		data   []byte
		want   any
	}{
		{consumer.FormatBytes, []byte("x"), []byte("x")}, {"", []byte("x"), []byte("x")},
		{consumer.FormatString, []byte("é"), "é"}, {consumer.FormatString, []byte{'a', 0xff}, "a\ufffd"},
		{consumer.FormatInt16, []byte{0xff, 0xfe}, int16(-2)}, {consumer.FormatInt32, []byte{0, 0, 1, 0}, int32(256)},
		{consumer.FormatInt64, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, int64(-1)},
		{consumer.FormatFloat32, []byte{0x3f, 0x80, 0, 0}, float32(1)}, {consumer.FormatFloat64, []byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0}, 1.0},
		{consumer.FormatBool, []byte{1}, true},
	} {
		decode, err := c.format.Decoder()
		require.NoError(t, err)
		got, err := decode("t", consumer.Headers{}, c.data)
		require.NoError(t, err, c.format)
		require.Equal(t, c.want, got, c.format)
		null, err := decode("t", consumer.Headers{}, nil)
		require.NoError(t, err)
		require.Nil(t, null)
		if c.format != "" && c.format != consumer.FormatBytes && c.format != consumer.FormatString {
			_, err = decode("t", consumer.Headers{}, []byte("wrong size"))
			require.Error(t, err, c.format)
		}
	}
	u, err := consumer.UUID("t", consumer.Headers{}, []byte(id))
	require.NoError(t, err)
	require.Equal(t, byte(0x0f), u[0])
	require.Equal(t, byte(0x0e), u[15])
	for _, bad := range []string{"", id[:35], "0f8fad5b-d9cb-469f-a165-7086772895zz", "0f8fad5bd-9cb-469f-a165-70867728950e"} {
		_, err = consumer.UUID("t", consumer.Headers{}, []byte(bad))
		require.Error(t, err, bad)
	}
	_, err = consumer.Void("t", consumer.Headers{}, []byte{1})
	require.Error(t, err)
	_, err = consumer.Format("avro").Decoder()
	require.ErrorContains(t, err, "avro")
}

func TestAnyDecodesAsTheConfigurationSays(t *testing.T) {
	bubble(t, 1, func(t *testing.T, k *logpeer.Cluster) {
		k.Topic("orders", 1)
		k.Append(t, "orders", 0, 1, compress.None)
		c := consume(t, k, consumer.Assign("orders", 0), consumer.StartAt(consumer.Earliest), func(c *consumer.Config) { c.ValueFormat = consumer.FormatString })
		anyOf, err := consumer.Any(c)
		require.NoError(t, err)
		for r, err := range anyOf.Records(within(t, time.Minute)) {
			require.NoError(t, err)
			require.Equal(t, string(logpeer.Value("orders", 0, 0)), r.Value)
			require.Equal(t, []byte{0}, r.Key)
			break
		}
	})
}
