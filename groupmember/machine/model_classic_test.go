package machine_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// classicGroup is a small model of a coordinator of the classic protocol: as much of it as a member can see. Answers go to
// the reply functions, some at once, some when the rest of the group has come.
type classicGroup struct {
	now        func() time.Time
	generation int32
	state      string // empty, preparing, completing, stable
	members    map[string]*classicMember
	offered    map[string]bool   // member ids given out and not used yet
	static     map[string]string // instance id to member id
	leader     string
	protocol   string
	until      time.Time // of preparing
	ids        int
}

type classicMember struct {
	session, rebalance time.Duration
	deadline           time.Time
	instance           string
	protocols          []message.JoinGroupRequestProtocol
	joining, syncing   func(message.Response)
	assignment         []byte
}

func newClassicGroup(now func() time.Time) *classicGroup {
	return &classicGroup{now: now, state: "empty", members: map[string]*classicMember{}, offered: map[string]bool{}, static: map[string]string{}}
}

func (g *classicGroup) ordered() []string { return slices.Sorted(maps.Keys(g.members)) }

// handle takes a request; reply is called once, unless the request's connection is cut before.
func (g *classicGroup) handle(req message.Request, reply func(message.Response)) {
	switch req := req.(type) {
	case *message.JoinGroupRequest:
		g.join(req, reply)
	case *message.SyncGroupRequest:
		g.sync(req, reply)
	case *message.HeartbeatRequest:
		resp := &message.HeartbeatResponse{}
		resp.ErrorCode = int16(g.check(req.MemberId, req.GroupInstanceId, req.GenerationId))
		if m := g.members[req.MemberId]; m != nil && resp.ErrorCode == 0 {
			m.deadline = g.now().Add(m.session)
			if g.state == "preparing" {
				resp.ErrorCode = int16(errcode.RebalanceInProgress)
			}
		}
		reply(resp)
	case *message.LeaveGroupRequest:
		for _, id := range req.Members {
			g.remove(id.MemberId)
		}
		reply(&message.LeaveGroupResponse{})
	}
}

func (g *classicGroup) check(id string, instance *string, generation int32) errcode.Code {
	if instance != nil && g.static[*instance] != "" && g.static[*instance] != id {
		return errcode.FencedInstanceId
	}
	switch {
	case g.members[id] == nil:
		return errcode.UnknownMemberId
	case generation != g.generation:
		return errcode.IllegalGeneration
	}
	return errcode.None
}

func (g *classicGroup) join(req *message.JoinGroupRequest, reply func(message.Response)) {
	refuse := func(code errcode.Code, id string) {
		reply(&message.JoinGroupResponse{ErrorCode: int16(code), MemberId: id, GenerationId: -1})
	}
	id := req.MemberId
	switch {
	case req.GroupInstanceId != nil && id == "":
		g.ids++
		id = fmt.Sprintf("%s-%03d", *req.GroupInstanceId, g.ids)
		if old := g.static[*req.GroupInstanceId]; old != "" { // the old one is fenced, the new one takes its place
			if was := g.members[old]; was != nil && was.joining != nil {
				was.joining(&message.JoinGroupResponse{ErrorCode: int16(errcode.FencedInstanceId), MemberId: old, GenerationId: -1})
			}
			delete(g.members, old)
		}
		g.static[*req.GroupInstanceId] = id
	case req.GroupInstanceId != nil && g.static[*req.GroupInstanceId] != "" && g.static[*req.GroupInstanceId] != id:
		refuse(errcode.FencedInstanceId, id)
		return
	case id == "":
		g.ids++
		id = fmt.Sprintf("member-%03d", g.ids)
		g.offered[id] = true
		refuse(errcode.MemberIdRequired, id)
		return
	case g.members[id] == nil && !g.offered[id]:
		refuse(errcode.UnknownMemberId, id)
		return
	}
	delete(g.offered, id)
	m := g.members[id]
	if m == nil {
		m = &classicMember{}
		g.members[id] = m
	}
	m.session, m.rebalance = time.Duration(req.SessionTimeoutMs)*time.Millisecond, time.Duration(req.RebalanceTimeoutMs)*time.Millisecond
	m.deadline, m.protocols, m.joining = g.now().Add(m.session), req.Protocols, reply
	if req.GroupInstanceId != nil {
		m.instance = *req.GroupInstanceId
	}
	g.prepare()
	g.complete(false)
}

