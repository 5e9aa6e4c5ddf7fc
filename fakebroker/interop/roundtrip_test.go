package interop

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/compress"
)

var codecs = []compress.Codec{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd}

// onBothBrokers runs a test against ottla, with its data on the disk, and against Apache Kafka.
func onBothBrokers(t *testing.T, test func(t *testing.T, addr string)) {
	ottla := startOttla(t, "--data", t.TempDir())
	t.Run("ottla", func(t *testing.T) { test(t, ottla.addr) })
	t.Run("kafka", func(t *testing.T) { test(t, kafkaAddr) })
}

func newClient(t testing.TB, addr string, opts ...client.Option) *client.Client {
	t.Helper()
	cl, err := client.New(append([]client.Option{client.Seeds(addr)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { cl.Close(context.Background()) })
	return cl
}

// createTopic makes a topic that is gone after the test.
func createTopic(t testing.TB, cl *client.Client, topic admin.NewTopic) {
	t.Helper()
	a := admin.New(cl)
	_, err := a.CreateTopics(t.Context(), topic)
	require.NoError(t, err)
	require.NoError(t, a.AwaitTopic(t.Context(), topic.Name))
	awaitLeaders(t, a, topic.Name, topic.Partitions)
	t.Cleanup(func() {
		// A broker of the test's own may be gone already; then there is nothing to tidy up.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		a.DeleteTopics(ctx, topic.Name)
	})
}

// awaitLeaders waits until the partitions of a topic are led: metadata names leaders before they lead, and some clients try only
// for a moment.
func awaitLeaders(t testing.TB, a *admin.Admin, topic string, partitions int) {
	t.Helper()
	all := make([]admin.TopicPartition, partitions)
	for i := range all {
		all[i] = admin.TopicPartition{Topic: topic, Partition: int32(i)}
	}
	eventually(t, "the partitions of "+topic+" are led", func() bool {
		offsets, err := a.ListOffsets(context.Background(), admin.Latest, all...)
		return err == nil && !slices.ContainsFunc(offsets, func(o admin.Offset) bool { return o.Err != nil })
	})
}

// textLines are as many lines as fill some batches of 1 MiB; a few of them are long.
func textLines(total int) (lines []string) {
	values := payloads(400)
	for i := 0; total > 0; i++ {
		line := fmt.Sprintf("%d %s", i, values[i%len(values)])
		if i%701 == 700 {
			line += strings.Repeat(" and so on", 9000+i)
		}
		total -= len(line)
		lines = append(lines, line)
	}
	return lines
}

// TestOurBatchesAreReadByEveryClient writes batches of 1 MiB with each codec, whose frames hold blocks of up to 4 MiB (lz4)
// or 1 MiB (snappy), and lets Java, librdkafka, kafka-python, franz-go and sarama read them.
func TestOurBatchesAreReadByEveryClient(t *testing.T) {
	t.Parallel()
	lines := textLines(3 << 20)
	want := strings.Join(lines, "\n") + "\n"
	onBothBrokers(t, func(t *testing.T, addr string) {
		cl := newClient(t, addr)
		for _, codec := range codecs {
			t.Run(codec.String(), func(t *testing.T) {
				topic := "from-us-" + codec.String()
				createTopic(t, cl, admin.NewTopic{Name: topic, Partitions: 1, Replicas: 1})
				produceLines(t, cl, topic, codec, lines)
				requireLargeBatches(t, cl, topic, codec, len(lines))
				for name, read := range lineReaders {
					got := read(t, addr, topic, len(lines))
					require.True(t, got == want, "%s reads %d bytes that differ from the %d written: %.200q", name, len(got), len(want), got)
				}
			})
		}
	})
}

func produceLines(t testing.TB, cl *client.Client, topic string, codec compress.Codec, lines []string) {
	t.Helper()
	p, err := producer.New(cl, producer.Compression(codec), producer.BatchSize(1<<20), producer.Linger(time.Second))
	require.NoError(t, err)
	failed := make(chan error, len(lines))
	for _, line := range lines {
		require.NoError(t, p.Submit(t.Context(), producer.Record{Topic: topic, Value: []byte(line)}, func(_ producer.Ack, err error) { failed <- err }))
	}
	require.NoError(t, p.Close(t.Context()))
	for range lines {
		require.NoError(t, <-failed)
	}
}

// requireLargeBatches makes sure that the test is about what it says.
func requireLargeBatches(t testing.TB, cl *client.Client, topic string, codec compress.Codec, count int) {
	t.Helper()
	c, err := consumer.New(cl, consumer.Assign(topic, 0), consumer.StartAt(consumer.Earliest))
	require.NoError(t, err)
	defer c.Close(t.Context())
	read, largest := 0, 0
	for b, err := range c.Batches(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, codec, b.Codec)
		size := 0
		for r := range b.Records() {
			size += len(r.Value)
		}
		largest = max(largest, size)
		if read += b.Count; read == count {
			break
		}
	}
	require.Greater(t, largest, 900<<10, "bytes in the largest batch")
}

// lineReaders read so many records of partition 0 and return their values, a line each.
var lineReaders = map[string]func(t testing.TB, addr, topic string, count int) string{
	"java": func(t testing.TB, addr, topic string, count int) string {
		return java(t, "", consoleReader, "--bootstrap-server", addr, "--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", fmt.Sprint(count))
	},
	"librdkafka": func(t testing.TB, addr, topic string, count int) string {
		r := run(t, exec.Command("kcat", "-m", "60", "-b", addr, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", fmt.Sprint(count), "-q", "-X", "check.crcs=true"), "")
		require.Zero(t, r.code, r.stderr)
		return r.stdout
	},
	"kafka-python": func(t testing.TB, addr, topic string, count int) string {
		r := run(t, exec.Command(os.Getenv("OTTLA_PYTHON"), "peers/kafkapython_read.py", addr, topic, fmt.Sprint(count)), "")
		require.Zero(t, r.code, r.stderr)
		return r.stdout
	},
	"franz-go": franzLines,
	"sarama":   saramaLines,
}

func franzLines(t testing.TB, addr, topic string, count int) string {
	start := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(start))
	require.NoError(t, err)
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	for read := 0; read < count; {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			out.Write(append(r.Value, '\n'))
			read++
		})
	}
	return out.String()
}

