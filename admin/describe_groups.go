package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Group is a row of DescribeGroups.
type Group struct {
	ID           string
	Type         GroupType
	ProtocolType string // "consumer" for consumers; other software has its own, such as "connect"
	State        GroupState
	// Assignor is who distributes partitions: the protocol that a classic group's members agreed on, or the coordinator's
	// own assignor. Empty while there is none.
	Assignor    string
	Coordinator Broker
	Epoch       int32 // of a consumer group; -1 for classic ones, which tell no number
	TargetEpoch int32 // the epoch that the target assignment was made for; -1 for classic groups
	Members     []GroupMember
	Err         error
}

// GroupMember is a member of a Group.
type GroupMember struct {
	ID         string
	InstanceID string // group.instance.id; empty for a dynamic member
	ClientID   string
	Host       string           // as the coordinator sees it
	Rack       string           // empty when it has none, or none that is told
	Topics     []string         // what it subscribes to; nil when Metadata does not say
	Pattern    string           // a subscription by pattern (consumer groups)
	Assigned   []TopicPartition // what the member owns, by topic and partition
	Target     []TopicPartition // what it shall own; nil in classic groups, where both are the same
	Epoch      int32            // of a consumer group's member; -1 in classic groups
	// Classic tells that a member of a consumer group speaks the classic protocol (KIP-848's online migration).
	Classic bool
	// Metadata and Assignment are the member's bytes in a classic group, for protocols other than "consumer".
	Metadata, Assignment []byte
}

// DescribeGroups gives groups with their members, in the order of asking. Groups of both protocols are described: each
// coordinator is asked for consumer groups first (KIP-848), and about those that it does not know as such, or when it is
// older than 3.7, for classic ones, as Kafka's own Admin does. A group that does not exist is a row with
// GROUP_ID_NOT_FOUND, with old brokers too.
func (a *Admin) DescribeGroups(ctx context.Context, ids ...string) ([]Group, error) {
	ids = unique(ids)
	rows := make([]Group, len(ids))
	errs := a.atCoordinators(ctx, client.GroupCoordinator, ids, func(ctx context.Context, at client.Node, some []int, errs []error) {
		classic := a.describeConsumerGroups(ctx, at.ID, ids, some, rows, errs)
		if len(classic) > 0 {
			a.describeClassicGroups(ctx, at.ID, ids, classic, rows, errs)
		}
		for _, i := range some {
			rows[i].Coordinator = Broker{ID: at.ID, Host: at.Host, Port: at.Port, Rack: at.Rack}
		}
	})
	for i, err := range errs {
		rows[i].ID, rows[i].Err = ids[i], err
	}
	return rows, outcome(ctx, errs)
}

// describeConsumerGroups describes those of some that are consumer groups and returns the others.
func (a *Admin) describeConsumerGroups(ctx context.Context, broker int32, ids []string, some []int, rows []Group, errs []error) (others []int) {
	req := message.NewConsumerGroupDescribeRequest()
	for _, i := range some {
		req.GroupIds = append(req.GroupIds, ids[i])
	}
	resp, err := once[*message.ConsumerGroupDescribeResponse](ctx, a, broker, 0, req)
	if unsupported(err) {
		return some
	}
	if err != nil {
		setAll(errs, some, err)
		return nil
	}
	answers := byName(resp.Groups, func(g message.ConsumerGroupDescribeResponseDescribedGroup) string { return g.GroupId })
	for _, i := range some {
		g, ok := answers[ids[i]]
		if !ok {
			errs[i] = leftOut("describe group", ids[i])
			continue
		}
		switch errcode.Code(g.ErrorCode) {
		case errcode.GroupIdNotFound, errcode.UnsupportedVersion:
			others = append(others, i)
		default:
			rows[i], errs[i] = consumerGroup(g), rowError("describe group", ids[i], g.ErrorCode, g.ErrorMessage)
		}
	}
	return others
}

func consumerGroup(g message.ConsumerGroupDescribeResponseDescribedGroup) Group {
	row := Group{Type: ConsumerGroup, ProtocolType: "consumer", State: GroupState(g.GroupState), Assignor: g.AssignorName,
		Epoch: g.GroupEpoch, TargetEpoch: g.AssignmentEpoch}
	for _, m := range g.Members {
		row.Members = append(row.Members, GroupMember{ID: m.MemberId, InstanceID: text(m.InstanceId), ClientID: m.ClientId, Host: m.ClientHost,
			Rack: text(m.RackId), Topics: m.SubscribedTopicNames, Pattern: text(m.SubscribedTopicRegex), Epoch: m.MemberEpoch,
			Classic: m.MemberType == 0, Assigned: partitionsOf(m.Assignment), Target: partitionsOf(m.TargetAssignment)})
	}
	sortMembers(row.Members)
	return row
}