// prepare begins a rebalance.
func (g *classicGroup) prepare() {
	if g.state == "preparing" {
		return
	}
	g.state = "preparing"
	longest := time.Duration(0)
	for _, id := range g.ordered() {
		m := g.members[id]
		longest = max(longest, m.rebalance)
		if m.syncing != nil {
			m.syncing(&message.SyncGroupResponse{ErrorCode: int16(errcode.RebalanceInProgress)})
			m.syncing = nil
		}
	}
	g.until = g.now().Add(longest)
}

// complete ends the first half when all have joined, or when the time is over.
func (g *classicGroup) complete(force bool) {
	if g.state != "preparing" {
		return
	}
	for _, id := range g.ordered() {
		if g.members[id].joining == nil && !force {
			return
		}
	}
	for _, id := range g.ordered() {
		if g.members[id].joining == nil {
			g.forget(id)
		}
	}
	g.generation++
	if len(g.members) == 0 {
		g.state = "empty"
		return
	}
	g.state = "completing"
	ids := g.ordered()
	if g.members[g.leader] == nil {
		g.leader = ids[0]
	}
	g.protocol = g.members[ids[0]].protocols[0].Name
	for _, id := range ids {
		m := g.members[id]
		resp := &message.JoinGroupResponse{GenerationId: g.generation, ProtocolName: &g.protocol, Leader: g.leader, MemberId: id}
		if id == g.leader {
			for _, other := range ids {
				o := g.members[other]
				jm := message.JoinGroupResponseMember{MemberId: other, Metadata: o.protocols[0].Metadata}
				if o.instance != "" {
					jm.GroupInstanceId = &o.instance
				}
				resp.Members = append(resp.Members, jm)
			}
		}
		m.assignment, m.deadline = nil, g.now().Add(m.session)
		m.joining(resp)
		m.joining = nil
	}
}

func (g *classicGroup) sync(req *message.SyncGroupRequest, reply func(message.Response)) {
	code := g.check(req.MemberId, req.GroupInstanceId, req.GenerationId)
	if code == errcode.None && g.state == "preparing" {
		code = errcode.RebalanceInProgress
	}
	if code != errcode.None {
		reply(&message.SyncGroupResponse{ErrorCode: int16(code)})
		return
	}
	m := g.members[req.MemberId]
	m.deadline = g.now().Add(m.session)
	if g.state == "stable" {
		reply(&message.SyncGroupResponse{Assignment: m.assignment})
		return
	}
	m.syncing = reply
	if req.MemberId != g.leader {
		return
	}
	for _, a := range req.Assignments {
		if to := g.members[a.MemberId]; to != nil {
			to.assignment = a.Assignment
		}
	}
	g.state = "stable"
	for _, id := range g.ordered() {
		if m := g.members[id]; m.syncing != nil {
			m.syncing(&message.SyncGroupResponse{Assignment: m.assignment})
			m.syncing = nil
			m.deadline = g.now().Add(m.session)
		}
	}
}

func (g *classicGroup) forget(id string) {
	if m := g.members[id]; m != nil && m.instance != "" && g.static[m.instance] == id {
		delete(g.static, m.instance)
	}
	delete(g.members, id)
}

func (g *classicGroup) remove(id string) {
	if g.members[id] == nil {
		return
	}
	g.forget(id)
	g.prepare()
	g.complete(false)
}

// tick ends sessions and rebalances whose time is over.
func (g *classicGroup) tick() {
	for _, id := range g.ordered() {
		m := g.members[id]
		if m != nil && m.joining == nil && m.syncing == nil && !g.now().Before(m.deadline) {
			g.remove(id)
		}
	}
	if g.state == "preparing" && !g.now().Before(g.until) {
		g.complete(true)
	}
}

// cut ends all that waits, as when the coordinator dies; the next one knows the members and gives them a session.
func (g *classicGroup) cut() {
	for _, id := range g.ordered() {
		m := g.members[id]
		m.joining, m.syncing, m.deadline = nil, nil, g.now().Add(m.session)
	}
	if g.state == "preparing" { // the new one would load members that had left, and miss them; this comes to the same
		g.state = "stable"
		g.prepare()
		return
	}
	if g.state != "empty" {
		g.state = "stable"
		for _, id := range g.ordered() {
			if g.members[id].assignment == nil { // it was never written
				g.state = "completing"
			}
		}
		if g.state == "completing" {
			g.prepare()
		}
	}
}

// counted tells whether a member belongs to the present generation.
func (g *classicGroup) counted(gen machine.Generation) bool {
	return g.members[gen.MemberID] != nil && gen.ID == g.generation && g.state != "empty"
}
