package interop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker/harness"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// oldKafkas names the older versions of Apache Kafka to test with, VERSION=FOLDER with a space between two: .ci/run old sets
// it. The run is about nothing else then.
var oldKafkas = os.Getenv("OTTLA_OLD_KAFKA")

// TestOldBrokers uses every part of the SDK with older versions of Apache Kafka, back to 2.1.
func TestOldBrokers(t *testing.T) {
	if oldKafkas == "" {
		t.Skip("only by name: .ci/run old")
	}
	for _, one := range strings.Fields(oldKafkas) {
		version, libs, _ := strings.Cut(one, "=")
		t.Run(version, func(t *testing.T) {
			broker := startOldKafka(t, version, libs)
			cl := newClient(t, broker.addr)
			for _, part := range []struct {
				name string
				test func(*testing.T, *client.Client, string)
			}{
				{"quickstart", oldExample("2.1", "quickstart")}, {"eos", oldExample("2.5", "eos", "-n", "3000")}, {"records", oldRecords},
				{"group", oldGroup}, {"transactions", oldTransactions}, {"pipe", oldPipe}, {"admin", oldAdmin},
			} {
				t.Run(part.name, func(t *testing.T) { part.test(t, cl, broker.addr) })
			}
			if t.Failed() {
				t.Logf("Apache Kafka %s said: %s", version, broker.log)
			}
		})
	}
}

// since tells whether a version of Apache Kafka, as in "2.1.1", is at least another, as in "2.8".
func since(version, first string) bool {
	number := func(s string) (n []int) {
		for _, part := range strings.Split(s, ".") {
			n = append(n, int(number(part)))
		}
		return n
	}
	return slices.Compare(number(version), number(first)) >= 0
}

// startOldKafka starts one node of a version: with ZooKeeper until 3.2, with a quorum of its own from 3.3 on, where that was
// declared fit for production.
func startOldKafka(t testing.TB, version, libs string) *process {
	t.Helper()
	oldJava := func(class string, args ...string) *exec.Cmd {
		return exec.Command("java", append([]string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + t.TempDir(),
			"-Dzookeeper.jmx.log4j.disable=true", "-cp", filepath.Join(libs, "*"), class}, args...)...)
	}
	p, err := onFreePorts(t.TempDir(), 2, func(dir string, port int) (*process, error) {
		data, addr, other := filepath.Join(dir, "data"), fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", port+1)
		settings := []string{"log.dirs=" + data, "num.partitions=1", "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4",
			"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=4",
			"group.initial.rebalance.delay.ms=0"}
		conf := filepath.Join(dir, "server.properties")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		if since(version, "3.3") {
			settings = append(settings, "process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@"+other,
				"listeners=PLAINTEXT://"+addr+",CONTROLLER://"+other, "controller.listener.names=CONTROLLER",
				"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT")
			writeFile(t, dir, "server.properties", strings.Join(settings, "\n"))
			r := run(t, oldJava("kafka.tools.StorageTool", "format", "-t", "ottla-interop-oldbrokA", "-c", conf), "")
			require.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
		} else {
			settings = append(settings, "broker.id=1", "listeners=PLAINTEXT://"+addr, "zookeeper.connect="+other,
				"zookeeper.connection.timeout.ms=200000", "zookeeper.session.timeout.ms=60000")
			writeFile(t, dir, "server.properties", strings.Join(settings, "\n"))
			writeFile(t, dir, "zookeeper.properties", fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxSessionTimeout=60000\n",
				filepath.Join(dir, "zookeeper"), port+1))
			zookeeper, err := launch(oldJava("org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zookeeper.properties")))
			require.NoError(t, err)
			t.Cleanup(zookeeper.kill)
		}
		p, err := launch(oldJava("kafka.Kafka", conf))
		require.NoError(t, err)
		p.addr = addr
		t.Cleanup(p.kill) // before ZooKeeper
		return p, p.awaitBroker("", addr)
	})
	require.NoError(t, err)
	return p
}

// oldVersion is that of a subtest.
func oldVersion(t *testing.T) string { return strings.Split(t.Name(), "/")[1] }

// oldExample runs one of the examples, which does not know how old the broker is, but says so if it has to be newer.
func oldExample(first, name string, args ...string) func(*testing.T, *client.Client, string) {
	return func(t *testing.T, _ *client.Client, addr string) {
		bin := filepath.Join(t.TempDir(), name)
		require.NoError(t, build(bin, "./examples/"+name))
		cmd := exec.Command(bin, append([]string{"-bootstrap", addr}, args...)...)
		cmd.Dir = root
		r := run(t, cmd, "")
		all := strings.Split(strings.TrimSpace(r.stdout+r.stderr), "\n")
		t.Log(all[len(all)-1])
		if since(oldVersion(t), first) {
			require.Zero(t, r.code, "stdout: %s\nstderr: %s", r.stdout, r.stderr)
		} else {
			require.NotZero(t, r.code)
			require.Regexp(t, `brokers from 2\.\d on|brokers 2\.\d`, r.stderr)
		}
	}
}

