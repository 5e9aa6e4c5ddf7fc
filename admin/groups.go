package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// GroupState is Kafka's name of a group's state. A broker may have states that are not listed here.
type GroupState string

// States of classic groups are Empty, PreparingRebalance, CompletingRebalance, Stable and Dead, those of consumer groups
// (KIP-848) Empty, Assigning, Reconciling, Stable and Dead.
const (
	GroupEmpty               GroupState = "Empty"
	GroupPreparingRebalance  GroupState = "PreparingRebalance"
	GroupCompletingRebalance GroupState = "CompletingRebalance"
	GroupAssigning           GroupState = "Assigning"
	GroupReconciling         GroupState = "Reconciling"
	GroupStable              GroupState = "Stable"
	GroupDead                GroupState = "Dead"
)

// GroupType is Kafka's name of the protocol that the members of a group speak with its coordinator, as ListGroups of
// brokers from 3.8 on tells it.
type GroupType string

// Types of groups.
const (
	ClassicGroup  GroupType = "Classic"
	ConsumerGroup GroupType = "Consumer" // KIP-848
	ShareGroup    GroupType = "Share"    // KIP-932
	StreamsGroup  GroupType = "Streams"  // KIP-1071
)

// groupTypes are the types by the spelling that a broker uses, which changed between versions.
var groupTypes = []GroupType{ClassicGroup, ConsumerGroup, ShareGroup, StreamsGroup}

func groupType(s string) GroupType {
	for _, t := range groupTypes {
		if strings.EqualFold(string(t), s) {
			return t
		}
	}
	return GroupType(s)
}

// GroupFilter chooses among groups; a zero field takes all. States are told by brokers from 2.6 on, types by those from 3.8
// on; before, every group counts as a classic one.
type GroupFilter struct {
	States []GroupState
	Types  []GroupType
	// Protocols are protocol types, such as "consumer" or "connect"; "" is that of groups that only keep offsets. They are
	// looked at here, because brokers do not.
	Protocols []string
}

// ListedGroup is a row of ListGroups.
type ListedGroup struct {
	ID           string
	ProtocolType string     // "consumer" for consumers of both protocols
	State        GroupState // empty with brokers before 2.6
	Type         GroupType  // empty with brokers before 3.8
	Coordinator  int32      // broker id
}

// ListGroups gives the groups of all brokers, by id. When a broker does not answer, the groups of the others come beside the
// error; one that leaves the cluster meanwhile is not waited for.
func (a *Admin) ListGroups(ctx context.Context, filter GroupFilter) ([]ListedGroup, error) {
	return atBrokers(ctx, a, func(g ListedGroup) string { return g.ID }, func(ctx context.Context, broker int32) ([]ListedGroup, error) {
		return a.groupsOf(ctx, broker, filter)
	})
}

// groupsOf asks one broker for the groups that it coordinates.
func (a *Admin) groupsOf(ctx context.Context, broker int32, filter GroupFilter) ([]ListedGroup, error) {
	req := message.NewListGroupsRequest()
	for _, s := range filter.States {
		req.StatesFilter = append(req.StatesFilter, string(s))
	}
	for _, t := range filter.Types {
		req.TypesFilter = append(req.TypesFilter, string(t))
	}
	resp, err := once[*message.ListGroupsResponse](ctx, a, broker, 0, listGroups{req})
	if err != nil {
		return nil, err
	}
	if err := rowError("list groups of", a.cl.BrokerName(broker), resp.ErrorCode, nil); err != nil {
		return nil, err
	}
	var rows []ListedGroup
	for _, g := range resp.Groups {
		if len(filter.Protocols) == 0 || slices.Contains(filter.Protocols, g.ProtocolType) {
			rows = append(rows, ListedGroup{g.GroupId, g.ProtocolType, GroupState(g.GroupState), groupType(g.GroupType), broker})
		}
	}
	return rows, nil
}

// DeletedGroup is a row of DeleteGroups.
type DeletedGroup struct {
	ID  string
	Err error
}

// DeleteGroups deletes groups with all their committed offsets. A group with members is refused (NON_EMPTY_GROUP).
func (a *Admin) DeleteGroups(ctx context.Context, ids ...string) ([]DeletedGroup, error) {
	ids = unique(ids)
	errs := a.atCoordinators(ctx, client.GroupCoordinator, ids, func(ctx context.Context, at client.Node, some []int, errs []error) {
		req := message.NewDeleteGroupsRequest()
		for _, i := range some {
			req.GroupsNames = append(req.GroupsNames, ids[i])
		}
		resp, err := once[*message.DeleteGroupsResponse](ctx, a, at.ID, 0, req)
		if err != nil {
			setAll(errs, some, err)
			return
		}
		answers := byName(resp.Results, func(r message.DeletableGroupResult) string { return r.GroupId })
		for _, i := range some {
			if r, ok := answers[ids[i]]; ok {
				errs[i] = rowError("delete group", ids[i], r.ErrorCode, r.ErrorMessage)
			} else {
				errs[i] = leftOut("delete group", ids[i])
			}
		}
	})
	rows := make([]DeletedGroup, len(ids))
	for i, err := range errs {
		rows[i] = DeletedGroup{ids[i], err}
	}
	return rows, outcome(ctx, errs)
}

// atCoordinators asks the coordinators of groups or transactional ids, each broker once a round and all side by side. Those
// whose coordinator moved, loads or died are asked about again where they are then. ask is given the indexes of the keys that
// its broker coordinates and writes their errs; it runs on several goroutines at once, for different indexes.
func (a *Admin) atCoordinators(ctx context.Context, kind client.CoordinatorKind, keys []string, ask func(ctx context.Context, at client.Node, some []int, errs []error)) []error {
	return a.rounds(ctx, len(keys), passing, func(ctx context.Context, left []int, errs []error) {
		nodes, failed, err := a.cl.Coordinators(ctx, kind, at(keys, left)...)
		byNode := map[client.Node][]int{}
		for _, i := range left {
			node, found := nodes[keys[i]]
			if !found {
				errs[i] = fmt.Errorf("find the coordinator of %s %q: %w", coordinated[kind], keys[i], cmp.Or(err, failed[keys[i]], error(client.ErrProtocol)))
				continue
			}
			byNode[node] = append(byNode[node], i)
		}
		var wg sync.WaitGroup
		for node, some := range byNode {
			wg.Go(func() { ask(ctx, node, some, errs) }) // ends with its requests, which end with ctx
		}
		wg.Wait()
		for _, i := range left {
			if errs[i] != nil && client.Retriable(errs[i]) { // whoever shares the client shall look for it, too
				a.cl.ForgetCoordinator(kind, keys[i])
			}
		}
	})
}

// coordinated is what a kind of coordinator looks after, for errors.
var coordinated = map[client.CoordinatorKind]string{client.GroupCoordinator: "group", client.TransactionCoordinator: "transactional id"}

// unsupported tells that a broker does not know a request, or not for this kind of group.
func unsupported(err error) bool { return errors.Is(err, client.ErrUnsupportedVersion) }
