package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// refusal is an error on its way to a member.
type refusal struct {
	code errcode.Code
	text string
}

func refuse(code errcode.Code, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// consumerHeartbeat answers ConsumerGroupHeartbeat, by which members join, report, learn what they have, and leave.
func (m *Machine) consumerHeartbeat(now time.Time, r coordinator.Request, req *message.ConsumerGroupHeartbeatRequest, out *coordinator.Result) {
	bad := m.checkBeat(r.Version, req)
	if bad == nil {
		if req.MemberEpoch == leaveEpoch || req.MemberEpoch == staticLeaveEpoch {
			bad = m.leaveByHeartbeat(now, r, req, out)
		} else {
			bad = m.beat(now, r, req, out)
		}
	}
	if bad != nil {
		resp := message.NewConsumerGroupHeartbeatResponse()
		resp.ErrorCode, resp.ErrorMessage = int16(bad.code), &bad.text
		out.Reply(r.Ticket, resp)
	}
}

// checkBeat checks what a request alone shows, in Apache Kafka's order and words.
func (m *Machine) checkBeat(version int16, req *message.ConsumerGroupHeartbeatRequest) *refusal {
	empty := func(s *string) bool { return s != nil && strings.TrimSpace(*s) == "" }
	switch {
	case !m.set.consumer:
		return refuse(errcode.UnsupportedVersion, "group.coordinator.rebalance.protocols does not have consumer")
	case strings.TrimSpace(req.GroupId) == "":
		return refuse(errcode.InvalidRequest, "GroupId can't be empty.")
	case (version >= 1 || req.MemberEpoch != joinEpoch) && strings.TrimSpace(req.MemberId) == "":
		return refuse(errcode.InvalidRequest, "MemberId can't be empty.")
	case empty(req.InstanceId):
		return refuse(errcode.InvalidRequest, "InstanceId can't be empty.")
	case empty(req.RackId):
		return refuse(errcode.InvalidRequest, "RackId can't be empty.")
	case req.MemberEpoch < staticLeaveEpoch:
		return refuse(errcode.InvalidRequest, "MemberEpoch is invalid.")
	case req.MemberEpoch == staticLeaveEpoch && req.InstanceId == nil:
		return refuse(errcode.InvalidRequest, "InstanceId can't be null.")
	case req.MemberEpoch == joinEpoch && req.RebalanceTimeoutMs == -1:
		return refuse(errcode.InvalidRequest, "RebalanceTimeoutMs must be provided in first request.")
	case req.MemberEpoch == joinEpoch && (req.TopicPartitions == nil || len(req.TopicPartitions) > 0):
		return refuse(errcode.InvalidRequest, "TopicPartitions must be empty when (re-)joining.")
	case req.MemberEpoch == joinEpoch && req.SubscribedTopicNames == nil && req.SubscribedTopicRegex == nil:
		return refuse(errcode.InvalidRequest, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
	case req.ServerAssignor != nil && !slices.Contains(m.set.assignors, *req.ServerAssignor):
		return refuse(errcode.UnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: %s.", *req.ServerAssignor, strings.Join(m.set.assignors, ", "))
	}
	return nil
}

// consumerOf returns the consumer group of an id: the one that is there, a new one for a member that joins, or what a
// classic group becomes. What is not there yet comes with records, in out.
func (m *Machine) consumerOf(now time.Time, id string, create bool, out *coordinator.Result) (*consumerGroup, *refusal) {
	g := m.groups[id]
	switch {
	case g != nil && g.consumer != nil:
		return g.consumer, nil
	case g == nil && create:
		return newConsumerGroup(), nil
	case g == nil:
		return nil, refuse(errcode.GroupIdNotFound, "Consumer group %s not found.", id)
	case !create:
		return nil, refuse(errcode.GroupIdNotFound, "Group %s is not a consumer group.", id)
	}
	return m.upgrade(now, g, out)
}

// beat is a heartbeat of a member that joins or stays.
func (m *Machine) beat(now time.Time, r coordinator.Request, req *message.ConsumerGroupHeartbeatRequest, out *coordinator.Result) *refusal {
	var records coordinator.Result
	c, bad := m.consumerOf(now, req.GroupId, req.MemberEpoch == joinEpoch, &records)
	if bad != nil {
		return bad
	}
	id := req.MemberId
	if id == "" {
		id = m.o.NewUUID().String()
	}
	old, replaced, bad := m.findMember(c, req, id)
	if bad != nil {
		return bad
	}
	updated := &consumerMember{id: id}
	if before := first(old, replaced); before != nil {
		*updated = *before
		updated.id = id
	}
	if updated.epoch < 0 || replaced != nil {
		updated.epoch, updated.previous = 0, 0
	}
	if bad := tell(updated, r, req); bad != nil {
		return bad
	}
	a := admission{m: m, g: m.groups[req.GroupId], ch: m.changeOf(req.GroupId, c), old: old, replaced: replaced, updated: updated,
		owned: ownedOf(req.TopicPartitions), known: req.TopicPartitions != nil}
	after := a.run(now, &records)

	full := req.RebalanceTimeoutMs != -1 && (req.SubscribedTopicNames != nil || req.SubscribedTopicRegex != nil) && req.TopicPartitions != nil
	resp := message.NewConsumerGroupHeartbeatResponse()
	resp.MemberId, resp.MemberEpoch, resp.HeartbeatIntervalMs = &id, after.epoch, m.consumerSettings(req.GroupId).heartbeatMs
	if req.MemberEpoch == joinEpoch || full || old == nil || !sameParts(old.assigned, after.assigned) {
		resp.Assignment = answerParts(after.assigned)
	}
	if g := m.groups[req.GroupId]; g != nil && g.classic != nil {
		for _, x := range g.classic.members { // the upgrade answers who waits, also if it cannot be written
			x.joining, x.syncing = coordinator.NoTicket, coordinator.NoTicket
		}
	}
	merge(out, &records)
	out.Reply(r.Ticket, resp)
	return nil
}

// findMember finds who sends a heartbeat, and whom a static member takes the place of.
func (m *Machine) findMember(c *consumerGroup, req *message.ConsumerGroupHeartbeatRequest, id string) (old, replaced *consumerMember, bad *refusal) {
	old = c.members[id]
	if req.InstanceId != nil {
		current, ok := c.static[*req.InstanceId]
		switch {
		case ok && current == id:
			old = c.members[current]
		case req.MemberEpoch == joinEpoch && ok:
			if replaced = c.members[current]; replaced.epoch != staticLeaveEpoch {
				return nil, nil, refuse(errcode.UnreleasedInstanceId, "Static member %s with instance id %s cannot join the group because the instance id is owned by %s member.", id, *req.InstanceId, current)
			}
			return nil, replaced, nil
		case req.MemberEpoch == joinEpoch:
		case !ok:
			return nil, nil, refuse(errcode.UnknownMemberId, "Instance id %s is unknown.", *req.InstanceId)
		default:
			return nil, nil, refuse(errcode.FencedInstanceId, "Static member %s with instance id %s was fenced by member %s.", id, *req.InstanceId, current)
		}
	}
	if old == nil {
		if req.MemberEpoch != joinEpoch {
			return nil, nil, refuse(errcode.UnknownMemberId, "Member %s is not a member of group %s.", id, req.GroupId)
		}
		if len(c.members) >= m.set.consumerMaxSize {
			return nil, nil, refuse(errcode.GroupMaxSizeReached, "The consumer group has reached its maximum capacity of %d members.", m.set.consumerMaxSize)
		}
		return nil, nil, nil
	}
	return old, nil, checkEpoch(old, req)
}

// checkEpoch holds a member to its epoch. The one before is accepted as long as the member has nothing that it has not
// been given since: then the answer with the new epoch was lost. Epoch 0 is always accepted: the member has forgotten.
func checkEpoch(x *consumerMember, req *message.ConsumerGroupHeartbeatRequest) *refusal {
	const text = "The consumer group member has a %s member epoch (%d) than the one known by the group coordinator (%d). The member must abandon all its partitions and rejoin."
	switch e := req.MemberEpoch; {
	case e == joinEpoch || e == x.epoch:
		return nil
	case e > x.epoch:
		return refuse(errcode.FencedMemberEpoch, text, "greater", e, x.epoch)
	case e == x.previous && req.TopicPartitions != nil && ownedOf(req.TopicPartitions).within(x.assigned):
		return nil
	default:
		return refuse(errcode.FencedMemberEpoch, text, "smaller", e, x.epoch)
	}
}

// tell takes what a heartbeat says into the member; null leaves things as they are.
func tell(x *consumerMember, r coordinator.Request, req *message.ConsumerGroupHeartbeatRequest) *refusal {
	x.clientID, x.clientHost, x.classic = r.ClientID, r.ClientHost, nil
	if req.InstanceId != nil {
		x.instance = req.InstanceId
	}
	if req.RackId != nil {
		x.rack = req.RackId
	}
	if req.RebalanceTimeoutMs != -1 {
		x.rebalanceMs = req.RebalanceTimeoutMs
	}
	if req.ServerAssignor != nil {
		x.assignor = req.ServerAssignor
	}
	if req.SubscribedTopicNames != nil && !slices.Equal(x.topics, req.SubscribedTopicNames) {
		x.topics = sortedStrings(req.SubscribedTopicNames)
	}
	if req.SubscribedTopicRegex != nil && *req.SubscribedTopicRegex != x.regex {
		if _, bad := compileRegex(*req.SubscribedTopicRegex); bad != nil {
			return bad
		}
		x.regex = *req.SubscribedTopicRegex
	}
	return nil
}

func answerParts(p parts) *message.ConsumerGroupHeartbeatResponseAssignment {
	a := &message.ConsumerGroupHeartbeatResponseAssignment{TopicPartitions: []message.ConsumerGroupHeartbeatResponseTopicPartitions{}}
	for _, t := range recordParts(p) {
		a.TopicPartitions = append(a.TopicPartitions, message.ConsumerGroupHeartbeatResponseTopicPartitions{TopicId: t.TopicId, Partitions: t.Partitions})
	}
	return a
}

// An admission is one member's way through a request, of either protocol: its metadata, the group's epoch, the target,
// and what of it the member may have.
type admission struct {
	m             *Machine
	g             *group // nil for a new group
	ch            *change
	old, replaced *consumerMember // as it was; the static member whose place it takes
	updated       *consumerMember
	owned         ownedParts
	known         bool
	reason        string
}

// run proposes everything that follows, and returns the member as it will be.
func (a *admission) run(now time.Time, out *coordinator.Result) *consumerMember {
	ch, c := a.ch, a.ch.c
	ch.updated = a.updated
	if a.replaced != nil {
		ch.gone[a.replaced.id], ch.moved = true, a.replaced.id
		tombstoneMember(ch.id, a.replaced, c, out)
	}
	before := first(a.old, a.replaced)
	if before == nil || a.replaced != nil || !sameMember(before, a.updated) {
		recordMember(ch.id, a.updated, out)
	}
	bump := a.resubscribed(before)
	if before != nil && before.regex != "" && before.regex != a.updated.regex {
		a.dropRegex(before.regex, out)
	}
	moved := false
	if bump || c.stale {
		moved = ch.rehash()
		if bump || moved {
			ch.bump(out)
		}
	}
	ch.assign(now, out)
	r := reconciliation{c: c, member: a.updated, target: ch.target[a.updated.id], targetEpoch: ch.targetEpoch, owned: a.owned, known: a.known}
	if a.replaced != nil {
		r.gone = []string{a.replaced.id}
	}
	if ch.epoch > ch.targetEpoch {
		r.reads = ch.reader(a.updated)
	}
	after := r.run()
	if after != a.updated || a.replaced != nil {
		recordCurrent(ch.id, after, out)
	}
	a.settle(now, after, bump && before != nil, moved, out)
	return after
}

// resubscribed reports whether the change alone begins a new epoch. A pattern that nobody has resolved does so later.
func (a *admission) resubscribed(before *consumerMember) bool {
	if before == nil {
		before = &consumerMember{}
	}
	x := a.updated
	return !slices.Equal(before.topics, x.topics) || !sameText(before.assignor, x.assignor) ||
		before.regex != x.regex && (x.regex == "" || a.ch.c.regexes[x.regex] != nil)
}

// dropRegex ends a pattern that nobody else has.
func (a *admission) dropRegex(regex string, out *coordinator.Result) {
	for _, x := range a.ch.members() {
		if x.regex == regex {
			return
		}
	}
	if a.ch.c.regexes[regex] != nil {
		tombstoneRegex(a.ch.id, regex, out)
	}
}

// reader returns a test of topics: does the member read it?
func (ch *change) reader(x *consumerMember) func(wire.UUID) bool {
	read := make(map[wire.UUID]bool)
	ch.reads(x, func(name string) {
		if t := ch.m.env.Image.Topic(name); t != nil {
			read[t.ID] = true
		}
	})
	return func(id wire.UUID) bool { return read[id] }
}

// settle starts the member's timers and writes history, at once or when the records are in the log.
func (a *admission) settle(now time.Time, after *consumerMember, resubscribed, moved bool, out *coordinator.Result) {
	m, id, old, epoch := a.m, a.ch.id, a.old, a.ch.c.epoch
	session := timerKey{sessionTimer, id, after.id}
	if len(out.Records) == 0 {
		m.timers.set(session, now.Add(m.session(id, after)))
		a.ch.c.stale = false
		return
	}
	out.Written = append(out.Written, func(now time.Time, next *coordinator.Result) {
		g := m.groups[id]
		g.consumer.stale = false
		m.timers.set(session, now.Add(m.session(id, after)))
		m.watchRevocation(now, g, after)
		m.watchRegexes(now, g)
		why := Event{Member: after.id, Instance: deref(after.instance), Reason: a.reason}
		switch {
		case a.replaced != nil:
			m.timers.stop(timerKey{sessionTimer, id, a.replaced.id})
			m.timers.stop(timerKey{revokeTimer, id, a.replaced.id})
			why.Cause = StaticMemberReplaced
		case old == nil:
			why.Cause = MemberJoined
		case resubscribed:
			why.Cause = SubscriptionChanged
		case moved:
			why.Cause, why.Member, why.Instance = PartitionsChanged, "", ""
		}
		if why.Cause != "" {
			g.history.add(why.at(now, epoch))
		}
		m.noteBalance(now, g)
		if a.replaced != nil && after.classic != nil {
			m.downgrade(now, g, nil, Event{Cause: Converted, Member: after.id}, next)
		}
	})
}

// noteBalance writes down, once per epoch, that every member has what it shall have.
func (m *Machine) noteBalance(now time.Time, g *group) {
	c := g.consumer
	if c != nil && g.history.balanced != c.epoch && c.state() == Stable {
		g.history.balanced = c.epoch
		g.history.add(Event{Cause: Balanced}.at(now, c.epoch))
	}
}

// watchRevocation gives a member that has to give up partitions its rebalance timeout for it.
func (m *Machine) watchRevocation(now time.Time, g *group, x *consumerMember) {
	key := timerKey{revokeTimer, g.id, x.id}
	switch {
	case x.state != memberUnrevoked:
		m.timers.stop(key)
	case !m.timers.running(key):
		m.timers.set(key, now.Add(time.Duration(x.rebalanceMs)*time.Millisecond))
	}
}

func sameMember(a, b *consumerMember) bool {
	return sameText(a.instance, b.instance) && sameText(a.rack, b.rack) && a.clientID == b.clientID && a.clientHost == b.clientHost &&
		slices.Equal(a.topics, b.topics) && a.regex == b.regex && a.rebalanceMs == b.rebalanceMs && sameText(a.assignor, b.assignor) && sameClassic(a, b)
}

func first(a, b *consumerMember) *consumerMember {
	if a != nil {
		return a
	}
	return b
}

// merge adds what was proposed apart.
func merge(out, from *coordinator.Result) {
	out.Records = append(out.Records, from.Records...)
	out.Replies = append(out.Replies, from.Replies...)
	out.Written = append(out.Written, from.Written...)
	out.Failed = append(out.Failed, from.Failed...)
}

// topicName is the name of a topic id, "" when it is gone.
func topicName(img *image.Image, id wire.UUID) string {
	if t := img.TopicByID(id); t != nil {
		return t.Name
	}
	return ""
}
