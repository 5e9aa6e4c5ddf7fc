package interop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
)

const (
	groupCommand       = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	groupsCommand      = "org.apache.kafka.tools.GroupsCommand"
	verifiableConsumer = "org.apache.kafka.tools.VerifiableConsumer"
	perfConsumer       = "org.apache.kafka.tools.ConsumerPerformance"
	latency            = "org.apache.kafka.tools.EndToEndLatency"
)

// groupSteps is what ConsumerGroupCommand and GroupsCommand are asked, in this order. There are cg-classic and cg-consumer,
// each with a member that reads cg, cg-empty, whose member has left, and cg-simple, which never had one. {then} is a moment
// between two records.
var groupSteps = []struct{ name, class, args string }{
	{"list", groupCommand, "--list"},
	{"list states", groupCommand, "--list --state"},
	{"list types", groupCommand, "--list --type"},
	{"list states and types", groupCommand, "--list --state --type"},
	{"list stable ones", groupCommand, "--list --state stable"},
	{"list two states", groupCommand, "--list --state Stable,Empty --type consumer"},
	{"list consumer groups", groupCommand, "--list --type consumer"},
	{"list empty classic groups", groupCommand, "--list --type classic --state empty"},
	{"list a state that is none", groupCommand, "--list --state nonsense"},
	{"list a type that is none", groupCommand, "--list --type nonsense"},
	{"groups", groupsCommand, "--list"},
	{"groups of consumers", groupsCommand, "--list --consumer"},
	{"classic groups", groupsCommand, "--list --group-type classic"},
	{"groups of a protocol", groupsCommand, "--list --protocol consumer"},
	{"groups of another protocol", groupsCommand, "--list --protocol connect"},
	{"share groups", groupsCommand, "--list --share"},
	{"streams groups", groupsCommand, "--list --streams"},
	{"groups of a type that is none", groupsCommand, "--list --group-type nonsense"},

	{"describe classic", groupCommand, "--describe --group cg-classic"},
	{"describe classic offsets", groupCommand, "--describe --group cg-classic --offsets --verbose"},
	{"describe classic members", groupCommand, "--describe --group cg-classic --members"},
	{"describe classic members more", groupCommand, "--describe --group cg-classic --members --verbose"},
	{"describe classic state", groupCommand, "--describe --group cg-classic --state"},
	{"describe classic state more", groupCommand, "--describe --group cg-classic --state --verbose"},
	{"describe consumer", groupCommand, "--describe --group cg-consumer"},
	{"describe consumer offsets", groupCommand, "--describe --group cg-consumer --offsets --verbose"},
	{"describe consumer members", groupCommand, "--describe --group cg-consumer --members"},
	{"describe consumer members more", groupCommand, "--describe --group cg-consumer --members --verbose"},
	{"describe consumer state", groupCommand, "--describe --group cg-consumer --state"},
	{"describe consumer state more", groupCommand, "--describe --group cg-consumer --state --verbose"},
	{"describe empty", groupCommand, "--describe --group cg-empty"},
	{"describe empty members", groupCommand, "--describe --group cg-empty --members"},
	{"describe empty state", groupCommand, "--describe --group cg-empty --state"},
	{"describe simple", groupCommand, "--describe --group cg-simple"},
	{"describe simple state", groupCommand, "--describe --group cg-simple --state"},
	{"describe two", groupCommand, "--describe --group cg-simple --group cg-empty"},
	{"describe missing", groupCommand, "--describe --group cg-missing"},
	{"describe missing state", groupCommand, "--describe --group cg-missing --state"},
	{"describe all states", groupCommand, "--describe --all-groups --state"},
	{"describe all offsets", groupCommand, "--describe --all-groups --offsets"},

	{"reset to earliest, not yet", groupCommand, "--reset-offsets --group cg-empty --topic cg --to-earliest --dry-run"},
	{"reset without saying how", groupCommand, "--reset-offsets --group cg-empty --topic cg --to-latest"},
	{"nothing was reset", groupCommand, "--describe --group cg-empty"},
	{"reset to earliest", groupCommand, "--reset-offsets --group cg-empty --topic cg --to-earliest --execute"},
	{"reset to latest", groupCommand, "--reset-offsets --group cg-empty --all-topics --to-latest --execute"},
	{"reset back", groupCommand, "--reset-offsets --group cg-empty --topic cg --shift-by -3 --execute"},
	{"reset forth", groupCommand, "--reset-offsets --group cg-empty --topic cg:0,2 --shift-by 2 --execute"},
	{"reset beyond the beginning", groupCommand, "--reset-offsets --group cg-empty --topic cg:0 --shift-by -1000 --execute"},
	{"reset to an offset", groupCommand, "--reset-offsets --group cg-empty --topic cg:1 --to-offset 4 --execute"},
	{"reset beyond the end", groupCommand, "--reset-offsets --group cg-empty --topic cg:1 --to-offset 4000 --execute"},
	{"reset to current", groupCommand, "--reset-offsets --group cg-empty --topic cg --to-current --dry-run"},
	{"reset to a moment", groupCommand, "--reset-offsets --group cg-empty --topic cg --to-datetime {then} --execute"},
	{"reset to the far past", groupCommand, "--reset-offsets --group cg-empty --topic cg --to-datetime 2000-01-01T00:00:00.000 --dry-run"},
	{"reset to no moment", groupCommand, "--reset-offsets --group cg-empty --topic cg --to-datetime yesterday --dry-run"},
	{"reset by a day", groupCommand, "--reset-offsets --group cg-empty --topic cg --by-duration P1D --execute"},
	{"reset by a second", groupCommand, "--reset-offsets --group cg-empty --topic cg --by-duration PT1S --dry-run"},
	{"export", groupCommand, "--reset-offsets --group cg-empty --all-topics --to-offset 3 --dry-run --export"},
	{"export current", groupCommand, "--reset-offsets --group cg-empty --group cg-simple --all-topics --to-current --dry-run --export"},
	{"reset from a file", groupCommand, "--reset-offsets --group cg-empty --from-file {dir}/one.csv --execute"},
	{"reset two from a file", groupCommand, "--reset-offsets --group cg-empty --group cg-simple --from-file {dir}/two.csv --execute"},
	{"reset from no file", groupCommand, "--reset-offsets --group cg-empty --from-file {dir}/missing.csv --dry-run"},
	{"what was reset", groupCommand, "--describe --group cg-empty --group cg-simple --offsets"},
	{"reset with a member", groupCommand, "--reset-offsets --group cg-classic --topic cg --to-earliest --execute"},
	{"reset with a consumer member", groupCommand, "--reset-offsets --group cg-consumer --topic cg --to-earliest --execute"},
	{"reset of a missing group", groupCommand, "--reset-offsets --group cg-new --topic cg --to-earliest --execute"},
	{"reset of a missing topic", groupCommand, "--reset-offsets --group cg-empty --topic cg-missing --to-earliest --dry-run"},
	{"reset of a missing partition", groupCommand, "--reset-offsets --group cg-empty --topic cg:9 --to-earliest --dry-run"},
	{"reset of no topic", groupCommand, "--reset-offsets --group cg-empty --to-earliest --dry-run"},
	{"reset to nothing", groupCommand, "--reset-offsets --group cg-empty --topic cg --dry-run"},

	{"forget offsets", groupCommand, "--delete-offsets --group cg-empty --topic cg:0,1"},
	{"forget a topic", groupCommand, "--delete-offsets --group cg-simple --topic cg --topic cg-two"},
	{"forget what is read", groupCommand, "--delete-offsets --group cg-classic --topic cg"},
	{"forget what a consumer reads", groupCommand, "--delete-offsets --group cg-consumer --topic cg"},
	{"forget of a missing topic", groupCommand, "--delete-offsets --group cg-empty --topic cg-missing"},
	{"forget of a missing group", groupCommand, "--delete-offsets --group cg-missing --topic cg"},
	{"what is left", groupCommand, "--describe --group cg-empty"},
	{"delete with a member", groupCommand, "--delete --group cg-classic"},
	{"delete with a consumer member", groupCommand, "--delete --group cg-consumer"},
	{"delete missing", groupCommand, "--delete --group cg-missing"},
	{"delete", groupCommand, "--delete --group cg-new"},
	{"delete some", groupCommand, "--delete --group cg-empty --group cg-missing"},
	{"list what is left", groupCommand, "--list --state"},
	{"an expression", groupCommand, "--validate-regex cg-.*"},
	{"no expression", groupCommand, "--validate-regex cg-(.*"},
	{"nothing to do", groupCommand, "--group cg-classic"},
	{"two things to do", groupCommand, "--list --describe --group cg-classic"},
}

