package interop

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wirejson"
)

// groupScenarios are the conformance suite's part about groups.
var groupScenarios = map[string]func(*groupTalk){
	"finding coordinators":              findingCoordinators,
	"a classic member in each version":  classicVersions,
	"what a join may not say":           joinErrors,
	"two members and their leader":      twoMembers,
	"protocols that members share":      sharedProtocols,
	"static members":                    staticMembers,
	"leaving for others":                leavingForOthers,
	"offsets in each version":           offsetsInVersions,
	"commits that are refused":          refusedCommits,
	"offsets of absent things":          absentOffsets,
	"deleting offsets":                  deletingOffsets,
	"listing and describing":            listingGroups,
	"deleting groups":                   deletingGroups,
	"a consumer member in each version": consumerVersions,
	"what a heartbeat may not say":      heartbeatErrors,
	"handing partitions over":           handingOver,
	"static consumer members":           staticConsumers,
	"subscribing by expression":         subscribingByExpression,
	"server assignors":                  serverAssignors,
	"one protocol after the other":      protocolsInTurn,
	"offsets of consumer members":       consumerOffsets,
}

// TestGroupConformance tells each scenario to Apache Kafka and to ottla and compares the transcripts.
func TestGroupConformance(t *testing.T) {
	t.Parallel()
	ottla := startGroups(t, "--data", t.TempDir())
	for _, addr := range []string{kafkaAddr, ottla.addr} {
		awaitCoordinator(t, newConversation(t, addr))
	}
	for _, name := range slices.Sorted(maps.Keys(groupScenarios)) {
		scenario := groupScenarios[name]
		t.Run(name, func(t *testing.T) {
			kafka := newGroupTalk(t, kafkaAddr)
			scenario(kafka)
			ours := newGroupTalk(t, ottla.addr)
			scenario(ours)
			t.Logf("%d answers", len(ours.transcript))
			requireSameTranscripts(t, kafka.transcript, ours.transcript)
		})
	}
}

// awaitCoordinator waits for the topic of the groups and until all its partitions are loaded, for which Apache Kafka lets
// clients wait: a stranger is then told that it is one.
func awaitCoordinator(t testing.TB, c *conversation) {
	t.Helper()
	eventually(t, "the coordinators of groups are loaded", func() bool {
		if c.quiet(3, &message.FindCoordinatorRequest{CoordinatorKey: "cf-any"}).(*message.FindCoordinatorResponse).ErrorCode != 0 {
			return false
		}
		for i := range 40 { // names enough to meet every partition
			code := c.quiet(4, beat(fmt.Sprint("cf-any-", i), "cf-stranger", 1)).(*message.HeartbeatResponse).ErrorCode
			if errcode.Code(code) != errcode.UnknownMemberId {
				return false
			}
		}
		return true
	})
}

// groupTalk is a conversation about groups. Members speak over it one after the other; one whose answer takes until another
// has spoken does so by later.
type groupTalk struct {
	*conversation
	ids map[string]string // made-up member id -> placeholder
}

func newGroupTalk(t testing.TB, addr string) *groupTalk {
	return &groupTalk{conversation: newConversation(t, addr), ids: map[string]string{}}
}

// ask is conversation.ask with the ids of members mapped, too.
func (g *groupTalk) ask(label string, version int16, req message.Request) message.Response {
	g.t.Helper()
	resp := g.exchange(version, req)
	g.take(label, version, req, resp)
	return resp
}

// later sends a request over a connection of its own and returns at once; the function that it returns waits for the answer
// and notes it.
func (g *groupTalk) later(label string, version int16, req message.Request) func() message.Response {
	g.t.Helper()
	other := &conversation{t: g.t, addr: g.addr}
	other.dial()
	answer := make(chan message.Response, 1)
	go func() { // ends with the answer
		defer close(answer)
		answer <- other.exchange(version, req)
	}()
	return func() message.Response {
		resp := <-answer
		g.take(label, version, req, resp)
		return resp
	}
}

func (g *groupTalk) take(label string, version int16, req message.Request, resp message.Response) {
	g.t.Helper()
	if resp == nil {
		g.note(label, version, req, "closed")
		return
	}
	g.learn(resp)
	g.order(resp)
	text, err := wirejson.Append(nil, resp, version)
	require.NoError(g.t, err)
	s := g.normal(req.Key(), text)
	g.note(label, version, req, memberIDs.ReplaceAllStringFunc(s, func(id string) string { return cmp.Or(g.ids[id], id) }))
}

// memberIDs are ids that a coordinator may have made: the client's id or the instance's and a UUID, or, with ConsumerGroupHeartbeat v0, Kafka's
// own writing of one. The scenarios' own ids look different.
var memberIDs = regexp.MustCompile(`(conformance|one)-[0-9a-f-]{36}|[A-Za-z0-9_-]{22}`)

func (g *groupTalk) learn(resp message.Response) {
	var list []string
	switch r := resp.(type) {
	case *message.JoinGroupResponse:
		list = append(list, r.MemberId)
		for _, m := range r.Members { // one of them may still wait for the answer that tells it its id
			list = append(list, m.MemberId)
		}
	case *message.ConsumerGroupHeartbeatResponse:
		list = append(list, deref(r.MemberId))
	case *message.DescribeGroupsResponse:
		for _, d := range r.Groups {
			for _, m := range d.Members {
				list = append(list, m.MemberId)
			}
		}
	}
	for _, id := range list {
		if id != "" && memberIDs.FindString(id) == id && g.ids[id] == "" {
			g.ids[id] = fmt.Sprint("MEMBER", len(g.ids)+1)
		}
	}
}

