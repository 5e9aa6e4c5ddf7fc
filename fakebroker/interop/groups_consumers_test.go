package interop

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
)

// TestGroupConsumersSeeNoDifference runs Apache Kafka's consumers as groups to their end, on both brokers.
func TestGroupConsumersSeeNoDifference(t *testing.T) {
	t.Parallel()
	ottla := startGroups(t, "--data", t.TempDir())
	for _, addr := range []string{kafkaAddr, ottla.addr} {
		cl := newClient(t, addr)
		createTopic(t, cl, admin.NewTopic{Name: "reading", Partitions: fleetPartitions, Replicas: 1})
		writeNumbered(t.Context(), t, cl, "reading", "read", 600)
		known := newGroupTalk(t, addr)
		awaitCoordinator(t, known.conversation)
		known.seen("reading", fleetPartitions)
	}
	for _, s := range []struct {
		name, class, args string
		norm              func(string) string
	}{
		{"console", consoleReader, "--topic reading --group read-console --from-beginning --max-messages 600", sortedLines},
		{"console again", consoleReader, "--topic reading --group read-console --from-beginning --timeout-ms 2000", sortedLines},
		{"console, consumer protocol", consoleReader, "--topic reading --group read-console-new --command-property group.protocol=consumer --from-beginning --max-messages 600", sortedLines},
		{"console, by expression", consoleReader, "--include readin. --group read-console-some --from-beginning --max-messages 600", sortedLines},
		{"performance", perfConsumer, "--topic reading --group read-perf --num-records 600 --timeout 120000", performance},
		{"verifiable", verifiableConsumer, "--topic reading --group-id read-verifiable --group-instance-id one --max-messages 600", verifiableEvents},
		{"verifiable, consumer protocol", verifiableConsumer, "--topic reading --group-id read-verifiable-new --group-protocol consumer --max-messages 600", verifiableEvents},
		{"latency", latency, "{b} reading 20 all 100", func(s string) string { return numbers.ReplaceAllString(s, "N") }},
	} {
		t.Run(s.name, func(t *testing.T) {
			args := s.args
			if !strings.Contains(args, "{b}") {
				args = "--bootstrap-server {b} " + args
			}
			addrs := []string{kafkaAddr, ottla.addr}
			theirs, ours := askBoth(t, func(i int) (result, error) {
				return execute(step{class: s.class, args: args}.command(t.Context(), addrs[i], ""), "")
			})
			require.Zero(t, theirs.code, theirs.stderr)
			t.Logf("%.100s", s.norm(theirs.stdout))
			require.Equal(t, s.norm(theirs.stdout), s.norm(ours.stdout), "stdout\nstderr with Apache Kafka: %s\nstderr with ottla: %s", theirs.stderr, ours.stderr)
			require.Equal(t, normal(theirs.stderr), normal(ours.stderr), "stderr")
			require.Equal(t, theirs.code, ours.code)
		})
	}
}

// sortedLines leaves out in which order partitions were read.
func sortedLines(s string) string {
	lines := strings.Split(normal(s), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

var numbers = regexp.MustCompile(`\d+([.,]\d+)*`)

// performance keeps what was consumed, in MB and in records, of a line that else has times and what was divided by them.
func performance(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	cells := strings.Split(lines[len(lines)-1], ", ")
	if len(cells) < 6 {
		return s
	}
	return fmt.Sprintf("%s\n%d columns, %s MB, %s records", strings.Join(lines[:len(lines)-1], "\n"), len(cells), cells[2], cells[4])
}

// verifiableEvents keeps the kinds of events, the partitions that were assigned and revoked, how many records were consumed
// and to which offsets they were committed last: how many records come with one poll is a matter of time.
func verifiableEvents(s string) string {
	consumed, assigned, kinds := 0, map[string][]int{}, map[string]bool{}
	committed := map[int]int{}
	for line := range strings.Lines(s) {
		var e struct {
			Name       string
			Count      int
			Success    bool
			Partitions []struct{ Partition int }
			Offsets    []struct{ Partition, Offset int }
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			return "no event: " + line
		}
		kinds[e.Name] = true
		switch e.Name {
		case "records_consumed":
			consumed += e.Count
		case "partitions_assigned", "partitions_revoked":
			for _, p := range e.Partitions {
				assigned[e.Name] = append(assigned[e.Name], p.Partition)
			}
			slices.Sort(assigned[e.Name])
		case "offsets_committed":
			kinds[fmt.Sprint("committed ", e.Success)] = true
			for _, o := range e.Offsets {
				committed[o.Partition] = o.Offset
			}
		}
	}
	return fmt.Sprintf("events %v\npartitions %v\n%d records\noffsets %v", kinds, assigned, consumed, committed)
}
