package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestKcatListsProducesAndConsumes runs kcat (librdkafka) as a user would.
func TestKcatListsProducesAndConsumes(t *testing.T) {
	t.Parallel()
	ottla := startOttla(t, "--topic", "kcat:2")
	var lines strings.Builder
	for i := range 500 {
		fmt.Fprintf(&lines, "k%d:line %d\n", i%9, i)
	}
	r := run(t, exec.Command("kcat", "-m", "60", "-b", ottla.addr, "-L", "-t", "kcat"), "")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, `topic "kcat" with 2 partitions`)
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		r = run(t, exec.Command("kcat", "-m", "60", "-b", ottla.addr, "-P", "-t", "kcat", "-K", ":", "-z", codec), lines.String())
		require.Zero(t, r.code, "%s: %s", codec, r.stderr)
	}
	r = run(t, exec.Command("kcat", "-m", "60", "-b", ottla.addr, "-C", "-t", "kcat", "-o", "beginning", "-e", "-q", "-f", `%k:%s\n`), "")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, 5*500, strings.Count(r.stdout, "\n"))
	require.Equal(t, 5, strings.Count(r.stdout, ":line 499\n"))
	r = run(t, exec.Command("kcat", "-m", "60", "-b", ottla.addr, "-Q", "-t", "kcat:0:-1", "-t", "kcat:1:-2"), "")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, "kcat [1] offset 0")
}

// TestPythonClients lets confluent-kafka and kafka-python write and read back, on ottla and, to be sure that the scripts
// test what they say, on Apache Kafka.
func TestPythonClients(t *testing.T) {
	t.Parallel()
	ottla := startOttla(t, "--data", t.TempDir(), "--topic", "confluent:3", "--topic", "kafkapython:3")
	for _, peer := range []string{"confluent", "kafkapython"} {
		java(t, "", topicCommand, "--bootstrap-server", kafkaAddr, "--create", "--topic", peer, "--partitions", "3")
		for broker, addr := range map[string]string{"ottla": ottla.addr, "kafka": kafkaAddr} {
			t.Run(peer+"/"+broker, func(t *testing.T) {
				r := run(t, exec.Command(os.Getenv("OTTLA_PYTHON"), "peers/"+peer+".py", addr, peer, "700"), "")
				require.Zero(t, r.code, "stdout: %s\nstderr: %s", r.stdout, r.stderr)
				t.Log(strings.TrimSpace(r.stdout))
			})
		}
	}
}

// TestFranzGoProducesAndConsumes writes with franz-go's idempotent producer, and reads with its consumer by partition.
func TestFranzGoProducesAndConsumes(t *testing.T) {
	t.Parallel()
	ottla := startOttla(t, "--topic", "franz:4")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p, err := kgo.NewClient(kgo.SeedBrokers(ottla.addr), kgo.DefaultProduceTopic("franz"), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	require.NoError(t, err)
	defer p.Close()
	const count = 20000
	for i := range count {
		p.Produce(ctx, &kgo.Record{Key: []byte{byte(i % 13)}, Value: fmt.Appendf(nil, "%d", i)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	require.NoError(t, p.Flush(ctx))

	starts := map[int32]kgo.Offset{}
	for i := range int32(4) {
		starts[i] = kgo.NewOffset().AtStart()
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(ottla.addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"franz": starts}))
	require.NoError(t, err)
	defer c.Close()
	last, seen := map[byte]int{}, 0
	for seen < count {
		fetches := c.PollFetches(ctx)
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			var n int
			_, err := fmt.Sscan(string(r.Value), &n)
			require.NoError(t, err)
			if before, ok := last[r.Key[0]]; ok {
				require.Equal(t, before+13, n, "records of one key in order, none missing")
			}
			last[r.Key[0]] = n
			seen++
		})
	}
	require.Equal(t, count, seen)
}
