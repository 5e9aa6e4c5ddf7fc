package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
)

// TestAssignedConsumersKeepAGroupsOffsets has a consumer that is assigned its partition go on where its group.id has been, and
// commit for it as one that is no member, as Kafka's consumers with assign do.
func TestAssignedConsumersKeepAGroupsOffsets(t *testing.T) {
	t.Parallel()
	ottla := startGroups(t, "--data", t.TempDir())
	for broker, addr := range map[string]string{"ottla": ottla.addr, "kafka": kafkaAddr} {
		t.Run(broker, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cl := newClient(t, addr, client.ClientID("assigned"))
			createTopic(t, cl, admin.NewTopic{Name: "assigned", Partitions: 1, Replicas: 1})
			known := newGroupTalk(t, addr)
			awaitCoordinator(t, known.conversation)
			known.seen("assigned", 1)
			p, err := producer.New(cl)
			require.NoError(t, err)
			for i := range 20 {
				_, err := p.Send(ctx, producer.Record{Topic: "assigned", Value: fmt.Append(nil, i)})
				require.NoError(t, err)
			}
			require.NoError(t, p.Close(ctx))
			commands := startTools(t)
			for _, protocol := range []string{"classic", "consumer"} {
				t.Run(protocol, func(t *testing.T) { goesOn(ctx, t, cl, commands, addr, protocol) })
			}
		})
	}
}

func goesOn(ctx context.Context, t *testing.T, cl *client.Client, commands *tools, addr, protocol string) {
	group := "assigned-" + protocol
	assigned := func() *consumer.Consumer {
		c, err := consumer.New(cl, consumer.Group(group), consumer.Assign("assigned", 0), consumer.OnReset(consumer.Earliest), consumer.ManualCommit)
		require.NoError(t, err)
		return c
	}
	next := func(c *consumer.Consumer, first, n int) {
		t.Helper()
		for got := 0; got < n; {
			records, err := c.Poll(ctx, n-got)
			require.NoError(t, err)
			for _, r := range records {
				require.EqualValues(t, first+got, r.Offset)
				got++
			}
		}
	}
	c := assigned()
	next(c, 0, 3)
	require.NoError(t, c.Commit(ctx))
	require.NoError(t, c.Close(ctx))
	r, err := commands.run(groupCommand, "--bootstrap-server", addr, "--describe", "--group", group)
	require.NoError(t, err)
	require.Contains(t, r.stderr+r.stdout, "has no active members")
	require.Regexp(t, group+` +assigned +0 +3 +20 +17 +-`, r.stdout)

	// Kafka's consumer is where ours was, and ours goes on behind it.
	read := java(t, "", consoleReader, "--bootstrap-server", addr, "--topic", "assigned", "--group", group, "--max-messages", "5",
		"--command-property", "group.protocol="+protocol, "--command-property", "max.poll.records=1")
	require.Equal(t, "3\n4\n5\n6\n7\n", read)
	c = assigned()
	defer c.Close(context.Background())
	next(c, 8, 4)

	// A group with a member takes commits from nobody else.
	f := fleet{addr: addr, group: group, topic: "assigned", assignor: "range", session: 20 * time.Second}
	m := joinAs(t, "member", f, protocol)
	a := admin.New(cl)
	eventually(t, "the group has a member", func() bool {
		groups, err := a.DescribeGroups(ctx, group)
		return err == nil && groups[0].State == admin.GroupStable
	})
	require.ErrorIs(t, c.Commit(ctx), consumer.ErrGroupInUse)
	require.NoError(t, m.leave())
}
