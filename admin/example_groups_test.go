package admin_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/fakebroker"
)

// commit makes a group that has read some of a topic.
func commit(adm *admin.Admin, group, topic string, offset int64) {
	_, err := adm.AlterGroupOffsets(ctx, group, map[admin.TopicPartition]admin.NewOffset{{Topic: topic, Partition: 0}: {Offset: offset}})
	if err != nil {
		panic(err)
	}
}

func ExampleAdmin_ListGroups() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	commit(adm, "billing", "orders", 0)

	rows, err := adm.ListGroups(ctx, admin.GroupFilter{States: []admin.GroupState{admin.GroupEmpty}})
	for _, g := range rows {
		fmt.Println(g.ID, g.State, g.Type)
	}
	fmt.Println(err)
	// Output:
	// billing Empty Classic
	// <nil>
}

// Groups of both protocols are described, with members, subscriptions and assignments.
func ExampleAdmin_DescribeGroups() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	commit(adm, "billing", "orders", 0)

	rows, err := adm.DescribeGroups(ctx, "billing", "biling")
	fmt.Println(rows[0].State, len(rows[0].Members))
	fmt.Println(err)
	// Output:
	// Empty 0
	// describe group biling: GROUP_ID_NOT_FOUND: Group biling not found.
}

func ExampleAdmin_DeleteGroups() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	commit(adm, "billing", "orders", 0)

	_, err := adm.DeleteGroups(ctx, "billing")
	left, _ := adm.ListGroups(ctx, admin.GroupFilter{})
	fmt.Println(len(left), err)
	// Output: 0 <nil>
}

// A static member that will not come back is taken out before its session ends.
func ExampleAdmin_RemoveMembers() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	commit(adm, "billing", "orders", 0)

	_, err := adm.RemoveMembers(ctx, "billing", "its machine is gone", admin.MemberIdentity{InstanceID: "till-1"})
	fmt.Println(err)
	// Output: remove from group billing the member till-1: UNKNOWN_MEMBER_ID: the group has no such member now; DescribeGroups lists those it has
}

func ExampleAdmin_RemoveAllMembers() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	commit(adm, "billing", "orders", 0)

	rows, err := adm.RemoveAllMembers(ctx, "billing", "maintenance")
	fmt.Println(len(rows), err)
	// Output: 0 <nil>
}

func ExampleAdmin_ListGroupOffsets() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	commit(adm, "billing", "orders", 42)

	rows, err := adm.ListGroupOffsets(ctx, "billing")
	fmt.Println(rows, err)
	// Output: [orders-0@42] <nil>
}

func ExampleAdmin_AlterGroupOffsets() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()

	_, err := adm.AlterGroupOffsets(ctx, "billing", map[admin.TopicPartition]admin.NewOffset{
		{Topic: "orders", Partition: 0}: {Offset: 7, Metadata: "moved by hand"}})
	rows, _ := adm.ListGroupOffsets(ctx, "billing")
	fmt.Println(rows[0], rows[0].Metadata, err)
	// Output: orders-0@7 moved by hand <nil>
}

func ExampleAdmin_DeleteGroupOffsets() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	commit(adm, "billing", "orders", 42)

	_, err := adm.DeleteGroupOffsets(ctx, "billing", admin.TopicPartition{Topic: "orders", Partition: 0})
	rows, _ := adm.ListGroupOffsets(ctx, "billing")
	fmt.Println(rows, err)
	// Output: [] <nil>
}

// A plan is a dry run: look at it first, then execute it.
func ExampleAdmin_PlanReset() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	send(adm, "orders", "a", "b", "c")
	commit(adm, "billing", "orders", 3)

	plan, err := adm.PlanReset(ctx, "billing", admin.ResetToTime(time.Unix(1_700_000_001, 0)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	_, err = plan.Execute(ctx, adm)
	rows, _ := adm.ListGroupOffsets(ctx, "billing")
	fmt.Println(rows, err)
	// Output:
	// GROUP    TOPIC   PARTITION  COMMITTED  NEW-OFFSET  LAG  NOTE
	// billing  orders  0          3          1           2
	// [orders-0@1] <nil>
}

func ExampleAdmin_ResetGroupOffsets() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	send(adm, "orders", "a", "b", "c")
	commit(adm, "billing", "orders", 1)

	for _, to := range []admin.ResetTo{admin.ResetToLatest, admin.ResetByShift(-2), admin.ResetToOffset(17), admin.ResetToEarliest} {
		plan, err := adm.ResetGroupOffsets(ctx, "billing", to)
		fmt.Println(to, plan.Rows[0].Offset, plan.Rows[0].Clamped, err)
	}
	// Output:
	// latest 3 false <nil>
	// current-2 1 false <nil>
	// offset 17 3 true <nil>
	// earliest 0 false <nil>
}

func ExampleAdmin_Lag() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	send(adm, "orders", "a", "b", "c")
	commit(adm, "billing", "orders", 1)

	groups, err := adm.Lag(ctx, "billing")
	for _, p := range groups[0].Partitions {
		fmt.Println(p.TopicPartition, p.Committed, p.End, p.Lag, p.Member == nil)
	}
	fmt.Println(groups[0].Total(), err)
	// Output:
	// orders-0 1 3 2 true
	// 2 <nil>
}

// Rows that fail keep the others from being changed; whoever wants those drops the failed ones first.
func ExampleResetPlan_Execute() {
	adm, stop := cluster(fakebroker.Topic("orders", 1))
	defer stop()
	send(adm, "orders", "a", "b", "c")

	there, missing := admin.TopicPartition{Topic: "orders", Partition: 0}, admin.TopicPartition{Topic: "orders", Partition: 7}
	plan, err := adm.PlanReset(ctx, "billing", admin.ResetToLatest, there, missing)
	fmt.Println(err != nil, len(plan.Rows))
	plan.Rows = slices.DeleteFunc(plan.Rows, func(r admin.ResetRow) bool { return r.Err != nil })
	rows, err := plan.Execute(ctx, adm)
	fmt.Println(rows[0].TopicPartition, err)
	// Output:
	// true 2
	// orders-0 <nil>
}

// The place of a reset can be printed.
func ExampleResetTo() {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, to := range []admin.ResetTo{admin.ResetToEarliest, admin.ResetToCurrent, admin.ResetToTime(noon), admin.ResetByDuration(36 * time.Hour), admin.ResetByShift(-10), admin.ResetToOffset(42)} {
		fmt.Println(to)
	}
	// Output:
	// earliest
	// current
	// time 2026-01-31T12:00:00Z
	// now - 36h0m0s
	// current-10
	// offset 42
}