// oldTopic makes a topic as brokers of every version let one: with both numbers named.
func oldTopic(t *testing.T, cl *client.Client, name string) string {
	t.Helper()
	createTopic(t, cl, admin.NewTopic{Name: name, Partitions: fleetPartitions, Replicas: 1})
	return name
}

// oldRecords takes records with each codec, headers and null through producer and consumer.
func oldRecords(t *testing.T, cl *client.Client, _ string) {
	all := shapes()
	for _, codec := range codecs {
		topic := "old-" + codec.String()
		createTopic(t, cl, admin.NewTopic{Name: topic, Partitions: 1, Replicas: 1, Configs: map[string]string{"max.message.bytes": "8000000"}})
		p, err := producer.New(cl, producer.Compression(codec), producer.MaxRequestSize(4<<20))
		require.NoError(t, err)
		at := map[int64]string{}
		for name, r := range all {
			r.Topic = topic
			ack, err := p.Send(t.Context(), r)
			require.NoError(t, err, "%v %s", codec, name)
			at[ack.Offset] = name
		}
		require.NoError(t, p.Close(t.Context()))
		for _, r := range readAll(t, cl, topic, 1) {
			requireSameRecord(t, at[r.Offset], all[at[r.Offset]], r)
		}
	}
}

// oldGroup has two members share a topic, one of them leave, and a third begin where both have stopped.
func oldGroup(t *testing.T, cl *client.Client, addr string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := fleet{addr, "old-group", oldTopic(t, cl, "old-group"), "cooperative-sticky", 10 * time.Second}
	var crew []*member
	for _, name := range []string{"ottla", "ottla-2"} {
		crew = append(crew, joinAs(t, name, f, "classic"))
	}
	awaitOwners(ctx, t, cl, f, crew)
	written := writeNumbered(ctx, t, cl, f.topic, "first", 240)
	awaitRead(ctx, t, crew, written)
	require.NoError(t, crew[0].leave())
	awaitOwners(ctx, t, cl, f, crew[1:])
	written = append(written, writeNumbered(ctx, t, cl, f.topic, "second", 240)...)
	awaitRead(ctx, t, crew, written)
	awaitCommitted(ctx, t, cl, f.group)
	require.NoError(t, crew[1].leave())
	c, err := consumer.New(cl, consumer.Group(f.group), consumer.Subscribe(f.topic), consumer.OnReset(consumer.Fail)) // by whatever protocol there is
	require.NoError(t, err)
	defer c.Close(context.Background())
	third := writeNumbered(ctx, t, cl, f.topic, "third", 24)
	var got []string
	for len(got) < len(third) {
		records, err := c.Poll(ctx, 0)
		require.NoError(t, err)
		for _, r := range records {
			got = append(got, string(r.Value))
		}
	}
	require.ElementsMatch(t, third, got)
}

// oldTransactions commits, aborts and fences.
func oldTransactions(t *testing.T, cl *client.Client, _ string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	topic := oldTopic(t, cl, "old-txn")
	s, err := txn.New(ctx, cl, "old-txn")
	require.NoError(t, err)
	send := func(s *txn.Session, value string, then error) error {
		return s.Do(ctx, func(ctx context.Context, tx *txn.Tx) error {
			for p := range int32(3) {
				if _, err := tx.Send(ctx, producer.Record{Topic: topic, Value: []byte(value)}.To(p)); err != nil {
					return err
				}
			}
			return then
		})
	}
	require.NoError(t, send(s, "one", nil))
	no := errors.New("no")
	require.ErrorIs(t, send(s, "two", no), no)
	require.NoError(t, send(s, "three", nil))
	next, err := txn.New(ctx, cl, "old-txn")
	require.NoError(t, err)
	require.ErrorIs(t, send(s, "four", nil), txn.ErrFenced)
	require.NoError(t, send(next, "five", nil))
	require.NoError(t, next.Close(ctx))

	c, err := consumer.New(cl, consumer.Assign(topic, 0, 1, 2), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted))
	require.NoError(t, err)
	defer c.Close(ctx)
	got := map[int32][]string{}
	for n := 0; n < 9; {
		records, err := c.Poll(ctx, 0)
		require.NoError(t, err)
		for _, r := range records {
			got[r.Partition] = append(got[r.Partition], string(r.Value))
			n++
		}
	}
	for p := range int32(3) {
		require.Equal(t, []string{"one", "three", "five"}, got[p])
	}
}