// groupsMadeUp are ids that a coordinator or a client makes up.
var groupsMadeUp = regexp.MustCompile(`cg-client-[0-9a-f-]{36}|\b[A-Za-z0-9_-]{22}\b`)

// anyOrder are lists within texts that Java prints in another order with each start.
var anyOrder = regexp.MustCompile(`(Valid states are: |following scenarios: )(.*)`)

func normalGroups(s string) string {
	s = groupsMadeUp.ReplaceAllString(normal(s), "ID")
	return anyOrder.ReplaceAllStringFunc(s, func(line string) string {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,[]", r) })
		slices.Sort(words)
		return strings.Join(words, " ")
	})
}

// normalList is normalGroups for output about all groups and for exports: other tests' groups are left out, whose names also
// make the columns wider, and the order, which is a hash table's with ids that differ, is not looked at.
func normalList(s string) string {
	var kept []string
	for line := range strings.Lines(normalGroups(s)) {
		ours := strings.HasPrefix(line, "cg-") || strings.HasPrefix(line, "Consumer group 'cg-")
		if ours || strings.HasPrefix(line, "GROUP") || strings.HasPrefix(line, "Error") {
			kept = append(kept, strings.Join(strings.Fields(line), " "))
		}
	}
	slices.Sort(kept)
	return strings.Join(slices.Compact(kept), "\n")
}

