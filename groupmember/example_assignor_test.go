package groupmember_test

import (
	"fmt"
	"log"

	"github.com/ottla-kafka/ottla/groupmember"
)

// byMember gives everything to the member with the smallest id, the others wait for its end.
type byMember struct{}

func (byMember) Name() string      { return "one-works" }
func (byMember) Cooperative() bool { return false }

func (byMember) UserData([]groupmember.TopicPartition, int32) []byte { return nil }

func (byMember) Assign(topics []groupmember.TopicRacks, members []groupmember.Subscription) (map[string][]groupmember.TopicPartition, error) {
	first := members[0].MemberID // members come by id
	out := map[string][]groupmember.TopicPartition{}
	for _, t := range topics {
		for p := range t.Racks {
			out[first] = append(out[first], groupmember.TopicPartition{Topic: t.Name, Partition: int32(p)})
		}
	}
	return out, nil
}

// An assignor of one's own: all members of the group need it.
func ExampleAssignors() {
	cl, ctx, end := begin("orders", 3)
	defer end()
	m, err := groupmember.Join(ctx, cl, groupmember.Group("billing"), groupmember.Topics("orders"), groupmember.Assignors(byMember{}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Generation().Protocol, m.Assignment())
	m.Close(ctx)
	// Output: classic [orders-0 orders-1 orders-2]
}

// The assignors can be asked directly, since they are pure functions.
func ExampleRange() {
	topics := []groupmember.TopicRacks{{Name: "t", Racks: make([][]string, 10)}}
	members := []groupmember.Subscription{{MemberID: "a", Topics: []string{"t"}}, {MemberID: "b", Topics: []string{"t"}}, {MemberID: "c", Topics: []string{"t"}}}
	for _, a := range []groupmember.Assignor{groupmember.Range(), groupmember.RoundRobin()} {
		got, err := a.Assign(topics, members)
		fmt.Println(a.Name(), got["a"], err)
	}
	// Output:
	// range [t-0 t-1 t-2 t-3] <nil>
	// roundrobin [t-0 t-3 t-6 t-9] <nil>
}

func ExampleFromProperties() {
	_, cfg, err := groupmember.FromProperties(map[string]string{
		"bootstrap.servers":             "broker:9092",
		"group.id":                      "billing",
		"session.timeout.ms":            "10000",
		"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
	})
	fmt.Println(cfg.GroupID, cfg.SessionTimeout, cfg.Assignors[0].Name(), err)
	// Output: billing 10s cooperative-sticky <nil>
}
