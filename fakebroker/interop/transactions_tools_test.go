package interop

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

const transactionsCommand = "org.apache.kafka.tools.TransactionsCommand"

// transactionSteps is what TransactionsCommand is asked, in this order. There are tt-empty, tt-open, tt-committed, tt-aborted
// and tt-hanging, whose batch in partition 1 of tt, at {hanging}, no coordinator knows of. {pid} is its producer.
var transactionSteps = []struct{ name, args string }{
	{"list", "list"},
	{"list by pattern", "list --transactional-id-pattern tt-[a-c].*"},
	{"list by a pattern that is none", "list --transactional-id-pattern tt-("},
	{"list by a pattern that nothing has", "list --transactional-id-pattern nothing"},
	{"list what runs", "list --duration-filter 0"},
	{"list what runs for an hour", "list --duration-filter 3600000"},
	{"list without a filter", "list --duration-filter -1"},
	{"list for no time", "list --duration-filter soon"},
	{"describe open", "describe --transactional-id tt-open"},
	{"describe empty", "describe --transactional-id tt-empty"},
	{"describe committed", "describe --transactional-id tt-committed"},
	{"describe aborted", "describe --transactional-id tt-aborted"},
	{"describe missing", "describe --transactional-id tt-missing"},
	{"describe nothing", "describe"},
	{"producers", "describe-producers --topic tt --partition 0"},
	{"producers of the other partition", "describe-producers --topic tt --partition 1"},
	{"producers at a broker", "describe-producers --topic tt --partition 0 --broker-id 1"},
	{"producers of a partition that is missing", "describe-producers --topic tt --partition 7"},
	{"producers of a topic that is missing", "describe-producers --topic tt-missing --partition 0"},
	{"producers of no partition", "describe-producers --topic tt"},
	{"find hanging anywhere", "find-hanging"},
	{"find hanging at the broker", "find-hanging --broker-id 1"},
	{"find hanging in the topic", "find-hanging --topic tt"},
	{"find hanging in its partition", "find-hanging --topic tt --partition 1"},
	{"find hanging in the other partition", "find-hanging --topic tt --partition 0"},
	{"find hanging for hours", "find-hanging --broker-id 1 --max-transaction-timeout 180"},
	{"find hanging in no topic", "find-hanging --partition 0"},
	{"find hanging in a topic that is missing", "find-hanging --topic tt-missing"},
	{"abort nothing", "abort"},
	{"abort without an offset", "abort --topic tt --partition 1"},
	{"abort at an offset without a transaction", "abort --topic tt --partition 1 --start-offset 0"},
	{"abort with half of it", "abort --topic tt --partition 1 --producer-id {pid}"},
	{"abort in a partition that is missing", "abort --topic tt --partition 7 --start-offset 0"},
	{"abort an older epoch", "abort --topic tt --partition 1 --producer-id {pid} --producer-epoch -2 --coordinator-epoch 0"},
	{"abort", "abort --topic tt --partition 1 --start-offset {hanging}"},
	{"abort again", "abort --topic tt --partition 1 --start-offset {hanging}"},
	{"find hanging after it", "find-hanging --broker-id 1"},
	{"producers after it", "describe-producers --topic tt --partition 1"},
	{"terminate", "forceTerminateTransaction --transactionalId tt-open"},
	{"terminate what is over", "forceTerminateTransaction --transactionalId tt-committed"},
	{"terminate missing", "forceTerminateTransaction --transactionalId tt-missing"},
	{"terminate nothing", "forceTerminateTransaction"},
	{"describe terminated", "describe --transactional-id tt-open"},
	{"list at the end", "list"},
	{"no command", ""},
	{"an unknown command", "finish"},
	{"help", "--help"},
}

// asksOn are steps about partitions that are not there: the tool asks for their leader until its time is over.
var asksOn = regexp.MustCompile(`^(describe-producers|abort) --topic (tt --partition 7|tt-missing)`)

// TestTransactionsCommandSeesNoDifference asks Apache Kafka's tool for transactions the same about Apache Kafka and about
// ottla. Both have verification of partitions turned off, so that a transaction can hang.
func TestTransactionsCommandSeesNoDifference(t *testing.T) {
	t.Parallel()
	const unverified = "transaction.partition.verification.enable=false"
	kafka := startSmallKafka(t, nil, []string{unverified})
	ottla := startGroups(t, "--data", t.TempDir(), "--config", unverified)
	addrs := []string{kafka.addr, ottla.addr}
	dir := t.TempDir()
	writeFile(t, dir, "usual.properties", "")
	writeFile(t, dir, "quick.properties", "default.api.timeout.ms=2000\nrequest.timeout.ms=1000\n")
	var runners []*tools
	var hanging []*strings.Replacer
	for _, addr := range addrs {
		hanging = append(hanging, transactionsForTools(t, addr))
		runners = append(runners, startTools(t))
	}
	for _, s := range transactionSteps {
		t.Run(s.name, func(t *testing.T) {
			config := "usual.properties"
			if asksOn.MatchString(s.args) {
				config = "quick.properties"
			}
			args := "--command-config " + filepath.Join(dir, config) + " " + s.args
			theirs, ours := askBoth(t, func(i int) (result, error) {
				return runners[i].run(transactionsCommand, append([]string{"--bootstrap-server", addrs[i]}, strings.Fields(hanging[i].Replace(args))...)...)
			})
			t.Logf("exit %d: %s\n%s", theirs.code, normalTransactions(s.args, theirs.stdout), normalTransactions(s.args, theirs.stderr))
			require.Equal(t, normalTransactions(s.args, theirs.stdout), normalTransactions(s.args, ours.stdout), "stdout\nstderr with Apache Kafka: %s\nstderr with ottla: %s", theirs.stderr, ours.stderr)
			require.Equal(t, normalTransactions(s.args, theirs.stderr), normalTransactions(s.args, ours.stderr), "stderr")
			require.Equal(t, theirs.code, ours.code, "exit code")
		})
	}
	requireSameDumps(t, kafka, ottla)
}

