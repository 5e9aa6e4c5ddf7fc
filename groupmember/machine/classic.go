package machine

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/wire/message"
)

// phase is how far a member of the classic protocol is in a rebalance.
//
//	out      -> joining   JoinGroup sent, after everything that has to be given up is
//	joining  -> deciding  answered, and this member is the leader
//	joining  -> syncing   answered, and it is not
//	deciding -> syncing   SyncGroup sent with what the assignor says
//	syncing  -> in        answered
//	in       -> out       a rebalance is wanted, by the coordinator or by us
//	any      -> out       the membership is void, or the coordinator changed during a rebalance
type phase uint8

const (
	out phase = iota
	joining
	deciding
	syncing
	in
)

// decideWithin bounds how long a leader waits for metadata of topics that other members want.
const decideWithin = 5 * time.Second

// classic is the member's side of JoinGroup, SyncGroup, Heartbeat and LeaveGroup.
type classic struct {
	*Member
	phase       phase
	cooperative bool
	wish        string // why a rebalance is wanted, empty for none

	last           []TopicPartition // of the last assignment, for Assignor.UserData
	lastGeneration int32

	leader   *leadership // nil when another member leads
	assignor string      // chosen by the group
}

func newClassic(m *Member) *classic {
	c := &classic{Member: m, cooperative: len(m.cfg.Assignors) > 0, lastGeneration: NoGeneration}
	for _, a := range m.cfg.Assignors {
		c.cooperative = c.cooperative && a.Cooperative()
	}
	return c
}

func (c *classic) where() State {
	switch {
	case c.revoking != nil:
		return Revoking
	case c.phase == in:
		return Stable
	case c.phase == deciding || c.phase == syncing:
		return Syncing
	}
	return Joining
}

// advance sends what is due. Of what was assigned in this step nothing is taken back in the same one: the owner is told
// of revocations first.
func (c *classic) advance(now time.Time, eff *Effects) {
	if eff.Assigned != nil {
		if c.wish != "" {
			c.again = now
		}
		c.beat(now, eff)
		return
	}
	if c.phase == in && c.wish != "" && c.revoking == nil && !c.leaving {
		c.phase, c.Member.reason = out, c.wish
		c.begin(now)
	}
	if c.phase == out && c.revoking == nil && !c.leaving && c.resolved {
		c.begin(now)
		if parts := c.burden(); len(parts) > 0 {
			c.revoke(parts, eff)
		} else if !now.Before(c.retryAt) && c.inFlight[kindJoin] == nil {
			c.join(now, eff)
		}
	}
	if c.phase == deciding {
		c.decide(now, eff)
	}
	c.beat(now, eff)
}

// burden is what has to be given up before joining: everything (eager), or what is not subscribed to any more.
func (c *classic) burden() []TopicPartition {
	if !c.cooperative {
		return c.owned
	}
	var out []TopicPartition
	for _, tp := range c.owned {
		if !slices.Contains(c.topics, tp.Topic) {
			out = append(out, tp)
		}
	}
	return out
}

// join asks to take part. The answer comes when all members have asked, or when the rebalance timeout is over.
func (c *classic) join(now time.Time, eff *Effects) {
	req := message.NewJoinGroupRequest()
	req.GroupId, req.MemberId, req.ProtocolType = c.cfg.GroupID, c.generation.MemberID, ProtocolType
	req.SessionTimeoutMs, req.RebalanceTimeoutMs = millis(c.cfg.Session), millis(c.cfg.Rebalance)
	req.GroupInstanceId = optional(c.cfg.InstanceID)
	reason := c.wish
	if reason == "" {
		reason = c.Member.reason
	}
	reason = reason[:min(len(reason), 255)] // the broker keeps no more
	req.Reason = &reason
	for _, a := range c.cfg.Assignors {
		s := Subscription{Topics: c.topics, Generation: c.lastGeneration, Rack: c.cfg.Rack, UserData: a.UserData(c.last, c.lastGeneration)}
		if c.cooperative {
			s.Owned = c.owned
		}
		req.Protocols = append(req.Protocols, message.JoinGroupRequestProtocol{Name: a.Name(), Metadata: AppendSubscription(nil, s)})
	}
	c.phase, c.wish, c.leader = joining, "", nil
	c.Member.send(now, &Request{kind: kindJoin, Body: req, Timeout: c.cfg.Rebalance + 5*time.Second, Held: true}, eff)
}