func partitionsOf(a message.ConsumerGroupDescribeResponseAssignment) []TopicPartition {
	list := []TopicPartition{}
	for _, t := range a.TopicPartitions {
		for _, p := range t.Partitions {
			list = append(list, TopicPartition{Topic: t.TopicName, Partition: p})
		}
	}
	slices.SortFunc(list, comparePartitions)
	return list
}

// describeClassicGroups describes classic groups.
func (a *Admin) describeClassicGroups(ctx context.Context, broker int32, ids []string, some []int, rows []Group, errs []error) {
	req := message.NewDescribeGroupsRequest()
	for _, i := range some {
		req.Groups = append(req.Groups, ids[i])
	}
	resp, err := once[*message.DescribeGroupsResponse](ctx, a, broker, 0, req)
	if err != nil {
		setAll(errs, some, err)
		return
	}
	answers := byName(resp.Groups, func(g message.DescribeGroupsResponseDescribedGroup) string { return g.GroupId })
	for _, i := range some {
		g, ok := answers[ids[i]]
		switch {
		case !ok:
			errs[i] = leftOut("describe group", ids[i])
		case g.ErrorCode == 0 && GroupState(g.GroupState) == GroupDead && len(g.Members) == 0:
			// What brokers before 4.0 say of groups that they do not know.
			errs[i] = &Error{Op: "describe group", What: ids[i], Code: errcode.GroupIdNotFound}
		default:
			if errs[i] = rowError("describe group", ids[i], g.ErrorCode, g.ErrorMessage); errs[i] == nil {
				rows[i], errs[i] = classicGroup(g)
			}
		}
	}
}

func classicGroup(g message.DescribeGroupsResponseDescribedGroup) (Group, error) {
	row := Group{Type: ClassicGroup, ProtocolType: g.ProtocolType, State: GroupState(g.GroupState), Assignor: g.ProtocolData, Epoch: -1, TargetEpoch: -1}
	var failed []error
	for _, m := range g.Members {
		member := GroupMember{ID: m.MemberId, InstanceID: text(m.GroupInstanceId), ClientID: m.ClientId, Host: m.ClientHost, Epoch: -1,
			Classic: true, Metadata: m.MemberMetadata, Assignment: m.MemberAssignment}
		if g.ProtocolType == "consumer" {
			if err := member.decode(); err != nil {
				failed = append(failed, fmt.Errorf("describe group %s: member %s: %w", g.GroupId, m.MemberId, err))
			}
		}
		row.Members = append(row.Members, member)
	}
	sortMembers(row.Members)
	return row, joinErrors(failed)
}

// decode reads what a consumer told its group. Both are empty while a rebalance is under way. A subscription that cannot be read
// costs only the topics: brokers of 2.3 send the assignment in its place.
func (m *GroupMember) decode() error {
	if len(m.Metadata) > 0 {
		s := new(message.ConsumerProtocolSubscription)
		if err := readVersioned(m.Metadata, s); err == nil {
			m.Topics, m.Rack = s.Topics, text(s.RackId)
		}
	}
	if len(m.Assignment) > 0 {
		s := new(message.ConsumerProtocolAssignment)
		if err := readVersioned(m.Assignment, s); err != nil {
			return fmt.Errorf("its assignment: %w", err)
		}
		for _, t := range s.AssignedPartitions {
			for _, p := range t.Partitions {
				m.Assigned = append(m.Assigned, TopicPartition{Topic: t.Topic, Partition: p})
			}
		}
		slices.SortFunc(m.Assigned, comparePartitions)
	}
	return nil
}

// readVersioned reads a consumer's bytes, whose first two are their version. Later versions than ours only add to the end,
// so they are read as far as they are known.
func readVersioned(b []byte, m interface {
	message.Message
	Versions() (int16, int16)
}) error {
	r := wire.NewReader(b)
	version := r.Int16()
	if version < 0 {
		return fmt.Errorf("%w: version %d", client.ErrProtocol, version)
	}
	_, most := m.Versions()
	if err := m.ReadFrom(r, min(version, most)); err != nil {
		return fmt.Errorf("%w: %w", client.ErrProtocol, err)
	}
	return nil
}

// sortMembers orders members by client, host and id, since coordinators keep no order.
func sortMembers(list []GroupMember) {
	slices.SortFunc(list, func(x, y GroupMember) int {
		return cmp.Or(strings.Compare(x.ClientID, y.ClientID), strings.Compare(x.InstanceID, y.InstanceID), strings.Compare(x.Host, y.Host), strings.Compare(x.ID, y.ID))
	})
}

// comparePartitions orders by topic and number.
func comparePartitions(x, y TopicPartition) int {
	return cmp.Or(strings.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition))
}
