package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
)

// groupSettings make groups of the consumer protocol quick, on Apache Kafka and on ottla alike: a member hears of a rebalance
// every half second. Assignments are made at once, so that an answer does not depend on how much time has passed, and members
// are missed after 45 s, which is the default; groups that are about either say so themselves, see lively.
var groupSettings = []string{"group.initial.rebalance.delay.ms=0", "group.consumer.min.session.timeout.ms=6000",
	"group.consumer.min.heartbeat.interval.ms=500", "group.consumer.heartbeat.interval.ms=500",
	"group.consumer.assignment.interval.ms=0", "group.consumer.assignor.offload.enable=false"}

// lively has a group of the consumer protocol make its assignments as by default, and miss its members after so long.
func lively(t testing.TB, cl *client.Client, group string, session time.Duration) {
	t.Helper()
	of := admin.Resource{Type: admin.GroupResource, Name: group}
	_, err := admin.New(cl).AlterConfigs(t.Context(),
		admin.ConfigChange{Resource: of, Name: "consumer.session.timeout.ms", Value: fmt.Sprint(session.Milliseconds())},
		admin.ConfigChange{Resource: of, Name: "consumer.assignment.interval.ms", Value: "1000"},
		admin.ConfigChange{Resource: of, Name: "consumer.assignor.offload.enable", Value: "true"})
	require.NoError(t, err)
}

// startGroups runs ottla serve with them.
func startGroups(t testing.TB, args ...string) *process {
	t.Helper()
	for _, setting := range slices.Concat(groupSettings, transactionSettings) {
		args = append(args, "--config", setting)
	}
	return startOttla(t, append(args, "--config", "offsets.topic.num.partitions=4")...)
}

// recruit is a member of a fleet and the protocol that it speaks.
type recruit struct{ name, protocol string }

func recruits(protocol string, names ...string) (list []recruit) {
	for _, name := range names {
		list = append(list, recruit{name, protocol})
	}
	return list
}

// fleets are groups of members that different people wrote. The first to be named joins first, so that it leads a classic
// group; the one named as victim is killed in the middle.
var fleets = map[string]struct {
	assignor string
	members  []recruit
	victim   string
}{
	"range": {"range",
		recruits("classic", "ottla", "java", "confluent", "kafka-python", "franz-go", "sarama"), "kafka-python"},
	"cooperative-sticky": {"cooperative-sticky",
		recruits("classic", "confluent", "ottla", "java", "kafka-python", "franz-go", "sarama"), "confluent"},
	"consumer protocol": {"",
		recruits("consumer", "ottla", "java", "verifiable", "confluent", "franz-go"), "confluent"},
	"both protocols": {"range",
		append(recruits("classic", "sarama", "kafka-python", "franz-go"), recruits("consumer", "java", "ottla")...), "java"},
}

// TestFleets lets members of many makes share a topic on ottla and on Apache Kafka: all get a part, each partition has one
// owner, one of them dies, the others take over, and every record is read.
func TestFleets(t *testing.T) {
	t.Parallel()
	ottla := startGroups(t, "--data", t.TempDir())
	for name, f := range fleets {
		for broker, addr := range map[string]string{"ottla": ottla.addr, "kafka": kafkaAddr} {
			t.Run(name+"/"+broker, func(t *testing.T) {
				t.Parallel()
				topic := "fleet-" + strings.ReplaceAll(name, " ", "-")
				sail(t, fleet{addr, topic + "-group", topic, f.assignor, 10 * time.Second}, f.members, f.victim)
			})
		}
	}
}

// fleetPartitions can be shared evenly by two, three, four and six.
const fleetPartitions = 12

