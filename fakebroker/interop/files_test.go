package interop

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
)

func writeFile(t testing.TB, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// TestQuickstartOnBothBrokers runs the README's first command against ottla serve and against Apache Kafka.
func TestQuickstartOnBothBrokers(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "quickstart")
	require.NoError(t, build(bin, "./examples/quickstart"))
	ottla := startOttla(t, "--data", t.TempDir())
	for broker, args := range map[string][]string{"embedded": nil, "ottla": {"-bootstrap", ottla.addr}, "kafka": {"-bootstrap", kafkaAddr}} {
		t.Run(broker, func(t *testing.T) {
			cmd := exec.Command(bin, args...)
			cmd.Dir = root
			r := run(t, cmd, "")
			require.Zero(t, r.code, "stdout: %s\nstderr: %s", r.stdout, r.stderr)
			m := regexp.MustCompile(`(?m)^in (\d+) · out (\d+) · files identical (\d+)/(\d+) · [\d.]+ MB/s$`).FindStringSubmatch(r.stdout)
			require.NotNil(t, m, r.stdout)
			require.Equal(t, m[1], m[2])
			require.Equal(t, m[3], m[4])
			t.Log(strings.TrimSpace(r.stdout))
		})
	}
}

// TestDumpLogSegmentsReadsEveryFile lets Apache Kafka's own reader open every file of a data folder that has seen all
// codecs, rolled segments, deleted records and topics, and a restart.
func TestDumpLogSegmentsReadsEveryFile(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	ottla := startOttla(t, "--data", data, "--config", "log.segment.bytes=1048576", "--config", "log.index.interval.bytes=512", "--topic", "plain:2", "--topic", "gone:1")
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		java(t, "", perfProducer, "--bootstrap-server", ottla.addr, "--topic", "plain", "--num-records", "10000",
			"--record-size", "300", "--throughput", "-1", "--command-property", "compression.type="+codec, "--command-property", "batch.size=8000")
	}
	java(t, "", topicCommand, "--bootstrap-server", ottla.addr, "--delete", "--topic", "gone")
	require.NoError(t, ottla.stop())
	again := startOttla(t, "--data", data)
	java(t, "1\n2\n3\n", consoleWriter, "--bootstrap-server", again.addr, "--topic", "plain")
	require.NoError(t, again.stop())

	var files []string
	kinds := map[string]int{}
	require.NoError(t, filepath.WalkDir(data, func(path string, d os.DirEntry, err error) error {
		switch ext := filepath.Ext(path); ext {
		case ".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint":
			kinds[ext]++
			files = append(files, path)
		}
		return err
	}))
	for _, kind := range []string{".log", ".index", ".timeindex", ".snapshot", ".checkpoint"} {
		require.NotZero(t, kinds[kind], "no %s file was written", kind)
	}
	for metadata, flags := range map[bool][]string{false: {"--deep-iteration"}, true: {"--cluster-metadata-decoder"}} {
		var some []string
		for _, f := range files {
			if strings.Contains(f, "__cluster_metadata") == metadata {
				some = append(some, f)
			}
		}
		out := java(t, "", dumpLog, append(flags, "--files", strings.Join(some, ","))...)
		for _, f := range some {
			require.Contains(t, out, "Dumping "+f)
		}
		for _, bad := range []string{"mismatch", "Mismatch", "invalid", "isvalid: false", "exception", "Exception", "Could not", "sanity"} {
			require.NotContains(t, out, bad)
		}
	}
	t.Logf("DumpLogSegments read %d files: %v", len(files), kinds)
}

// TestKillNineLosesNothingAcknowledged kills the broker process under load, three times, and then finds every
// acknowledged record once and in order. (A process crash: what the operating system holds is kept.)
func TestKillNineLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	var acked []uint64 // in the order of acknowledgement, one partition
	var mu sync.Mutex
	var untold sync.WaitGroup
	next := uint64(0)
	for round := range 3 {
		ottla := startOttla(t, "--data", data, "--topic", "crash:1", "--config", "log.segment.bytes=1048576")
		cl, err := client.New(client.Seeds(ottla.addr))
		require.NoError(t, err)
		p, err := producer.New(cl)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		enough, left := make(chan struct{}), 100_000*(round+1)
		go func() { // ends with ctx, at the latest
			select {
			case <-enough:
				ottla.kill()
				cancel()
			case <-ctx.Done():
			}
		}()
		for ctx.Err() == nil {
			n := next
			next++
			value := make([]byte, 100)
			binary.BigEndian.PutUint64(value, n)
			untold.Add(1)
			if p.Submit(ctx, producer.Record{Topic: "crash", Value: value}, func(_ producer.Ack, err error) {
				defer untold.Done()
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					acked = append(acked, n)
					if left--; left == 0 {
						close(enough)
					}
				}
			}) != nil {
				untold.Done()
			}
		}
		cancel()
		p.Close(ctx) // what is under way is given up
		untold.Wait()
		cl.Close(t.Context())
		require.LessOrEqual(t, left, 0, "acknowledged before the kill")
	}
	ottla := startOttla(t, "--data", data)
	cl, err := client.New(client.Seeds(ottla.addr))
	require.NoError(t, err)
	defer cl.Close(t.Context())
	c, err := consumer.New(cl, consumer.Assign("crash", 0), consumer.StartAt(consumer.Earliest))
	require.NoError(t, err)
	defer c.Close(t.Context())
	crash := consumer.TopicPartition{Topic: "crash", Partition: 0}
	ends, err := c.EndOffsets(t.Context(), crash)
	require.NoError(t, err)
	seen := make([]bool, next) // by number; plain ifs, because there are millions
	count, last, ordered := 0, int64(-1), true
	for int64(count) < ends[crash] {
		records, err := c.Poll(t.Context(), 10000)
		require.NoError(t, err)
		for _, r := range records {
			n := binary.BigEndian.Uint64(r.Value)
			if seen[n] {
				t.Fatalf("record %d is there twice", n)
			}
			ordered = ordered && int64(n) > last
			seen[n], last = true, int64(n)
			count++
		}
	}
	for _, n := range acked {
		if !seen[n] {
			t.Fatalf("acknowledged record %d is lost", n)
		}
	}
	require.True(t, ordered)
	require.NotEmpty(t, acked)
	t.Logf("%d submitted, %d acknowledged, %d in the log after 3 kills", next, len(acked), count)
}