// oldPipe copies a topic exactly once, by a worker that is killed and the one after it. Before 2.5 brokers do not check the
// generation of who commits (KIP-447): the pipe says so, and ends before its first record.
func oldPipe(t *testing.T, cl *client.Client, addr string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	in, out := oldTopic(t, cl, "old-in"), oldTopic(t, cl, "old-out")
	for turn := range 2 {
		writeNumbered(ctx, t, cl, in, fmt.Sprint("turn-", turn), 600)
		j := job{Kind: "ottla", Addr: addr, Group: "old-pipe", In: in, Out: out, Name: "old-pipe", Protocol: "classic"}
		worker, err := launch(goWorker(j))
		require.NoError(t, err)
		t.Cleanup(worker.kill)
		if since(oldVersion(t), "2.5") {
			harness.CheckExactlyOnce(t, harness.Seeds(addr), in, out, harness.Group(j.Group), harness.Within(patience))
			worker.kill() // the next one takes over
			continue
		}
		select {
		case <-worker.over:
			require.Contains(t, worker.log.String(), "KIP-447")
			require.Contains(t, worker.log.String(), "brokers from 2.5 on")
			require.NotContains(t, worker.log.String(), "aborted", "nothing was tried")
		case <-ctx.Done():
			require.Fail(t, "the pipe goes on and on", "%s", worker.log)
		}
	}
}

// oldAdmin asks for everything that a broker of the version knows; what it does not know has an error that says so.
func oldAdmin(t *testing.T, cl *client.Client, _ string) {
	version := oldVersion(t)
	ctx, a := t.Context(), admin.New(cl)
	topic := oldTopic(t, cl, "old-admin")
	tp := admin.TopicPartition{Topic: topic, Partition: 0}
	writeNumbered(ctx, t, cl, topic, "x", 2*fleetPartitions)

	can := func(what, first string, do func() error) {
		t.Helper()
		err := do()
		if since(version, first) {
			require.NoError(t, err, what)
		} else {
			require.ErrorIs(t, err, client.ErrUnsupportedVersion, "%s, which is there from %s on", what, first)
		}
	}
	can("topics", "2.1", func() error {
		topics, err := a.ListTopics(ctx)
		require.True(t, slices.ContainsFunc(topics, func(x admin.Topic) bool { return x.Name == topic && len(x.Partitions) == fleetPartitions }))
		return err
	})
	can("the cluster", "2.1", func() error {
		c, err := a.DescribeCluster(ctx)
		require.Len(t, c.Brokers, 1)
		return err
	})
	can("versions", "2.1", func() error { _, err := a.APIVersions(ctx, 1); return err })
	can("configs", "2.1", func() error {
		rows, err := a.DescribeConfigs(ctx, admin.TopicConfigs(topic), admin.BrokerConfigs(1))
		require.NotEmpty(t, rows[0].Entries)
		return err
	})
	can("changing configs", "2.3", func() error {
		_, err := a.AlterConfigs(ctx, admin.ConfigChange{Resource: admin.TopicConfigs(topic), Name: "retention.ms", Value: "86400000"})
		return err
	})
	can("offsets", "2.1", func() error {
		offsets, err := a.ListOffsets(ctx, admin.Latest, tp)
		require.EqualValues(t, 2, offsets[0].Offset)
		return err
	})
	can("deleting records", "2.1", func() error { _, err := a.DeleteRecords(ctx, map[admin.TopicPartition]int64{tp: 1}); return err })
	can("more partitions", "2.1", func() error {
		_, err := a.CreatePartitions(ctx, admin.MorePartitions{Topic: topic, Total: fleetPartitions + 1})
		return err
	})
	can("a group's offsets", "2.1", func() error {
		_, err := a.AlterGroupOffsets(ctx, "old-admin", map[admin.TopicPartition]admin.NewOffset{tp: {Offset: 1}})
		return err
	})
	can("listing groups", "2.1", func() error {
		groups, err := a.ListGroups(ctx, admin.GroupFilter{})
		require.True(t, slices.ContainsFunc(groups, func(g admin.ListedGroup) bool { return g.ID == "old-admin" }))
		return err
	})
	can("groups", "2.1", func() error { _, err := a.DescribeGroups(ctx, "old-admin"); return err })
	can("lag", "2.1", func() error {
		lag, err := a.Lag(ctx, "old-admin")
		require.EqualValues(t, 1, lag[0].Partitions[0].Lag)
		return err
	})
	can("resetting offsets", "2.1", func() error { _, err := a.ResetGroupOffsets(ctx, "old-admin", admin.ResetToEarliest, tp); return err })
	can("forgetting offsets", "2.4", func() error { _, err := a.DeleteGroupOffsets(ctx, "old-admin", tp); return err })
	can("deleting groups", "2.1", func() error {
		_, err := a.AlterGroupOffsets(ctx, "old-gone", map[admin.TopicPartition]admin.NewOffset{tp: {Offset: 1}})
		require.NoError(t, err)
		_, err = a.DeleteGroups(ctx, "old-gone")
		return err
	})
	can("fencing producers", "2.1", func() error { _, err := a.FenceProducers(ctx, "old-fenced"); return err })
	can("producers", "2.8", func() error { _, err := a.DescribeProducers(ctx, tp); return err })
	can("transactions", "3.0", func() error { _, err := a.ListTransactions(ctx, admin.TransactionFilter{}); return err })
	can("one transaction", "3.0", func() error { _, err := a.DescribeTransactions(ctx, "old-fenced"); return err })
	can("deleting topics", "2.1", func() error { _, err := a.DeleteTopics(ctx, topic); return err })
	t.Logf("cluster id %s", cmp.Or(cl.Topology().ClusterID, "none"))
}
