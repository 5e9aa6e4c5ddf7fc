package assignor

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
)

// oracle is one assignment of Apache Kafka 4.4.0.
type oracle struct {
	Case   string
	Round  int
	Topics map[string]struct {
		ID         string
		Partitions int32
	}
	Members []struct {
		MemberID   string
		InstanceID *string
		Topics     []string
		Current    map[string][]int32
	}
	Assignment map[string]map[string][]int32
}

func lines(t *testing.T, name string, f func(o *oracle)) {
	file, err := os.Open("testdata/" + name + ".jsonl.gz")
	require.NoError(t, err)
	defer file.Close()
	z, err := gzip.NewReader(file)
	require.NoError(t, err)
	scan := bufio.NewScanner(z)
	scan.Buffer(nil, 16<<20)
	n := 0
	for scan.Scan() {
		var o oracle
		require.NoError(t, json.Unmarshal(scan.Bytes(), &o))
		f(&o)
		n++
	}
	require.NoError(t, scan.Err())
	require.Equal(t, 484, n)
}

func (o *oracle) spec(t *testing.T) (*Spec, map[wire.UUID]string) {
	s := &Spec{Topics: make(map[wire.UUID]int32)}
	names := make(map[wire.UUID]string)
	ids := make(map[string]wire.UUID)
	for name, topic := range o.Topics {
		id, err := wire.ParseUUID(topic.ID)
		require.NoError(t, err)
		s.Topics[id], names[id], ids[name] = topic.Partitions, name, id
	}
	for _, m := range o.Members {
		member := Member{ID: m.MemberID, Instance: m.InstanceID, Current: make(Partitions)}
		for _, name := range m.Topics {
			if id, ok := ids[name]; ok {
				member.Topics = append(member.Topics, id)
			}
		}
		for name, p := range m.Current {
			if id, ok := ids[name]; ok {
				member.Current[id] = p
			}
		}
		s.Members = append(s.Members, member)
	}
	return s, names
}

func named(p Partitions, names map[wire.UUID]string) map[string][]int32 {
	all := make(map[string][]int32)
	for id, partitions := range p {
		all[names[id]] = partitions
	}
	return all
}

func TestRangeEqualsApacheKafkas(t *testing.T) {
	lines(t, "server-range", func(o *oracle) {
		s, names := o.spec(t)
		got := make(map[string]map[string][]int32)
		for id, p := range Range(s) {
			got[id] = named(p, names)
		}
		require.Equal(t, o.Assignment, got, "%s round %d", o.Case, o.Round)
	})
}

// TestUniformIsAsEvenAndMovesNoMore compares what the order of Java's hash maps does not decide.
func TestUniformIsAsEvenAndMovesNoMore(t *testing.T) {
	better := 0
	lines(t, "server-uniform", func(o *oracle) {
		s, names := o.spec(t)
		got := make(map[string]map[string][]int32)
		for id, p := range Uniform(s) {
			got[id] = named(p, names)
		}
		where := fmt.Sprintf("%s round %d", o.Case, o.Round)
		valid(t, o, got, where)
		ours, theirs := spread(o, got), spread(o, o.Assignment)
		if slices.Equal(ours, theirs) {
			require.LessOrEqual(t, moves(o, got), moves(o, o.Assignment), where)
			return
		}
		better++
		require.Less(t, squares(ours), squares(theirs), "%s: %v where Apache Kafka has %v", where, ours, theirs)
	})
	t.Logf("%d of 484 are more even than Apache Kafka's", better)
}

// valid checks that every partition that somebody reads has exactly one owner, who is subscribed to it.
func valid(t *testing.T, o *oracle, got map[string]map[string][]int32, where string) {
	owners := make(map[string]string)
	read := make(map[string]bool)
	for _, m := range o.Members {
		for _, topic := range m.Topics {
			read[topic] = true
		}
		for topic, partitions := range got[m.MemberID] {
			require.Contains(t, m.Topics, topic, where)
			for _, p := range partitions {
				require.Less(t, p, o.Topics[topic].Partitions, where)
				key := fmt.Sprint(topic, "-", p)
				require.Empty(t, owners[key], "%s: %s", where, key)
				owners[key] = m.MemberID
			}
		}
	}
	want := 0
	for topic := range read {
		want += int(o.Topics[topic].Partitions)
	}
	require.Len(t, owners, want, where)
}

func spread(o *oracle, a map[string]map[string][]int32) []int {
	var counts []int
	for _, m := range o.Members {
		n := 0
		for _, p := range a[m.MemberID] {
			n += len(p)
		}
		counts = append(counts, n)
	}
	slices.Sort(counts)
	return counts
}

func squares(counts []int) (sum int) {
	for _, n := range counts {
		sum += n * n
	}
	return sum
}

// moves counts the partitions that a member had and has no more.
func moves(o *oracle, a map[string]map[string][]int32) (n int) {
	for _, m := range o.Members {
		for topic, partitions := range m.Current {
			for _, p := range partitions {
				if p < o.Topics[topic].Partitions && !slices.Contains(a[m.MemberID][topic], p) {
					n++
				}
			}
		}
	}
	return n
}

func TestUnknownAssignorHasNoFunction(t *testing.T) {
	_, ok := Named("nonsense")
	require.False(t, ok)
	for _, name := range []string{"uniform", "range"} {
		_, ok := Named(name)
		require.True(t, ok)
	}
}

func BenchmarkUniform500Members5000Partitions(b *testing.B) {
	s := &Spec{Topics: map[wire.UUID]int32{{1}: 5000}}
	for i := range 500 {
		s.Members = append(s.Members, Member{ID: fmt.Sprint("member-", i), Topics: []wire.UUID{{1}}})
	}
	for b.Loop() {
		Uniform(s)
	}
}