// tools runs Apache Kafka's tools in one JVM.
type tools struct {
	process *process
	in      io.Writer
	out     *bufio.Reader
}

func startTools(t testing.TB) *tools {
	t.Helper()
	cmd := peerCommand(t, "Tools")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, said := io.Pipe()
	cmd.Stdout = said
	p, err := launch(cmd)
	require.NoError(t, err)
	go func() { <-p.over; said.Close() }() // who waits for an answer gets none
	t.Cleanup(func() { out.Close(); p.kill() })
	return &tools{p, in, bufio.NewReader(out)}
}

func (r *tools) run(class string, args ...string) (result, error) {
	defer time.AfterFunc(patience, r.process.kill).Stop()
	if _, err := fmt.Fprintln(r.in, strings.Join(append([]string{class}, args...), "\t")); err != nil {
		return result{}, err
	}
	var res result
	var out, errs int
	if _, err := fmt.Fscanf(r.out, "%d %d %d\n", &res.code, &out, &errs); err != nil {
		return result{}, err
	}
	text := make([]byte, out+errs)
	_, err := io.ReadFull(r.out, text)
	res.stdout, res.stderr = string(text[:out]), string(text[out:])
	return res, err
}

// TestGroupToolsSeeNoDifference asks Apache Kafka's tools for groups the same about Apache Kafka and about ottla.
func TestGroupToolsSeeNoDifference(t *testing.T) {
	t.Parallel()
	ottla := startGroups(t, "--data", t.TempDir())
	dir := t.TempDir()
	writeFile(t, dir, "one.csv", "cg,0,1\ncg,1,2\ncg-two,0,3\n")
	writeFile(t, dir, "two.csv", "cg-empty,cg,2,5\ncg-simple,cg,0,4\n")
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	// A node of its own: what is asked about all groups must not meet those of other tests, whose topics come and go.
	addrs := []string{startSmallKafka(t, nil, nil).addr, ottla.addr}
	var runners []*tools
	for _, addr := range addrs {
		groupsForTools(t, addr, then)
		runners = append(runners, startTools(t))
	}
	for _, s := range groupSteps {
		t.Run(s.name, func(t *testing.T) {
			args := s.args
			args = strings.NewReplacer("{dir}", dir, "{then}", then.Add(10*time.Second).UTC().Format("2006-01-02T15:04:05.000")).Replace(args)
			theirs, ours := askBoth(t, func(i int) (result, error) {
				return runners[i].run(s.class, append([]string{"--bootstrap-server", addrs[i]}, strings.Fields(args)...)...)
			})
			norm, normErr := normalGroups, normalGroups
			if strings.Contains(args, "--list") || strings.Contains(args, "--all-groups") || strings.Contains(args, "--export") {
				norm = normalList
				if theirs.code == 0 {
					normErr = normalList
				}
			}
			t.Logf("exit %d: %s", theirs.code, norm(theirs.stdout))
			require.Equal(t, norm(theirs.stdout), norm(ours.stdout), "stdout\nstderr with Apache Kafka: %s\nstderr with ottla: %s", theirs.stderr, ours.stderr)
			require.Equal(t, normErr(theirs.stderr), normErr(ours.stderr), "stderr")
			require.Equal(t, theirs.code, ours.code, "exit code")
		})
	}
}

