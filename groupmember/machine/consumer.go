package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// findAgain is how often the name of a topic id is asked for that no broker knows yet.
const findAgain = time.Second

// consumer is the member's side of ConsumerGroupHeartbeat (KIP-848). The coordinator gives an assignment; the member
// gives up what is not in it, takes over what is new, and tells with the next heartbeat. The coordinator gives a
// partition to its next member only when this one has told.
type consumer struct {
	*Member
	target   []idPartition // what the coordinator wants this member to have
	waiting  bool          // target is not reached yet
	fresh    bool          // the owner is to be told of the assignment even if nothing in it is new
	full     bool          // the next heartbeat has to tell everything
	changed  bool          // the subscription changed since it was told
	now      bool          // the next heartbeat is to go at once
	told     []TopicPartition
	interval time.Duration
	findAt   time.Time            // when names may be asked for again
	ids      map[string]wire.UUID // of what is held or was
	names    map[wire.UUID]string // the other way round
	since    time.Time            // first UNRELEASED_INSTANCE_ID in a row
	former   bool                 // lost without the coordinator's knowing: it may count us in still, with the epoch of before
}

// idPartition is a partition as assignments name it.
type idPartition struct {
	id        wire.UUID
	partition int32
}

func newConsumer(m *Member) *consumer {
	return &consumer{Member: m, full: true, fresh: true, interval: m.cfg.Heartbeat, ids: map[string]wire.UUID{}, names: map[wire.UUID]string{}}
}

func (c *consumer) where() State {
	switch {
	case c.generation.ID == NoGeneration:
		return Joining
	case c.waiting || c.revoking != nil:
		return Reconciling
	}
	return Stable
}

func (c *consumer) advance(now time.Time, eff *Effects) {
	if c.generation.ID == NoGeneration && !c.leaving {
		c.begin(now)
	}
	if !c.leaving {
		c.reconcile(now, eff)
	}
	c.beat(now, eff)
}

// reconcile goes towards the target as far as possible: first the owner gives up what is not in it, then it gets
// what is new and whose topic has a name.
func (c *consumer) reconcile(now time.Time, eff *Effects) {
	if !c.waiting || c.revoking != nil || c.generation.ID == NoGeneration {
		return
	}
	c.begin(now)
	want, missing := c.resolve()
	if len(missing) > 0 && !now.Before(c.findAt) {
		eff.FindNames, c.findAt = missing, now.Add(findAgain)
	}
	if gone := without(c.owned, want); len(gone) > 0 {
		c.revoke(gone, eff)
		c.fresh = true // it is told of the outcome, also when that brings nothing new
		return
	}
	if c.fresh || len(without(want, c.owned)) > 0 {
		c.fresh = false
		c.assign(want, eff)
	}
	if len(missing) == 0 {
		c.waiting, c.Member.reason = false, "assignment reached"
		c.finish(now, eff)
	}
	c.now = c.now || !slices.Equal(c.owned, c.told)
}

// resolve gives the target by names, sorted, and the ids without a name.
func (c *consumer) resolve() (want []TopicPartition, missing []wire.UUID) {
	for _, p := range c.target {
		name, known := c.name(p.id)
		if !known {
			if !slices.Contains(missing, p.id) {
				missing = append(missing, p.id)
			}
			continue
		}
		want = append(want, TopicPartition{Topic: name, Partition: p.partition})
	}
	return sorted(want), missing
}

// name finds the name of a topic id. What was known once stays known, so that a metadata answer without a topic takes
// nothing away from the owner.
func (c *consumer) name(id wire.UUID) (string, bool) {
	if name, known := c.names[id]; known {
		return name, true
	}
	if c.view == nil {
		return "", false
	}
	name, known := c.view.Name(id)
	if known {
		if old, replaced := c.ids[name]; replaced {
			delete(c.names, old)
			c.told = nil // the same name is now another topic, and has to be told as such
		}
		c.ids[name], c.names[id] = id, name
	}
	return name, known
}

