package interop

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// step is one run of one of Apache Kafka's tools; {b} in an argument stands for the bootstrap address.
type step struct {
	name  string
	class string
	args  string
	stdin string
}

const (
	topicCommand  = "org.apache.kafka.tools.TopicCommand"
	configCommand = "org.apache.kafka.tools.ConfigCommand"
	getOffsets    = "org.apache.kafka.tools.GetOffsetShell"
	deleteRecords = "org.apache.kafka.tools.DeleteRecordsCommand"
	consoleWriter = "org.apache.kafka.tools.ConsoleProducer"
	consoleReader = "org.apache.kafka.tools.consumer.ConsoleConsumer"
	verifiable    = "org.apache.kafka.tools.VerifiableProducer"
	perfProducer  = "org.apache.kafka.tools.ProducerPerformance"
	apiVersions   = "org.apache.kafka.tools.BrokerApiVersionsCommand"
	dumpLog       = "org.apache.kafka.tools.DumpLogSegments"

	featureCommand  = "org.apache.kafka.tools.FeatureCommand"
	quorumCommand   = "org.apache.kafka.tools.MetadataQuorumCommand"
	clusterTool     = "org.apache.kafka.tools.ClusterTool"
	reassignCommand = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
)

// toolSteps is one story, told to both brokers in this order: what each tool prints must be the same.
func toolSteps(records string) []step {
	return []step{
		{"create", topicCommand, "--bootstrap-server {b} --create --topic tools --partitions 3 --replication-factor 1 --config retention.ms=86400000 --config cleanup.policy=delete", ""},
		{"create again", topicCommand, "--bootstrap-server {b} --create --topic tools --partitions 3", ""},
		{"create if absent", topicCommand, "--bootstrap-server {b} --create --if-not-exists --topic tools", ""},
		{"create invalid name", topicCommand, "--bootstrap-server {b} --create --topic tools/bad", ""},
		{"create invalid config", topicCommand, "--bootstrap-server {b} --create --topic tools-bad --config retention.ms=soon", ""},
		{"create too many replicas", topicCommand, "--bootstrap-server {b} --create --topic tools-rf --replication-factor 3", ""},
		{"list", topicCommand, "--bootstrap-server {b} --list --topic tools.*", ""},
		{"describe", topicCommand, "--bootstrap-server {b} --describe --topic tools", ""},
		{"describe missing", topicCommand, "--bootstrap-server {b} --describe --topic nothing-here", ""},
		{"under replicated", topicCommand, "--bootstrap-server {b} --describe --under-replicated-partitions --topic tools", ""},
		{"more partitions", topicCommand, "--bootstrap-server {b} --alter --topic tools --partitions 4", ""},
		{"fewer partitions", topicCommand, "--bootstrap-server {b} --alter --topic tools --partitions 2", ""},
		{"describe four", topicCommand, "--bootstrap-server {b} --describe --topic tools", ""},
		{"topic configs", configCommand, "--bootstrap-server {b} --describe --entity-type topics --entity-name tools", ""},
		{"alter topic config", configCommand, "--bootstrap-server {b} --alter --entity-type topics --entity-name tools --add-config max.message.bytes=2000000,compression.type=producer", ""},
		{"remove topic config", configCommand, "--bootstrap-server {b} --alter --entity-type topics --entity-name tools --delete-config retention.ms", ""},
		{"alter invalid config", configCommand, "--bootstrap-server {b} --alter --entity-type topics --entity-name tools --add-config segment.bytes=x", ""},
		{"all topic configs", configCommand, "--bootstrap-server {b} --describe --entity-type topics --entity-name tools --all", ""},
		{"alter broker config", configCommand, "--bootstrap-server {b} --alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=2", ""},
		{"broker configs", configCommand, "--bootstrap-server {b} --describe --entity-type brokers --entity-name 1", ""},
		{"alter broker default", configCommand, "--bootstrap-server {b} --alter --entity-type brokers --entity-default --add-config message.max.bytes=1048700", ""},
		{"broker defaults", configCommand, "--bootstrap-server {b} --describe --entity-type brokers --entity-default", ""},
		{"remove broker default", configCommand, "--bootstrap-server {b} --alter --entity-type brokers --entity-default --delete-config message.max.bytes", ""},
		{"alter read-only", configCommand, "--bootstrap-server {b} --alter --entity-type brokers --entity-name 1 --add-config node.id=4", ""},
		{"console producer", consoleWriter, "--bootstrap-server {b} --topic tools --request-timeout-ms 60000 --reader-property parse.key=true --reader-property key.separator=:", records},
		{"offsets latest", getOffsets, "--bootstrap-server {b} --topic tools", ""},
		{"offsets earliest", getOffsets, "--bootstrap-server {b} --topic tools --time -2", ""},
		{"offsets of an absent topic", getOffsets, "--bootstrap-server {b} --topic-partitions nothing:0", ""},
		{"console consumer 0", consoleReader, "--bootstrap-server {b} --topic tools --partition 0 --offset earliest --max-messages 60 --formatter-property print.key=true --formatter-property print.offset=true", ""},
		{"console consumer 1", consoleReader, "--bootstrap-server {b} --topic tools --partition 1 --offset 2 --max-messages 5 --formatter-property print.key=true --formatter-property print.partition=true", ""},
		{"create one partition", topicCommand, "--bootstrap-server {b} --create --topic tools-one", ""},
		{"verifiable producer", verifiable, "--bootstrap-server {b} --topic tools-one --max-messages 50 --acks -1", ""},
		{"features", featureCommand, "--bootstrap-server {b} describe", ""},
		{"quorum", quorumCommand, "--bootstrap-server {b} describe --status", ""},
		{"voters", quorumCommand, "--bootstrap-server {b} describe --replication", ""},
		{"cluster id", clusterTool, "cluster-id --bootstrap-server {b}", ""},
		{"endpoints", clusterTool, "list-endpoints --bootstrap-server {b}", ""},
		{"reassignments", reassignCommand, "--bootstrap-server {b} --list", ""},
		{"delete records", deleteRecords, "--bootstrap-server {b} --offset-json-file {dir}/delete.json", ""},
		{"offsets after delete", getOffsets, "--bootstrap-server {b} --topic tools --time earliest", ""},
		{"delete", topicCommand, "--bootstrap-server {b} --delete --topic tools", ""},
		{"delete missing", topicCommand, "--bootstrap-server {b} --delete --topic tools", ""},
		{"delete the other", topicCommand, "--bootstrap-server {b} --delete --topic tools-one", ""},
		{"list after delete", topicCommand, "--bootstrap-server {b} --list --topic tools.*", ""},
	}
}

