package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// FuzzProtocol feeds what other members may have written to both readers; what they read is written and read again.
func FuzzProtocol(f *testing.F) {
	f.Add(machine.AppendSubscription(nil, machine.Subscription{Topics: []string{"a", "b"}, Owned: []machine.TopicPartition{{Topic: "a", Partition: 3}}, Generation: 7, Rack: "r", UserData: []byte{1}}))
	f.Add(machine.AppendAssignment(nil, 3, []machine.TopicPartition{{Topic: "a", Partition: 1}, {Topic: "a", Partition: 0}}, nil))
	f.Add([]byte{0, 99})
	f.Add([]byte{255, 255, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := machine.ParseSubscription(b); err == nil {
			again, err := machine.ParseSubscription(machine.AppendSubscription(nil, s))
			require.NoError(t, err)
			require.ElementsMatch(t, s.Owned, again.Owned)
			require.Equal(t, s.Generation, again.Generation)
		}
		if list, err := machine.ParseAssignment(b); err == nil {
			again, err := machine.ParseAssignment(machine.AppendAssignment(nil, 3, list, nil))
			require.NoError(t, err)
			require.Equal(t, list, again)
		}
	})
}
