package assignor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// FuzzStickyUserData feeds what other members may send to the leader.
func FuzzStickyUserData(f *testing.F) {
	f.Add(Sticky{}.UserData([]partition{{Topic: "a", Partition: 1}, {Topic: "b", Partition: 0}}, 4))
	f.Add([]byte{0, 0, 0, 1, 0, 1, 'a', 0, 0, 0, 1, 0, 0, 0, 5}) // version 0
	f.Add([]byte{127, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		owned, generation := parseStickyUserData(b)
		if generation >= 0 {
			again, same := parseStickyUserData(Sticky{}.UserData(owned, generation))
			require.ElementsMatch(t, owned, again)
			require.Equal(t, generation, same)
		} else if len(b) == 0 {
			require.Equal(t, machine.NoGeneration, generation)
		}
		_, err := Sticky{}.Assign([]topicRacks{{Name: "a", Racks: make([][]string, 2)}}, []subscription{{MemberID: "m", Topics: []string{"a"}, UserData: b}})
		require.NoError(t, err)
	})
}