// madeUp are the parts of a tool's output that a broker or a clock makes up.
var madeUp = []struct {
	re *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`TopicId: \S+`), "TopicId: ID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDR"},
	{regexp.MustCompile(`127\.0\.0\.1 \d+`), "ADDR"}, // a table's columns
	{regexp.MustCompile(`(ClusterId|Cluster ID): +\S+`), "$1: ID"},
	{regexp.MustCompile(`"directoryId": "\S+"`), `"directoryId": "ID"`},
	{regexp.MustCompile(`(HighWatermark|LeaderEpoch): +\d+`), "$1: N"},
	{regexp.MustCompile(`Epoch: \d+`), "Epoch: N"}, // offset of the last metadata record
	{regexp.MustCompile(`(?m)^1\s+\S{22}\s+\d+\s+0\s+\d{13}\s+\d{13}\s+Leader`), "1 ID END 0 TIME TIME Leader"},
	{regexp.MustCompile(`"timestamp":\d+`), `"timestamp":T`},
	{regexp.MustCompile(`"avg_throughput":[\d.E]+`), `"avg_throughput":R`},
	{regexp.MustCompile(`(?m)^\[?\d{4}-\d\d-\d\d[ T][\d:.,]+\]?`), "TIME"},
	{regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d+ .*\n?`), ""}, // log lines
	{regexp.MustCompile(`(?m)^\tat .*\n?`), ""},                // stack traces
}

func normal(s string) string {
	for _, m := range madeUp {
		s = m.re.ReplaceAllString(s, m.by)
	}
	return strings.TrimSpace(s)
}

// TestKafkaToolsSeeNoDifference runs every step against Apache Kafka and against ottla and compares output and exit code.
func TestKafkaToolsSeeNoDifference(t *testing.T) {
	t.Parallel()
	ottla := startOttla(t, "--data", t.TempDir())
	dir := t.TempDir()
	writeFile(t, dir, "delete.json", `{"partitions":[{"topic":"tools","partition":0,"offset":3}],"version":1}`)
	var records strings.Builder
	for i := range 300 {
		fmt.Fprintf(&records, "key-%d:value %d\n", i%17, i)
	}
	addrs := []string{kafkaAddr, ottla.addr}
	runners := []*tools{startTools(t), startTools(t)}
	for _, s := range toolSteps(records.String()) {
		t.Run(s.name, func(t *testing.T) {
			ask := func(i int) (result, error) {
				if s.alone() {
					return execute(s.command(t.Context(), addrs[i], dir), s.stdin)
				}
				return runners[i].run(s.class, s.words(addrs[i], dir)...)
			}
			theirs, ours := askBoth(t, ask)
			if theirs.code == 0 {
				s.settle(t, kafkaAddr)
			}
			for try := 0; try < 20 && s.reads() && normal(theirs.stdout) != normal(ours.stdout); try++ {
				time.Sleep(time.Second) // Apache Kafka's broker hears late of what its controller has done; ottla may not
				var err error
				theirs, err = ask(0)
				require.NoError(t, err)
			}
			t.Logf("exit %d: %.300s", theirs.code, normal(theirs.stdout))
			require.Equal(t, normal(theirs.stdout), normal(ours.stdout), "stdout of %s %s\nstderr with Apache Kafka: %s\nstderr with ottla: %s", s.class, s.args, theirs.stderr, ours.stderr)
			require.Equal(t, normal(theirs.stderr), normal(ours.stderr), "stderr of %s %s", s.class, s.args)
			require.Equal(t, theirs.code, ours.code, "exit code of %s %s", s.class, s.args)
		})
	}
}

func (s step) command(ctx context.Context, addr, dir string) *exec.Cmd {
	return javaCommand(ctx, s.class, s.words(addr, dir)...)
}

func (s step) words(addr, dir string) []string {
	return strings.Fields(strings.NewReplacer("{b}", addr, "{dir}", dir).Replace(s.args))
}

// alone tells whether the step needs a process of its own: because it reads, or has something to say at its end.
func (s step) alone() bool {
	return slices.Contains([]string{consoleWriter, consoleReader, verifiable}, s.class)
}

// reads tells whether the step changes nothing, so that it can be repeated.
func (s step) reads() bool {
	return s.class == getOffsets || strings.Contains(s.args, "--describe") || strings.Contains(s.args, "--list")
}

// settle waits, when the step has created or deleted a topic, until Apache Kafka's broker knows: VerifiableProducer tries only
// once, and TopicCommand asks the broker which topics there are.
func (s step) settle(t testing.TB, addr string) {
	words := strings.Fields(s.args)
	if s.class != topicCommand {
		return
	}
	a, topic := admin.New(newClient(t, addr)), words[slices.Index(words, "--topic")+1]
	if slices.Contains(words, "--create") {
		awaitLeaders(t, a, topic, 1)
	}
	if slices.Contains(words, "--delete") {
		eventually(t, topic+" is gone", func() bool {
			_, err := a.DescribeTopics(t.Context(), topic)
			return errors.Is(err, errcode.UnknownTopicOrPartition)
		})
	}
}

// askBoth asks two brokers, Apache Kafka first, at the same time.
func askBoth(t testing.TB, ask func(i int) (result, error)) (theirs, ours result) {
	t.Helper()
	var results [2]result
	failed := make(chan error, 2)
	for i := range results {
		go func() { // ends with the answer
			var err error
			results[i], err = ask(i)
			failed <- err
		}()
	}
	require.NoError(t, errors.Join(<-failed, <-failed))
	return results[0], results[1]
}

// TestApiVersionsCommandSeesKafkasRanges holds every API that ottla lists against what Apache Kafka lists.
func TestApiVersionsCommandSeesKafkasRanges(t *testing.T) {
	t.Parallel()
	ottla := startOttla(t)
	line := regexp.MustCompile(`(?m)^\t(\w+)\(\d+\): (.*?),?$`)
	ranges := func(addr string) map[string]string {
		all := map[string]string{}
		for _, m := range line.FindAllStringSubmatch(java(t, "", apiVersions, "--bootstrap-server", addr), -1) {
			all[m[1]] = m[2]
		}
		return all
	}
	theirs, ours := ranges(kafkaAddr), ranges(ottla.addr)
	require.Greater(t, len(ours), 20)
	for api, r := range ours {
		if r != "UNSUPPORTED" {
			require.Equal(t, theirs[api], r, api)
		}
	}
}

// TestProducerPerformance checks that the benchmark tool runs to its end at full speed, with each codec.
func TestProducerPerformance(t *testing.T) {
	t.Parallel()
	ottla := startOttla(t, "--topic", "perf:3")
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		out := java(t, "", perfProducer, "--bootstrap-server", ottla.addr, "--topic", "perf", "--num-records", "20000",
			"--record-size", "200", "--throughput", "-1", "--command-property", "compression.type="+codec)
		require.Contains(t, out, "20000 records sent", codec)
	}
	require.Contains(t, java(t, "", getOffsets, "--bootstrap-server", ottla.addr, "--topic", "perf"), "perf:")
}