// groupsForTools makes what groupSteps are about.
func groupsForTools(t testing.TB, addr string, then time.Time) {
	cl := newClient(t, addr, client.ClientID("cg-client"))
	createTopic(t, cl, admin.NewTopic{Name: "cg", Partitions: 3, Replicas: 1})
	createTopic(t, cl, admin.NewTopic{Name: "cg-two", Partitions: 1, Replicas: 1})
	p, err := producer.New(cl)
	require.NoError(t, err)
	for i := range 60 {
		at := then.Add(time.Duration(i/3) * time.Second)
		_, err := p.Send(t.Context(), producer.Record{Topic: "cg", Value: fmt.Append(nil, i), Timestamp: at}.To(int32(i%3)))
		require.NoError(t, err)
	}
	for range 5 {
		_, err := p.Send(t.Context(), producer.Record{Topic: "cg-two", Value: []byte("x"), Timestamp: then}.To(0))
		require.NoError(t, err)
	}
	require.NoError(t, p.Close(t.Context()))
	known := newGroupTalk(t, addr)
	awaitCoordinator(t, known.conversation)
	known.seen("cg", 3)

	a := admin.New(cl)
	for _, topic := range []string{"cg", "cg-two"} {
		altered, err := a.AlterGroupOffsets(t.Context(), "cg-simple", map[admin.TopicPartition]admin.NewOffset{{Topic: topic, Partition: 0}: {Offset: 2}})
		require.NoError(t, err)
		require.NoError(t, altered[0].Err)
	}
	for _, g := range []struct{ group, protocol string }{{"cg-empty", "classic"}, {"cg-classic", "classic"}, {"cg-consumer", "consumer"}} {
		opts := []consumer.Option{consumer.Group(g.group), consumer.Subscribe("cg"), consumer.GroupProtocol(g.protocol),
			consumer.OnReset(consumer.Earliest), consumer.ManualCommit}
		if g.protocol == "classic" {
			opts = append(opts, consumer.Assignors("range"))
		}
		c, err := consumer.New(cl, opts...)
		require.NoError(t, err)
		for read := 0; read < 60; {
			records, err := c.Poll(t.Context(), 0)
			require.NoError(t, err)
			read += len(records)
		}
		require.NoError(t, c.Commit(t.Context()))
		if g.group == "cg-empty" {
			require.NoError(t, c.Close(t.Context()))
			continue
		}
		t.Cleanup(func() { c.Close(context.Background()) })
	}
	stable := func() bool {
		groups, err := a.DescribeGroups(t.Context(), "cg-classic", "cg-consumer")
		return err == nil && groups[0].State == admin.GroupStable && groups[1].State == admin.GroupStable
	}
	eventually(t, "both groups are stable", stable)
}
