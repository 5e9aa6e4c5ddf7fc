package admin

import (
	"context"
	"fmt"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// MemberIdentity names a member of a group: a static one by its group.instance.id, any by its member id. One of the two is
// enough.
type MemberIdentity struct {
	ID         string
	InstanceID string
}

// String is the instance id, or the member id where there is none.
func (m MemberIdentity) String() string {
	if m.InstanceID != "" {
		return m.InstanceID
	}
	return m.ID
}

// RemovedMember is a row of RemoveMembers.
type RemovedMember struct {
	MemberIdentity
	Err error
}

// String is the member and what went wrong.
func (r RemovedMember) String() string {
	if r.Err != nil {
		return fmt.Sprintf("%v: %v", r.MemberIdentity, r.Err)
	}
	return r.MemberIdentity.String()
}

// reasonLimit is how many characters of a reason Kafka's clients send.
const reasonLimit = 255

// RemoveMembers takes members out of a group of either protocol, with a reason for the coordinator's log; the partitions they
// had are distributed anew. A member that still runs loses what it had and joins again. Brokers before 2.4 take one member at a time and none by instance id.
func (a *Admin) RemoveMembers(ctx context.Context, group, reason string, members ...MemberIdentity) ([]RemovedMember, error) {
	members = unique(members)
	if len(members) == 0 {
		return nil, outcome(ctx, nil) // a request without members would be an error of its own
	}
	said := "member was removed by an admin"
	if reason != "" {
		said += ": " + reason
	}
	if r := []rune(said); len(r) > reasonLimit {
		said = string(r[:reasonLimit])
	}
	req := message.NewLeaveGroupRequest()
	req.GroupId = group
	for _, m := range members {
		id := message.MemberIdentity{MemberId: m.ID, Reason: &said}
		if m.InstanceID != "" {
			id.GroupInstanceId = new(m.InstanceID)
		}
		req.Members = append(req.Members, id)
	}
	rows, errs := make([]RemovedMember, len(members)), make([]error, len(members))
	resp, err := request[*message.LeaveGroupResponse](ctx, a, coordinatorOf(group), leaveGroup{req})
	for i, m := range members {
		if err != nil {
			errs[i] = err
		} else if resp.Members != nil { // before version 3 there is only the code of the whole answer
			errs[i] = removedError(group, m, resp.Members)
		}
		rows[i] = RemovedMember{m, errs[i]}
	}
	return rows, outcome(ctx, errs)
}

// removedError is what an answer says of one member.
func removedError(group string, m MemberIdentity, answers []message.MemberResponse) error {
	const op = "remove from group"
	for _, r := range answers {
		if m.InstanceID != "" && text(r.GroupInstanceId) == m.InstanceID || m.InstanceID == "" && r.MemberId == m.ID {
			hint := ""
			if c := errcode.Code(r.ErrorCode); c == errcode.UnknownMemberId || c == errcode.FencedInstanceId {
				hint = "the group has no such member now; DescribeGroups lists those it has"
			}
			return rowError(op, group+" the member "+m.String(), r.ErrorCode, &hint)
		}
	}
	return leftOut(op, group+" the member "+m.String())
}

// RemoveAllMembers takes all members out of a group that it has at the moment. Rows are by client and id.
func (a *Admin) RemoveAllMembers(ctx context.Context, group, reason string) ([]RemovedMember, error) {
	groups, err := a.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	var members []MemberIdentity
	for _, m := range groups[0].Members {
		if m.InstanceID != "" {
			members = append(members, MemberIdentity{InstanceID: m.InstanceID})
		} else {
			members = append(members, MemberIdentity{ID: m.ID})
		}
	}
	return a.RemoveMembers(ctx, group, reason, members...)
}

// coordinatorOf is the coordinator of a group, over the connection of administrators: a member of this client may have a
// JoinGroup on its own that waits for minutes.
func coordinatorOf(group string) client.Target {
	return client.Coordinator(client.GroupCoordinator, group).Via(client.Metadata)
}