// beat sends a heartbeat when one is due or there is something to tell.
func (c *consumer) beat(now time.Time, eff *Effects) {
	if c.inFlight[kindBeat] != nil || now.Before(c.retryAt) || !c.now && now.Before(c.nextBeat) {
		return
	}
	if c.generation.ID == NoGeneration && (c.leaving || !c.resolved) {
		return
	}
	if c.former {
		// Who joins under an id that the coordinator counts in gets its epoch again. A commit of the former life that is
		// still on its way would be taken for one of the new life then, after that has asked for the offsets. So the former
		// life is ended first: the epoch that follows is another one.
		r := c.farewell(false)
		r.kind, r.parting, r.Timeout = kindBeat, true, c.cfg.beatTimeout()
		c.now = false
		c.nextBeat = now.Add(c.interval)
		c.Member.send(now, r, eff)
		return
	}
	r := &Request{kind: kindBeat, MinVersion: 1, Timeout: c.cfg.beatTimeout(), full: c.full}
	body := message.NewConsumerGroupHeartbeatRequest()
	body.GroupId, body.MemberId, body.MemberEpoch = c.cfg.GroupID, c.generation.MemberID, max(c.generation.ID, 0)
	body.InstanceId = optional(c.cfg.InstanceID)
	if c.full || c.changed {
		body.SubscribedTopicNames = append([]string{}, c.topics...)
		if c.regex != "" || c.changed {
			body.SubscribedTopicRegex = &c.regex
		}
	}
	if c.full {
		body.RebalanceTimeoutMs = millis(c.cfg.Rebalance)
		body.RackId, body.ServerAssignor = optional(c.cfg.Rack), optional(c.cfg.RemoteAssignor)
	}
	if c.full || !slices.Equal(c.owned, c.told) {
		r.owned = append([]TopicPartition{}, c.owned...)
		body.TopicPartitions = c.withIDs(c.owned)
	}
	r.Body = body
	c.full, c.changed, c.now = false, false, false
	c.nextBeat = now.Add(c.interval)
	c.Member.send(now, r, eff)
}

// withIDs is a list of partitions as heartbeats have it; never nil.
func (c *consumer) withIDs(list []TopicPartition) []message.ConsumerGroupHeartbeatRequestTopicPartitions {
	out := []message.ConsumerGroupHeartbeatRequestTopicPartitions{}
	for _, g := range byTopic(list) {
		out = append(out, message.ConsumerGroupHeartbeatRequestTopicPartitions{TopicId: c.ids[g.Topic], Partitions: g.Partitions})
	}
	return out
}

// answered takes the answer to a heartbeat.
func (c *consumer) answered(now time.Time, req *Request, resp any, eff *Effects) {
	r := resp.(*message.ConsumerGroupHeartbeatResponse)
	code := errcode.Code(r.ErrorCode)
	if req.kind == kindLeave {
		c.goodbye(now, code, eff)
		return
	}
	if req.parting {
		c.parted(now, req, code, eff)
		return
	}
	if code == errcode.None {
		c.accepted(now, req, r)
		return
	}
	c.full = true // it may not know what this one told
	if code == errcode.GroupIdNotFound && req.generation.ID != NoGeneration {
		// Of the group nobody is left but classic members: this one was taken out, and joins again.
		code = errcode.UnknownMemberId
	}
	switch code {
	case errcode.UnknownMemberId, errcode.FencedMemberEpoch:
		c.lose(ErrLost, code.Name(), eff)
		c.retry(now)
	case errcode.UnreleasedInstanceId:
		// A member that was killed leaves its instance id behind until its session ends. The successor waits so long.
		if c.since.IsZero() {
			c.since = now
		}
		if now.Sub(c.since) <= c.cfg.Session+c.interval {
			c.retry(now)
			return
		}
		c.common(now, req, code, r.ErrorMessage, eff)
	case errcode.UnsupportedVersion, errcode.GroupIdNotFound, errcode.InconsistentGroupProtocol:
		if !c.fallBack() {
			c.common(now, req, code, r.ErrorMessage, eff)
		}
	default:
		c.common(now, req, code, r.ErrorMessage, eff)
	}
}

