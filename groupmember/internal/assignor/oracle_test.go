package assignor

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// oracleLine is one assignment that Apache Kafka 4.4.0's own classes made.
type oracleLine struct {
	Case   string `json:"case"`
	Round  int    `json:"round"`
	Topics map[string]struct {
		Partitions int        `json:"partitions"`
		Racks      [][]string `json:"racks"`
	} `json:"topics"`
	Members []struct {
		MemberID        string       `json:"memberId"`
		GroupInstanceID *string      `json:"groupInstanceId"`
		RackID          *string      `json:"rackId"`
		Generation      int32        `json:"generation"`
		Topics          []string     `json:"topics"`
		Owned           []oraclePart `json:"owned"`
		UserData        *string      `json:"userData"`
		Subscription    string       `json:"subscription"`
	} `json:"members"`
	Assignment    map[string][]oraclePart `json:"assignment"`
	AssignmentHex map[string]string       `json:"assignmentHex"`
	Exception     string                  `json:"exception"`
}

type oraclePart partition

func (p *oraclePart) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&p.Topic, &p.Partition})
}

func parts(list []oraclePart) []partition {
	out := make([]partition, len(list))
	for i, p := range list {
		out[i] = partition(p)
	}
	slices.SortFunc(out, machine.ComparePartitions)
	return out
}

func (l *oracleLine) input(t *testing.T) (topics []topicRacks, members []subscription) {
	for name, info := range l.Topics {
		racks := info.Racks
		if racks == nil {
			racks = make([][]string, info.Partitions)
		}
		require.Len(t, racks, info.Partitions)
		topics = append(topics, topicRacks{Name: name, Racks: racks})
	}
	for _, m := range l.Members {
		raw, err := hex.DecodeString(m.Subscription)
		require.NoError(t, err)
		s, err := machine.ParseSubscription(raw)
		require.NoError(t, err)
		s.MemberID = m.MemberID
		if m.GroupInstanceID != nil {
			s.InstanceID = *m.GroupInstanceID
		}
		members = append(members, s)
	}
	return topics, members
}

func readOracle(t *testing.T, name string) []oracleLine {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".jsonl.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var out []oracleLine
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l oracleLine
		require.NoError(t, json.Unmarshal(lines.Bytes(), &l))
		out = append(out, l)
	}
	require.NoError(t, lines.Err())
	return out
}

func TestRangeAndRoundRobinEqualKafka(t *testing.T) {
	for _, a := range []machine.Assignor{Range{}, RoundRobin{}} {
		t.Run(a.Name(), func(t *testing.T) {
			lines := readOracle(t, a.Name())
			require.Len(t, lines, 308)
			bad := 0
			for _, l := range lines {
				topics, members := l.input(t)
				got, err := a.Assign(topics, members)
				require.NoError(t, err)
				if l.Exception != "" {
					continue // it is enough not to fail
				}
				for id, want := range l.Assignment {
					have := slices.Clone(got[id])
					slices.SortFunc(have, machine.ComparePartitions)
					if !slices.Equal(parts(want), have) && bad < 5 {
						bad++
						t.Errorf("%s round %d: %s has %v, Kafka gives %v", l.Case, l.Round, id, have, parts(want))
					}
				}
				for id, want := range l.AssignmentHex {
					require.Equal(t, want, hex.EncodeToString(machine.AppendAssignment(nil, 3, got[id], nil)), l.Case)
				}
			}
		})
	}
}

func TestTextbook(t *testing.T) {
	topics := []topicRacks{{Name: "t", Racks: make([][]string, 10)}}
	var members []subscription
	for _, id := range []string{"c", "a", "b"} {
		members = append(members, subscription{MemberID: id, Topics: []string{"t"}, Generation: -1})
	}
	numbers := func(list []partition) (out []int32) {
		for _, p := range list {
			out = append(out, p.Partition)
		}
		return out
	}
	got, err := Range{}.Assign(topics, members)
	require.NoError(t, err)
	require.Equal(t, []int32{0, 1, 2, 3}, numbers(got["a"]))
	require.Equal(t, []int32{4, 5, 6}, numbers(got["b"]))
	require.Equal(t, []int32{7, 8, 9}, numbers(got["c"]))
	got, err = RoundRobin{}.Assign(topics, members)
	require.NoError(t, err)
	require.Equal(t, []int32{0, 3, 6, 9}, numbers(got["a"]))
	require.Equal(t, []int32{1, 4, 7}, numbers(got["b"]))
	require.Equal(t, []int32{2, 5, 8}, numbers(got["c"]))
	require.True(t, strings.HasPrefix(CooperativeSticky{}.Name(), "cooperative"))
}
