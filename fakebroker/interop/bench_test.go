package interop

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
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

// The benchmarks measure clients side by side on the same Apache Kafka, and brokers side by side under the same client:
//
//	for round in 1 2 3; do go test -run '^$' -bench Produce -benchtime 500000x; done
//
// One iteration is one record. Within one run the clients follow each other (with -count each would come N times in a
// row), so ratios of one run mean something and figures of different runs do not. The primary figure is CPU: seconds of
// user and system time of the process under test for a million records (cpu-s/Mrec).

// payloads are JSON-like lines that compress two to three times.
func payloads(size int) [][]byte {
	random := rand.New(rand.NewPCG(1, uint64(size)))
	all := make([][]byte, 1024)
	for i := range all {
		var b bytes.Buffer
		for b.Len() < size {
			fmt.Fprintf(&b, `{"id":%d,"user":"user-%d","amount":%d.%02d,"status":"confirmed"}`, random.Uint32(), random.IntN(5000), random.IntN(1000), random.IntN(100))
		}
		all[i] = b.Bytes()[:size]
	}
	return all
}

// produceSetup is what all producers are told alike: acks=all, idempotent, linger 5 ms, batches below 1 MB.
type produceSetup struct {
	addr, topic string
	codec       compress.Codec
}

// benchProducer is one client under test. done counts acknowledged records.
type benchProducer interface {
	produce(value []byte)
	close() error
}

var producers = map[string]func(testing.TB, produceSetup, *atomic.Int64) benchProducer{
	"ottla":  newOttlaProducer,
	"franz":  newFranzProducer,
	"sarama": newSaramaProducer,
}

type ottlaProducer struct {
	p    *producer.Producer
	cl   *client.Client
	s    produceSetup
	done func(producer.Ack, error)
	fail atomic.Value
}

func newOttlaProducer(t testing.TB, s produceSetup, done *atomic.Int64) benchProducer {
	cl, err := client.New(client.Seeds(s.addr))
	require.NoError(t, err)
	p, err := producer.New(cl, producer.Compression(s.codec), producer.BatchSize(500_000), producer.BufferMemory(10<<20)) // the driver's, see harness
	require.NoError(t, err)
	o := &ottlaProducer{p: p, cl: cl, s: s}
	o.done = func(_ producer.Ack, err error) {
		if err != nil {
			o.fail.Store(err)
		}
		done.Add(1)
	}
	return o
}

func (o *ottlaProducer) produce(value []byte) {
	if err := o.p.Submit(context.Background(), producer.Record{Topic: o.s.topic, Value: value}, o.done); err != nil {
		o.fail.Store(err)
	}
}

func (o *ottlaProducer) close() error {
	err := o.p.Close(context.Background())
	o.cl.Close(context.Background())
	if failed, ok := o.fail.Load().(error); ok {
		return failed
	}
	return err
}

type franzProducer struct {
	cl   *kgo.Client
	done func(*kgo.Record, error)
	fail atomic.Value
}

func newFranzProducer(t testing.TB, s produceSetup, done *atomic.Int64) benchProducer {
	codec := map[compress.Codec]kgo.CompressionCodec{compress.None: kgo.NoCompression(), compress.Lz4: kgo.Lz4Compression(), compress.Zstd: kgo.ZstdCompression()}[s.codec]
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.DefaultProduceTopic(s.topic), kgo.ProducerBatchCompression(codec),
		kgo.ProducerLinger(5*time.Millisecond), kgo.ProducerBatchMaxBytes(1<<20), kgo.MaxBufferedRecords(100000))
	require.NoError(t, err)
	f := &franzProducer{cl: cl}
	f.done = func(_ *kgo.Record, err error) {
		if err != nil {
			f.fail.Store(err)
		}
		done.Add(1)
	}
	return f
}

func (f *franzProducer) produce(value []byte) {
	f.cl.Produce(context.Background(), &kgo.Record{Value: value}, f.done)
}

func (f *franzProducer) close() error {
	err := f.cl.Flush(context.Background())
	f.cl.Close()
	if failed, ok := f.fail.Load().(error); ok {
		return failed
	}
	return err
}