// sync asks for the assignment, and as leader brings it along.
func (c *classic) sync(now time.Time, assignments []message.SyncGroupRequestAssignment, eff *Effects) {
	req := message.NewSyncGroupRequest()
	protocol, name := ProtocolType, c.assignor
	req.GroupId, req.MemberId, req.GenerationId = c.cfg.GroupID, c.generation.MemberID, c.generation.ID
	req.GroupInstanceId, req.ProtocolType, req.ProtocolName = optional(c.cfg.InstanceID), &protocol, &name
	req.Assignments = assignments
	c.phase = syncing
	c.Member.send(now, &Request{kind: kindSync, Body: req, Timeout: c.cfg.Rebalance + 5*time.Second, Held: true}, eff)
}

// beat sends a heartbeat when one is due. They go on during a rebalance, as the proof that the coordinator still counts
// us in while we keep partitions.
func (c *classic) beat(now time.Time, eff *Effects) {
	if !c.beating() || c.inFlight[kindBeat] != nil || now.Before(c.nextBeat) || now.Before(c.retryAt) {
		return
	}
	req := message.NewHeartbeatRequest()
	req.GroupId, req.MemberId, req.GenerationId = c.cfg.GroupID, c.generation.MemberID, c.generation.ID
	req.GroupInstanceId = optional(c.cfg.InstanceID)
	c.nextBeat = now.Add(c.cfg.Heartbeat)
	c.Member.send(now, &Request{kind: kindBeat, Body: req, Timeout: c.cfg.beatTimeout()}, eff)
}

// beating tells whether heartbeats are sent in this phase: while there is a generation.
func (c *classic) beating() bool { return c.generation.ID != NoGeneration }

// beatTimeout lets a heartbeat fail early enough for two more within a session.
func (c *Config) beatTimeout() time.Duration { return max(c.Session/3, time.Millisecond) }

func (c *classic) due(earliest func(time.Time)) {
	later := func(t time.Time) { // not before the back-off
		if t.Before(c.retryAt) {
			t = c.retryAt
		}
		earliest(t)
	}
	if c.beating() && c.inFlight[kindBeat] == nil {
		later(c.nextBeat)
	}
	if c.phase == out && c.revoking == nil && !c.leaving && c.resolved && c.inFlight[kindJoin] == nil {
		earliest(c.retryAt)
	}
	if c.phase == deciding {
		later(c.leader.until)
	}
}

func (c *classic) interrupted() {
	if c.phase != in {
		c.phase = out
	}
	c.nextBeat = time.Time{} // ask the new coordinator at once
}

func (c *classic) reset() {
	c.phase, c.leader, c.wish = out, nil, ""
	if c.cooperative { // a claim that others may have got; an eager one is judged by its generation
		c.last, c.lastGeneration = nil, NoGeneration
	}
	c.inFlight[kindJoin], c.inFlight[kindSync], c.inFlight[kindBeat] = nil, nil, nil
}

func (c *classic) subscribed() { c.rejoin("subscription changed") }

func (c *classic) rejoin(reason string) {
	if c.phase != out {
		c.wish = reason
	}
}

// owes: the group waits for this member to join again, or to give something up.
func (c *classic) owes() bool {
	return c.revoking != nil || c.phase == out && c.generation.ID != NoGeneration || c.wish != ""
}

// farewell is LeaveGroup. A static member that stays says nothing.
func (c *classic) farewell(stay bool) *Request {
	if stay || c.generation.MemberID == "" {
		return nil
	}
	req := message.NewLeaveGroupRequest()
	reason := "the consumer is being closed"
	if !c.leaving {
		reason = "nothing was processed within max.poll.interval.ms"
	}
	req.GroupId = c.cfg.GroupID
	req.Members = []message.MemberIdentity{{MemberId: c.generation.MemberID, GroupInstanceId: optional(c.cfg.InstanceID), Reason: &reason}}
	return &Request{kind: kindLeave, Body: req}
}

// optional is nil for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// millis is a duration as the protocol has it.
func millis(d time.Duration) int32 { return int32(min(d.Milliseconds(), 1<<31-1)) }
