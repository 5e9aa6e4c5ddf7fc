package groupmember_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember"
)

func TestPropertiesFillTheConfig(t *testing.T) {
	of, c, err := groupmember.FromProperties(map[string]string{
		"bootstrap.servers": "127.0.0.1:9092", "group.id": "g", "group.instance.id": "i", "group.protocol": "CLASSIC", "session.timeout.ms": "10000",
		"heartbeat.interval.ms": "1000", "max.poll.interval.ms": "60000", "client.rack": "r1", "exclude.internal.topics": "false",
		"partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor, roundrobin",
	})
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:9092"}, of.Seeds)
	require.Equal(t, "g/i/classic", c.GroupID+"/"+c.InstanceID+"/"+c.Protocol.String())
	require.Equal(t, []time.Duration{10 * time.Second, time.Second, time.Minute}, []time.Duration{c.SessionTimeout, c.HeartbeatInterval, c.RebalanceTimeout})
	require.Equal(t, []groupmember.Assignor{groupmember.Sticky(), groupmember.RoundRobin()}, c.Assignors)
	require.False(t, c.ExcludeInternal)

	_, _, err = groupmember.FromProperties(map[string]string{"group.protocol": "old", "partition.assignment.strategy": "best", "sesion.timeout.ms": "1"})
	require.ErrorContains(t, err, "group.protocol=old")
	require.ErrorContains(t, err, `"best" is not range`)
	require.ErrorContains(t, err, "session.timeout.ms", "did you mean")
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	c := groupmember.DefaultConfig()
	c.Topics, c.Pattern = []string{"a", ""}, "("
	c.HeartbeatInterval = time.Hour
	c.Assignors = []groupmember.Assignor{groupmember.Range(), groupmember.Range(), nil}
	c.Protocol = groupmember.Consumer
	err := c.Validate()
	for _, part := range []string{"group.id: is required", "cannot be combined", "empty name", "no RE2 expression", "less than session.timeout.ms (45s)",
		"given twice", "nil assignor", "no meaning with group.protocol=consumer"} {
		require.ErrorContains(t, err, part)
	}
	var field *client.FieldError
	require.ErrorAs(t, err, &field)
}

func TestLintNamesWhatIsProbablyNotMeant(t *testing.T) {
	c := groupmember.DefaultConfig()
	require.Empty(t, c.Lint())
	c.Protocol, c.HeartbeatInterval, c.SessionTimeout = groupmember.Classic, 2*time.Second, 5*time.Second
	require.Len(t, c.Lint(), 3)
}

func TestOffsetWithoutEpochIsUnknownNotZero(t *testing.T) {
	require.EqualValues(t, -1, groupmember.Offset{At: 3}.Epoch())
	require.EqualValues(t, 0, groupmember.OffsetAt(3).WithEpoch(0).Epoch())
	require.EqualValues(t, -1, groupmember.OffsetAt(3).WithEpoch(-7).Epoch())
}