type saramaProducer struct {
	p     sarama.AsyncProducer
	topic string
	sent  int64
	done  *atomic.Int64
	ended chan error
}

func newSaramaProducer(t testing.TB, s produceSetup, done *atomic.Int64) benchProducer {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.V3_6_0_0
	cfg.Producer.RequiredAcks = sarama.WaitForAll
	cfg.Producer.Idempotent, cfg.Net.MaxOpenRequests = true, 1
	cfg.Producer.Return.Successes = true
	cfg.Producer.Flush.Frequency = 5 * time.Millisecond
	cfg.Producer.Flush.Bytes = 1 << 20
	cfg.Producer.Compression = map[compress.Codec]sarama.CompressionCodec{compress.None: sarama.CompressionNone, compress.Lz4: sarama.CompressionLZ4, compress.Zstd: sarama.CompressionZSTD}[s.codec]
	p, err := sarama.NewAsyncProducer([]string{s.addr}, cfg)
	require.NoError(t, err)
	o := &saramaProducer{p: p, topic: s.topic, done: done, ended: make(chan error, 1)}
	go func() { // ends when the producer is closed
		var failed error
		successes, errs := p.Successes(), p.Errors()
		for successes != nil || errs != nil {
			select {
			case _, ok := <-successes:
				if !ok {
					successes = nil
					continue
				}
				done.Add(1)
			case e, ok := <-errs:
				if !ok {
					errs = nil
					continue
				}
				failed = e
				done.Add(1)
			}
		}
		o.ended <- failed
	}()
	return o
}

func (s *saramaProducer) produce(value []byte) {
	s.sent++
	s.p.Input() <- &sarama.ProducerMessage{Topic: s.topic, Value: sarama.ByteEncoder(value)}
}

func (s *saramaProducer) close() error {
	for s.done.Load() < s.sent { // once it closes, it gives up what it has to send again
		time.Sleep(100 * time.Microsecond)
	}
	s.p.AsyncClose()
	return <-s.ended
}

// clientOrder is the order within a round.
var clientOrder = []string{"franz", "ottla", "sarama"}

func BenchmarkProduce(b *testing.B) {
	for _, s := range []struct {
		name       string
		size       int
		partitions int
		codec      compress.Codec
	}{
		{"100B", 100, 6, compress.None}, {"1KiB", 1024, 6, compress.None}, {"1KiB-lz4", 1024, 6, compress.Lz4},
		{"1KiB-zstd", 1024, 6, compress.Zstd}, {"100B-1000partitions", 100, 1000, compress.None},
	} {
		values := payloads(s.size)
		for _, name := range clientOrder {
			b.Run(s.name+"/"+name, func(b *testing.B) {
				topic := benchTopic(b, kafkaAddr, s.partitions)
				var done atomic.Int64
				p := producers[name](b, produceSetup{kafkaAddr, topic, s.codec}, &done)
				p.produce(values[0]) // connections and metadata are there before the clock starts
				for done.Load() == 0 {
					time.Sleep(time.Millisecond)
				}
				measure(b, os.Getpid(), func() {
					for i := range b.N {
						for int64(i)-done.Load() > 100000 {
							time.Sleep(50 * time.Microsecond)
						}
						p.produce(values[i%len(values)])
					}
					require.NoError(b, p.close())
				})
				require.EqualValues(b, b.N+1, done.Load())
			})
		}
	}
}

func BenchmarkConsume(b *testing.B) {
	for _, size := range []int{100, 1024} {
		topic := ""
		filled := 0
		for _, name := range clientOrder[:2] {
			b.Run(fmt.Sprintf("%dB/%s", size, name), func(b *testing.B) {
				if filled < b.N {
					topic, filled = filledTopic(b, kafkaAddr, size, b.N), b.N
				}
				measure(b, os.Getpid(), func() { consumeAll(b, name, kafkaAddr, topic, b.N) })
			})
		}
	}
}