// parted takes the answer to the end of a former life. Whatever is final about it, joining will tell.
func (c *consumer) parted(now time.Time, req *Request, code errcode.Code, eff *Effects) {
	if code.Retriable() {
		c.common(now, req, code, nil, eff)
		return
	}
	c.fine()
	c.former, c.now = false, true
}

// accepted: the coordinator counts us in.
func (c *consumer) accepted(now time.Time, req *Request, r *message.ConsumerGroupHeartbeatResponse) {
	c.fine()
	c.since = time.Time{}
	if req.generation.ID == NoGeneration {
		c.heard(req.sent)
		c.target, c.waiting, c.fresh, c.Member.reason = nil, true, true, "joined"
	}
	c.heard(req.sent)
	c.generation.ID = r.MemberEpoch
	if r.HeartbeatIntervalMs > 0 && c.interval != time.Duration(r.HeartbeatIntervalMs)*time.Millisecond {
		c.interval = time.Duration(r.HeartbeatIntervalMs) * time.Millisecond
		c.nextBeat = req.sent.Add(c.interval)
	}
	if req.owned != nil {
		c.told = req.owned
	}
	if r.Assignment != nil {
		c.target = c.target[:0:0]
		for _, t := range r.Assignment.TopicPartitions {
			for _, p := range t.Partitions {
				c.target = append(c.target, idPartition{t.TopicId, p})
			}
		}
		slices.SortFunc(c.target, func(a, b idPartition) int { return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.partition, b.partition)) })
		c.waiting, c.Member.reason = true, "assignment received"
		c.findAt = time.Time{}
	}
	c.now = c.now || !slices.Equal(c.owned, c.told) || c.changed
}

func (c *consumer) due(earliest func(time.Time)) {
	later := func(t time.Time) {
		if t.Before(c.retryAt) {
			t = c.retryAt
		}
		earliest(t)
	}
	if c.inFlight[kindBeat] == nil && (c.generation.ID != NoGeneration || !c.leaving && c.resolved) {
		if c.now {
			earliest(c.retryAt)
		} else {
			later(c.nextBeat)
		}
	}
	if c.waiting && c.revoking == nil && !c.findAt.IsZero() && !c.leaving {
		earliest(c.findAt)
	}
}

// interrupted: nobody knows whether the last heartbeat arrived, so the next one tells everything. A new coordinator gives
// all members a whole session, also one that has died.
func (c *consumer) interrupted() { c.full, c.now, c.since = true, true, time.Time{} }

func (c *consumer) reset() {
	c.inFlight[kindBeat] = nil
	c.target, c.waiting, c.fresh, c.full, c.now, c.told = nil, false, true, true, true, nil
}

func (c *consumer) subscribed() { c.changed, c.now = true, true }

func (c *consumer) rejoin(string) { c.now = true }

func (c *consumer) topology(*Effects) { c.findAt = time.Time{} }

// owes: the coordinator waits for this member to give something up.
func (c *consumer) owes() bool {
	if c.revoking != nil {
		return true
	}
	want, _ := c.resolve()
	return c.waiting && len(without(c.owned, want)) > 0
}

// farewell is a heartbeat with epoch -1, or -2 from a static member that comes back.
func (c *consumer) farewell(stay bool) *Request {
	if c.generation.ID == NoGeneration && c.inFlight[kindBeat] == nil && !c.former {
		return nil
	}
	body := message.NewConsumerGroupHeartbeatRequest()
	body.GroupId, body.MemberId, body.MemberEpoch = c.cfg.GroupID, c.generation.MemberID, -1
	body.InstanceId = optional(c.cfg.InstanceID)
	if stay {
		body.MemberEpoch = -2
	}
	return &Request{kind: kindLeave, MinVersion: 1, Body: body}
}