func saramaLines(t testing.TB, addr, topic string, count int) string {
	c, err := sarama.NewConsumer([]string{addr}, nil)
	require.NoError(t, err)
	defer c.Close()
	p, err := c.ConsumePartition(topic, 0, sarama.OffsetOldest)
	require.NoError(t, err)
	defer p.Close()
	var out bytes.Buffer
	for range count {
		select {
		case m := <-p.Messages():
			out.Write(append(m.Value, '\n'))
		case <-time.After(patience):
			require.Fail(t, "sarama waits and waits")
		}
	}
	return out.String()
}

// TestOurConsumerReadsWhatEveryClientWrote is the other direction: each writer and codec into one topic, in order.
func TestOurConsumerReadsWhatEveryClientWrote(t *testing.T) {
	t.Parallel()
	lines := textLines(1 << 20)
	text := strings.Join(lines, "\n") + "\n"
	onBothBrokers(t, func(t *testing.T, addr string) {
		cl := newClient(t, addr)
		for name, write := range lineWriters {
			t.Run(name, func(t *testing.T) {
				topic := "to-us-" + name
				createTopic(t, cl, admin.NewTopic{Name: topic, Partitions: 1, Replicas: 1})
				for _, codec := range codecs {
					write(t, addr, topic, codec, text)
				}
				var got, want bytes.Buffer
				seen := map[compress.Codec]int{}
				c, err := consumer.New(cl, consumer.Assign(topic, 0), consumer.StartAt(consumer.Earliest), consumer.CheckCRC(true))
				require.NoError(t, err)
				defer c.Close(t.Context())
				for b, err := range c.Batches(t.Context()) {
					require.NoError(t, err)
					for r := range b.Records() {
						require.EqualValues(t, seenRecords(seen), r.Offset)
						got.Write(append(bytes.Clone(r.Value), '\n'))
						seen[b.Codec]++
					}
					require.NoError(t, b.Err())
					if seenRecords(seen) == len(codecs)*len(lines) {
						break
					}
				}
				for _, codec := range codecs {
					require.Equal(t, len(lines), seen[codec], "records in %s of %v", codec, seen)
					want.WriteString(text)
				}
				require.True(t, bytes.Equal(want.Bytes(), got.Bytes()))
			})
		}
	})
}

func seenRecords(seen map[compress.Codec]int) (n int) {
	for _, count := range seen {
		n += count
	}
	return n
}

// lineWriters write each line of a text as a record, in order, in large batches of a codec.
var lineWriters = map[string]func(t testing.TB, addr, topic string, codec compress.Codec, text string){
	"java": func(t testing.TB, addr, topic string, codec compress.Codec, text string) {
		java(t, text, consoleWriter, "--bootstrap-server", addr, "--topic", topic, "--compression-codec", codec.String(),
			"--batch-size", "500000", "--timeout", "200", "--request-timeout-ms", "60000") // it gives up after 1.5 s else
	},
	"librdkafka": func(t testing.TB, addr, topic string, codec compress.Codec, text string) {
		r := run(t, exec.Command("kcat", "-m", "60", "-b", addr, "-P", "-t", topic, "-p", "0", "-z", codec.String(), "-X", "linger.ms=200", "-X", "batch.size=1000000",
			"-X", "enable.idempotence=true"), text)
		require.Zero(t, r.code, r.stderr)
	},
	"sarama": func(t testing.TB, addr, topic string, codec compress.Codec, text string) {
		cfg := sarama.NewConfig()
		cfg.Version = sarama.V3_6_0_0
		cfg.Producer.Return.Successes = true
		cfg.Producer.Compression = sarama.CompressionCodec(codec)
		p, err := sarama.NewSyncProducer([]string{addr}, cfg)
		require.NoError(t, err)
		var all []*sarama.ProducerMessage
		for line := range strings.Lines(text) {
			all = append(all, &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(strings.TrimSuffix(line, "\n"))})
		}
		require.NoError(t, p.SendMessages(all))
		require.NoError(t, p.Close())
	},
	"franz-go": func(t testing.TB, addr, topic string, codec compress.Codec, text string) {
		kinds := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
		cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kinds[codec]), kgo.ProducerLinger(100*time.Millisecond))
		require.NoError(t, err)
		defer cl.Close()
		var all []*kgo.Record
		for line := range strings.Lines(text) {
			all = append(all, &kgo.Record{Value: []byte(strings.TrimSuffix(line, "\n"))})
		}
		require.NoError(t, cl.ProduceSync(t.Context(), all...).FirstErr())
	},
}