// consumeAll reads n records of the topic's six partitions from the start.
func consumeAll(t testing.TB, name, addr, topic string, n int) {
	ctx, bytes, seen := context.Background(), 0, 0
	if name == "ottla" {
		c, err := consumer.Dial([]string{addr}, consumer.Assign(topic, 0, 1, 2, 3, 4, 5), consumer.StartAt(consumer.Earliest))
		require.NoError(t, err)
		defer c.Close(ctx)
		for r, err := range c.Records(ctx) {
			if err != nil { // require costs more than the record
				t.Fatal(err)
			}
			bytes += len(r.Value)
			if seen++; seen == n {
				return
			}
		}
	}
	starts := map[int32]kgo.Offset{}
	for p := range int32(6) {
		starts[p] = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}))
	require.NoError(t, err)
	defer cl.Close()
	for seen < n {
		fetches := cl.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		for it := fetches.RecordIter(); !it.Done(); seen++ {
			bytes += len(it.Next().Value)
		}
	}
}

// BenchmarkBroker measures brokers by the CPU of their process, under franz-go: ours in memory beside kfake.
func BenchmarkBroker(b *testing.B) {
	for _, work := range []string{"produce", "consume"} {
		for _, broker := range []string{"kfake", "ottla"} {
			b.Run(work+"/"+broker, func(b *testing.B) {
				var p *process
				if broker == "ottla" {
					p = startOttla(b)
				} else {
					p = startKfake(b)
				}
				if work == "produce" {
					topic := benchTopic(b, p.addr, 6)
					var done atomic.Int64
					values := payloads(100)
					client := newFranzProducer(b, produceSetup{p.addr, topic, compress.None}, &done)
					measure(b, p.cmd.Process.Pid, func() {
						for i := range b.N {
							client.produce(values[i%len(values)])
						}
						require.NoError(b, client.close())
					})
				} else {
					topic := filledTopic(b, p.addr, 100, b.N)
					measure(b, p.cmd.Process.Pid, func() { consumeAll(b, "franz", p.addr, topic, b.N) })
				}
			})
		}
	}
}

// startKfake runs franz-go's in-memory broker as a child: this test binary again, see TestMain.
func startKfake(t testing.TB) *process {
	port := reserve(t, 1)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("OTTLA_INTEROP_KFAKE=%d", port))
	p, err := launch(cmd)
	require.NoError(t, err)
	t.Cleanup(p.kill)
	p.addr = fmt.Sprintf("127.0.0.1:%d", port)
	eventually(t, "kfake listens", func() bool { return dialable(p.addr) })
	return p
}

func benchTopic(t testing.TB, addr string, partitions int) string {
	cl, err := client.New(client.Seeds(addr))
	require.NoError(t, err)
	defer cl.Close(context.Background())
	topic := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	a := admin.New(cl)
	_, err = a.CreateTopics(context.Background(), admin.NewTopic{Name: topic, Partitions: partitions, Replicas: 1})
	require.NoError(t, err)
	require.NoError(t, a.AwaitTopic(context.Background(), topic))
	awaitLeaders(t, a, topic, partitions)
	return topic
}

// filledTopic has n records of a size in six partitions, written by franz-go.
func filledTopic(t testing.TB, addr string, size, n int) string {
	topic := benchTopic(t, addr, 6)
	var done atomic.Int64
	values := payloads(size)
	p := newFranzProducer(t, produceSetup{addr, topic, compress.None}, &done)
	for i := range n {
		p.produce(values[i%len(values)])
	}
	require.NoError(t, p.close())
	return topic
}

// measure runs f and reports the CPU time of a process and, when that is this one, its allocations, per record.
func measure(b *testing.B, pid int, f func()) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start, cpu := time.Now(), cpuTime(b, pid)
	b.ResetTimer()
	f()
	b.StopTimer()
	used, wall := cpuTime(b, pid)-cpu, time.Since(start)
	runtime.ReadMemStats(&after)
	b.ReportMetric(used.Seconds()/float64(b.N)*1e6, "cpu-s/Mrec")
	b.ReportMetric(float64(b.N)/wall.Seconds(), "rec/s")
	if pid == os.Getpid() {
		b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/rec")
	}
	b.ReportMetric(0, "ns/op")
}

// cpuTime is the user and system time of a process so far.
func cpuTime(t testing.TB, pid int) time.Duration {
	if pid == os.Getpid() {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // clock ticks of 100 Hz
}
