package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// broker is a broker in this process that the commands of a test reach by OTTLA_BOOTSTRAP.
type broker struct {
	*fakebroker.Cluster
	cl  *client.Client
	adm *admin.Admin
}

func startBroker(t *testing.T, opts ...fakebroker.Option) broker {
	t.Helper()
	k := fakebroker.Start(t, append([]fakebroker.Option{fakebroker.Listen("127.0.0.1:0"), fakebroker.Config("group.initial.rebalance.delay.ms", "0")}, opts...)...)
	t.Setenv("OTTLA_BOOTSTRAP", strings.Join(k.Addrs(), ","))
	cl, err := client.New(client.Seeds(k.Addrs()...), client.ClientID("shop"))
	require.NoError(t, err)
	t.Cleanup(func() { cl.Close(context.WithoutCancel(t.Context())) })
	return broker{k, cl, admin.New(cl)}
}

// send writes records to partition 0 of a topic, a minute apart.
func (b broker) send(t *testing.T, topic string, from time.Time, values ...string) {
	t.Helper()
	p, err := producer.New(b.cl)
	require.NoError(t, err)
	defer p.Close(t.Context())
	for i, v := range values {
		_, err := p.Send(t.Context(), producer.Record{Topic: topic, Value: []byte(v), Timestamp: from.Add(time.Duration(i) * time.Minute)}.To(0))
		require.NoError(t, err)
	}
}

// commit commits an offset of partition 0.
func (b broker) commit(t *testing.T, group, topic string, offset int64) {
	t.Helper()
	_, err := b.adm.AlterGroupOffsets(t.Context(), group, map[admin.TopicPartition]admin.NewOffset{{Topic: topic}: {Offset: offset}})
	require.NoError(t, err)
}

// join makes a static member that all partitions named are assigned to.
func (b broker) join(t *testing.T, group, instance, topic string, partitions ...int32) {
	t.Helper()
	to := client.Coordinator(client.GroupCoordinator, group)
	subscription, err := (&message.ConsumerProtocolSubscription{Topics: []string{topic}, GenerationId: -1}).AppendTo([]byte{0, 1}, 1)
	require.NoError(t, err)
	join := message.NewJoinGroupRequest()
	join.GroupId, join.GroupInstanceId, join.ProtocolType, join.SessionTimeoutMs, join.RebalanceTimeoutMs = group, &instance, "consumer", 45_000, 60_000
	join.Protocols = []message.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription}}
	resp, err := b.cl.Request(t.Context(), to, join)
	if errors.Is(err, errcode.MemberIdRequired) {
		join.MemberId = resp.(*message.JoinGroupResponse).MemberId
		resp, err = b.cl.Request(t.Context(), to, join)
	}
	require.NoError(t, err)
	joined := resp.(*message.JoinGroupResponse)
	assignment, err := (&message.ConsumerProtocolAssignment{AssignedPartitions: []message.ConsumerProtocolAssignmentTopicPartition{
		{Topic: topic, Partitions: partitions}}}).AppendTo([]byte{0, 1}, 1)
	require.NoError(t, err)
	sync := message.NewSyncGroupRequest()
	sync.GroupId, sync.GroupInstanceId, sync.MemberId, sync.GenerationId = group, &instance, joined.MemberId, joined.GenerationId
	sync.ProtocolType, sync.ProtocolName = new("consumer"), new("range")
	sync.Assignments = []message.SyncGroupRequestAssignment{{MemberId: joined.MemberId, Assignment: assignment}}
	_, err = b.cl.Request(t.Context(), to, sync)
	require.NoError(t, err)
}

// typed runs one command line with something on stdin.
func typed(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, args, streams{strings.NewReader(stdin), &out, &errs})
	return code, out.String(), errs.String()
}

// succeeds runs one that must end with 0 and returns what it printed.
func succeeds(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := typed(t, "", args...)
	require.Zero(t, code, "%v: %s", args, errs)
	return out
}

// fails runs one that must not, and returns what it said.
func fails(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out, errs := typed(t, "", args...)
	require.Equal(t, want, code, "%v: %s%s", args, out, errs)
	require.True(t, strings.HasPrefix(errs, "ottla: "), errs)
	return errs
}

var (
	varyingID   = regexp.MustCompile(`(?m)(^|[^A-Za-z0-9_-])[A-Za-z0-9_-]{22}($|[^A-Za-z0-9_-])`)
	varyingPort = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	varyingUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// golden compares an output with its file; ids and ports that differ from run to run stand as words of their length there.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = varyingID.ReplaceAllString(got, "${1}ID.ID.ID.ID.ID.ID.ID.I${2}")
	got = varyingUUID.ReplaceAllString(got, "UUID.UUID.UUID.UUID.UUID.UUID.UUID.U")
	got = varyingPort.ReplaceAllString(got, "127.0.0.1:PORT")
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "UPDATE_GOLDEN=1 go test writes the files anew")
}

func TestNoBrokerEndsWithThreeAndSaysWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	held, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer held.Close()
	addr := held.LocalAddr().String() // nobody listens there, and nobody else can while the connection has it
	for _, args := range [][]string{{"topics", "list"}, {"groups", "lag", "g"}, {"consume", "orders"}, {"produce", "orders"}} {
		errs := fails(t, exitConnect, append(args, "-b", addr, "-X", "default.api.timeout.ms=250", "-X", "reconnect.backoff.ms=5")...)
		require.Contains(t, errs, "cannot connect to "+addr)
		require.Contains(t, errs, "refused")
		require.Contains(t, errs, "-b HOST:PORT")
	}
}

func TestPropertiesComeFromAFileAndTheCommandLine(t *testing.T) {
	k := startBroker(t, fakebroker.Topic("orders", 1), fakebroker.User("ann", "secret"))
	file := filepath.Join(t.TempDir(), "client.properties")
	require.NoError(t, os.WriteFile(file, []byte("bootstrap.servers="+strings.Join(k.Addrs(), ",")+"\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"+
		"sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username=\"ann\" password=\"secret\";\nlinger.ms=0\ngroup.id=g\n"), 0o600))
	t.Setenv("OTTLA_BOOTSTRAP", "")
	require.Contains(t, succeeds(t, "topics", "list", "--command-config", file), "orders")

	errs := fails(t, exitConnect, "topics", "list", "--command-config", file, "-X",
		`sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="wrong";`)
	require.Contains(t, errs, "Authentication failed")
	require.NotContains(t, errs, "wrong\"")
	require.Contains(t, fails(t, exitUsage, "topics", "list", "-X", "boostrap.servers=x"), "did you mean bootstrap.servers?")
	require.Contains(t, fails(t, exitUsage, "topics", "list", "--command-config", file, "-X", "linger.msx=1"), "ottla: properties are from "+file+" and -X")
	require.Contains(t, fails(t, exitUsage, "topics", "list", "--command-config", file+".missing"), "no such file")
}