// order puts members, groups and partitions in order, where Apache Kafka's order is that of a hash table and its keys are in
// part made up; groups that other tests made are left out.
func (g *groupTalk) order(resp message.Response) {
	byName := func(x, y string) int { return strings.Compare(cmp.Or(g.ids[x], x), cmp.Or(g.ids[y], y)) }
	switch r := resp.(type) {
	case *message.JoinGroupResponse:
		slices.SortFunc(r.Members, func(x, y message.JoinGroupResponseMember) int { return byName(x.MemberId, y.MemberId) })
	case *message.ListGroupsResponse:
		r.Groups = slices.DeleteFunc(r.Groups, func(x message.ListedGroup) bool { return !strings.HasPrefix(x.GroupId, "cf-") })
		slices.SortFunc(r.Groups, func(x, y message.ListedGroup) int { return strings.Compare(x.GroupId, y.GroupId) })
	case *message.DescribeGroupsResponse:
		slices.SortFunc(r.Groups, func(x, y message.DescribeGroupsResponseDescribedGroup) int {
			return strings.Compare(x.GroupId, y.GroupId)
		})
		for _, d := range r.Groups {
			slices.SortFunc(d.Members, func(x, y message.DescribedGroupMember) int { return byName(x.MemberId, y.MemberId) })
		}
	case *message.ConsumerGroupDescribeResponse:
		slices.SortFunc(r.Groups, func(x, y message.ConsumerGroupDescribeResponseDescribedGroup) int {
			return strings.Compare(x.GroupId, y.GroupId)
		})
		for _, d := range r.Groups {
			slices.SortFunc(d.Members, func(x, y message.ConsumerGroupDescribeResponseMember) int { return byName(x.MemberId, y.MemberId) })
		}
	case *message.DeleteGroupsResponse:
		slices.SortFunc(r.Results, func(x, y message.DeletableGroupResult) int { return strings.Compare(x.GroupId, y.GroupId) })
	case *message.OffsetFetchResponse:
		slices.SortFunc(r.Groups, func(x, y message.OffsetFetchResponseGroup) int { return strings.Compare(x.GroupId, y.GroupId) })
		for _, of := range r.Groups { // all that a group has
			slices.SortFunc(of.Topics, func(x, y message.OffsetFetchResponseTopics) int { return strings.Compare(x.Name, y.Name) })
		}
	}
}

// join, sync and the others below are requests with what most scenarios say; the rest is changed by those that differ.
func join(group, member string, protocols ...string) *message.JoinGroupRequest {
	req := message.NewJoinGroupRequest()
	req.GroupId, req.MemberId, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMs, req.RebalanceTimeoutMs = 300000, 300000 // nobody is missed before the scenario is over
	for _, p := range protocols {
		req.Protocols = append(req.Protocols, message.JoinGroupRequestProtocol{Name: p, Metadata: subscription("cf-groups")})
	}
	return req
}

func syncing(group, member string, generation int32, shares ...string) *message.SyncGroupRequest {
	req := message.NewSyncGroupRequest()
	req.GroupId, req.MemberId, req.GenerationId = group, member, generation
	for i := 0; i+1 < len(shares); i += 2 {
		req.Assignments = append(req.Assignments, message.SyncGroupRequestAssignment{MemberId: shares[i], Assignment: []byte(shares[i+1])})
	}
	return req
}

func beat(group, member string, generation int32) *message.HeartbeatRequest {
	return &message.HeartbeatRequest{GroupId: group, MemberId: member, GenerationId: generation}
}

func leaving(version int16, group string, members ...string) *message.LeaveGroupRequest {
	req := &message.LeaveGroupRequest{GroupId: group}
	if version < 3 {
		req.MemberId = members[0]
		return req
	}
	for _, m := range members {
		req.Members = append(req.Members, message.MemberIdentity{MemberId: m})
	}
	return req
}

// subscription is a member's metadata as Kafka's consumers write it.
func subscription(topics ...string) []byte {
	s := message.ConsumerProtocolSubscription{Topics: topics, GenerationId: -1}
	b, err := s.AppendTo(binary.BigEndian.AppendUint16(nil, 1), 1)
	if err != nil {
		panic(err)
	}
	return b
}

// joined joins a new group alone and gets through to Stable, without a line in the transcript.
func (g *groupTalk) joined(group string, protocols ...string) (member string, generation int32) {
	g.t.Helper()
	first := g.quiet(5, join(group, "", protocols...)).(*message.JoinGroupResponse)
	require.Equal(g.t, errcode.MemberIdRequired, errcode.Code(first.ErrorCode))
	g.learn(first)
	second := g.quiet(5, join(group, first.MemberId, protocols...)).(*message.JoinGroupResponse)
	require.Zero(g.t, second.ErrorCode)
	s := g.quiet(3, syncing(group, first.MemberId, second.GenerationId, first.MemberId, "all")).(*message.SyncGroupResponse)
	require.Zero(g.t, s.ErrorCode)
	return first.MemberId, second.GenerationId
}

func findingCoordinators(g *groupTalk) {
	for _, v := range versions(wire.KeyFindCoordinator) {
		for _, key := range []string{"cf-found", ""} {
			req := message.NewFindCoordinatorRequest()
			if v < 4 {
				req.CoordinatorKey = key
			} else {
				req.CoordinatorKeys = []string{key, "cf-other"}
			}
			g.ask("group "+key, v, req)
			if v >= 1 {
				req.KeyType = 9
				g.ask("no such type "+key, v, req)
			}
		}
		if v >= 4 {
			g.ask("no keys", v, &message.FindCoordinatorRequest{CoordinatorKeys: []string{}})
			g.ask("a key twice", v, &message.FindCoordinatorRequest{CoordinatorKeys: []string{"cf-x", "cf-x"}})
		}
	}
}