// clocks are times, and durations that follow them in the descriptions of transactions.
var clocks, durations = regexp.MustCompile(`\b\d{13}\b`), regexp.MustCompile(`TIME \d+`)

// timeouts are what the client says of a call that it has given up: it depends on where it was then.
var timeouts = regexp.MustCompile(`Timed out waiting for a node assignment\. Call: \S+\)|Call\(callName=.*? timed out at .* attempt\(s\)`)

// normalTransactions leaves times out, the width of columns, and the order of lists, which is that of hash tables.
func normalTransactions(args, s string) string {
	var lines []string
	for line := range strings.Lines(timeouts.ReplaceAllString(normal(s), "TIMEOUT")) {
		line = strings.Join(strings.Fields(clocks.ReplaceAllString(line, "TIME")), " ")
		if strings.HasPrefix(args, "describe ") {
			line = durations.ReplaceAllString(line, "TIME TIME")
		}
		lines = append(lines, line)
	}
	if strings.HasPrefix(args, "list") {
		slices.Sort(lines)
	}
	return strings.Join(lines, "\n")
}

// dumps are the files that transactions leave behind, and how DumpLogSegments is told to read them.
var dumps = []struct{ files, flag string }{
	{"__transaction_state-*/*.log", "--transaction-log-decoder"},
	{"__consumer_offsets-*/*.log", "--offsets-decoder"},
	{"tt-*/*.log", "--print-data-log"},
	{"tt-*/*.txnindex", "--deep-iteration"},
	{"tt-*/*.snapshot", "--deep-iteration"},
	{"__transaction_state-*/*.snapshot", "--deep-iteration"},
	{"__consumer_offsets-*/*.snapshot", "--deep-iteration"},
}

// In dumps, times, sums over them and topic ids differ, and so does the order of a transaction's topics: a hash table's.
var (
	dumpMadeUp  = regexp.MustCompile(`(CreateTime:? |crc: |[tT]imestamp(?:Ms)?"?: ?|"topicId":")[\w-]+`)
	dumpTopics  = regexp.MustCompile(`"transactionPartitions":\[(.*?\})\]`)
	dumpOfTopic = regexp.MustCompile(`\{.*?\}`)
)

func normalDump(line string) string {
	line = dumpMadeUp.ReplaceAllString(line, "${1}N")
	return dumpTopics.ReplaceAllStringFunc(line, func(list string) string {
		topics := dumpOfTopic.FindAllString(list, -1)
		slices.Sort(topics)
		return fmt.Sprint(topics)
	})
}

// requireSameDumps stops two brokers that were told the same and compares what DumpLogSegments finds in their folders.
func requireSameDumps(t *testing.T, kafka, ottla *process) {
	require.NoError(t, ended(kafka))
	require.NoError(t, ended(ottla))
	for _, d := range dumps {
		t.Run("dump of "+d.files, func(t *testing.T) {
			var texts []string
			for _, p := range []*process{kafka, ottla} {
				files, err := filepath.Glob(filepath.Join(p.data, d.files))
				require.NoError(t, err)
				require.NotEmpty(t, files)
				out := java(t, "", dumpLog, d.flag, "--files", strings.Join(files, ","))
				var lines []string
				for line := range strings.Lines(strings.ReplaceAll(out, p.data, "")) {
					lines = append(lines, normalDump(line))
				}
				if strings.HasSuffix(d.files, ".snapshot") {
					slices.Sort(lines)
				}
				texts = append(texts, strings.Join(lines, ""))
			}
			t.Logf("%d lines", strings.Count(texts[0], "\n"))
			require.Equal(t, texts[0], texts[1])
		})
	}
}

// transactionsForTools makes what transactionSteps are about.
func transactionsForTools(t testing.TB, addr string) *strings.Replacer {
	awaitTransactions(t, addr)
	g := newTxnTalk(t, addr)
	g.keeps = true
	g.topic("tt", 2)
	g.starts("tt-empty")
	open := g.open("tt-open", "tt", 0, 2)
	g.quiet(3, open.addingOffsets("tt-group"))
	g.quiet(3, open.committing(3, "tt-group", "tt", 5, 6))
	g.open("tt-committed", "tt", 0, 1).ends(3, true)
	g.open("tt-aborted", "tt", 0, 1).ends(3, false)
	g.open("tt-committed-too", "tt", 1, 3).ends(3, true)
	p := g.starts("tt-hanging")
	resp := g.quiet(11, p.writing(11, "tt", 1, 0, 2)).(*message.ProduceResponse).Responses[0].PartitionResponses[0]
	require.Equal(t, errcode.None, errcode.Code(resp.ErrorCode))
	return strings.NewReplacer("{pid}", fmt.Sprint(p.producer), "{hanging}", fmt.Sprint(resp.BaseOffset))
}