func sail(t *testing.T, f fleet, list []recruit, victim string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cl := newClient(t, f.addr, client.ClientID("harbour"))
	createTopic(t, cl, admin.NewTopic{Name: f.topic, Partitions: fleetPartitions, Replicas: 1})
	lively(t, cl, f.group, f.session)
	began := time.Now()
	took := func(what string) { t.Logf("%4.1f s %s", time.Since(began).Seconds(), what) }

	crew := []*member{joiners[list[0].name](t, f, list[0].protocol)}
	awaitOwners(ctx, t, cl, f, crew)
	took("the first member has all")
	written := writeNumbered(ctx, t, cl, f.topic, "alone", 240)
	for _, r := range list[1:] {
		crew = append(crew, joiners[r.name](t, f, r.protocol))
	}
	awaitOwners(ctx, t, cl, f, crew)
	took("all have their part")
	written = append(written, writeNumbered(ctx, t, cl, f.topic, "together", 600)...)
	awaitRead(ctx, t, crew, written)
	took("all is read")

	at := slices.IndexFunc(crew, func(m *member) bool { return m.name == victim })
	crew[at].kill()
	survivors := slices.Delete(slices.Clone(crew), at, at+1)
	written = append(written, writeNumbered(ctx, t, cl, f.topic, "orphaned", 240)...)
	awaitOwners(ctx, t, cl, f, survivors)
	took(victim + " is out, the others have its part")
	written = append(written, writeNumbered(ctx, t, cl, f.topic, "again", 240)...)
	twice := awaitRead(ctx, t, crew, written)
	took("all is read")

	awaitCommitted(ctx, t, cl, f.group)
	took("all is committed")
	for _, m := range survivors {
		require.NoError(t, m.leave(), m.name)
	}
	took("all have left")
	lag, err := admin.New(cl).Lag(ctx, f.group)
	require.NoError(t, err)
	require.NoError(t, lag[0].Err)
	require.Empty(t, lag[0].Group.Members)
	t.Logf("%d members, %d records, %d of them read more than once", len(crew), len(written), twice)
}

// writeNumbered writes so many records over all partitions and returns their values.
func writeNumbered(ctx context.Context, t testing.TB, cl *client.Client, topic, phase string, count int) (values []string) {
	t.Helper()
	p, err := producer.New(cl)
	require.NoError(t, err)
	defer p.Close(ctx)
	failed := make(chan error, count)
	for i := range count {
		value := fmt.Sprintf("%s-%d", phase, i)
		values = append(values, value)
		r := producer.Record{Topic: topic, Value: []byte(value)}
		require.NoError(t, p.Submit(ctx, r.To(int32(i%fleetPartitions)), func(_ producer.Ack, err error) { failed <- err }))
	}
	require.NoError(t, p.Flush(ctx))
	for range count {
		require.NoError(t, <-failed)
	}
	return values
}

// awaitOwners waits until coordinator and members agree: these members and no others, each partition with one of them.
func awaitOwners(ctx context.Context, t testing.TB, cl *client.Client, f fleet, crew []*member) {
	t.Helper()
	a := admin.New(cl)
	for {
		groups, err := a.DescribeGroups(ctx, f.group)
		var trouble string
		if err == nil {
			trouble = disagreement(groups[0], f, crew)
		} else {
			trouble = err.Error()
		}
		if trouble == "" {
			return
		}
		select {
		case <-ctx.Done():
			require.Fail(t, "the group does not settle", "%s\ngroup: %+v", trouble, groups)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// disagreement is what keeps a group from being settled, empty if nothing does.
func disagreement(g admin.Group, f fleet, crew []*member) string {
	if g.Err != nil {
		return g.Err.Error()
	}
	if g.State != admin.GroupStable || len(g.Members) != len(crew) {
		return fmt.Sprintf("it is %s with %d members instead of %d", g.State, len(g.Members), len(crew))
	}
	owner := map[int32]string{}
	assigned := map[string][]int32{}
	for _, m := range g.Members {
		for _, p := range m.Assigned {
			if other, taken := owner[p.Partition]; taken {
				return fmt.Sprintf("%s and %s both own %s", other, m.ClientID, p)
			}
			owner[p.Partition] = m.ClientID
			assigned[m.ClientID] = append(assigned[m.ClientID], p.Partition)
		}
	}
	if len(owner) != fleetPartitions {
		return fmt.Sprintf("only %v have owners", slices.Sorted(maps.Keys(owner)))
	}
	for _, m := range crew {
		part := assigned[m.name]
		slices.Sort(part)
		if len(part) == 0 {
			return m.name + " has nothing"
		}
		if own := m.share.owns(); !m.silent && !slices.Equal(part, own) {
			return fmt.Sprintf("%s owns %v and says that it owns %v", m.name, part, own)
		}
	}
	return ""
}

// awaitRead waits until every record was read by somebody, and tells how many were read more than once.
func awaitRead(ctx context.Context, t testing.TB, crew []*member, written []string) (twice int) {
	t.Helper()
	for {
		times := map[string]int{}
		for _, m := range crew {
			m.share.mu.Lock()
			for value, n := range m.share.read {
				times[value] += n
			}
			m.share.mu.Unlock()
		}
		missing := slices.DeleteFunc(slices.Clone(written), func(v string) bool { return times[v] > 0 })
		if len(missing) == 0 {
			for _, n := range times {
				twice += min(n-1, 1)
			}
			return twice
		}
		select {
		case <-ctx.Done():
			require.Fail(t, "records are not read", "%d of %d: %.300v", len(missing), len(written), missing)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
