package server

import (
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Fetch sessions (KIP-227) let a client name only what changed between fetches, and the broker answer only what changed.
//
//	request (id, epoch)   meaning
//	(0, 0)                full fetch, make a session; answered with its id, or 0 when there is no room
//	(0, -1)               full fetch without a session
//	(id, 0)               full fetch, close session id, make another
//	(id, -1)              full fetch, close session id
//	(id, n)               next fetch of the session: n must be the expected epoch, which then becomes n+1 (1 after 2^31-1)
//
// A full fetch is never answered incrementally. A session is for topic ids or for topic names, never both.
const (
	noSession    = 0
	initialEpoch = 0
	finalEpoch   = -1
)

// evictAfter is how long a session must have been unused before any newcomer may take its place.
const evictAfter = 2 * time.Minute

// fetchSessions is the cache of all sessions of a broker, bounded by max.incremental.fetch.session.cache.slots.
type fetchSessions struct {
	mu      sync.Mutex
	slots   int
	random  func(n int64) int64
	byID    map[int32]*fetchSession
	evicted int64
}

// A fetchSession remembers the partitions of one client. All fields but id are guarded by the cache's lock; fetches work
// on copies, because nothing stops two connections from using one session.
type fetchSession struct {
	id      int32
	ids     bool // partitions are named by topic id
	replica bool // of a broker that follows: evicted last
	epoch   int32
	used    time.Time
	created time.Time
	parts   map[partKey]*cachedPartition
	head    cachedPartition // ring: head.next is the first in turn
	scratch []fetchPartition
	lent    bool // scratch is in use
}

type partKey struct {
	name  string
	id    wire.UUID
	index int32
}

// A cachedPartition is one partition of a session: what the client asks for, and what it was last told.
type cachedPartition struct {
	fetchParams
	highWatermark int64 // last told; -1 makes the next answer mention it
	logStart      int64
	prev, next    *cachedPartition
}

// A fetchContext is the partitions of one fetch, in the order in which they are read and answered.
type fetchContext struct {
	parts       []fetchPartition
	sessionID   int32
	sessions    *fetchSessions
	session     *fetchSession // incremental: where unchanged partitions are left out
	make        bool          // full: a session is wanted
	ids         bool
	replica     bool
	incremental bool
}

func newFetchSessions(slots int, random func(int64) int64) *fetchSessions {
	return &fetchSessions{slots: slots, random: random, byID: make(map[int32]*fetchSession)}
}

// context finds or ends the session that a request names, and lists the partitions to read.
func (s *fetchSessions) context(req *message.FetchRequest, version int16, now time.Time) (*fetchContext, errcode.Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.SessionEpoch == initialEpoch || req.SessionEpoch == finalEpoch {
		if req.SessionId != noSession {
			delete(s.byID, req.SessionId)
		}
		ctx := &fetchContext{sessions: s, ids: version >= 13, make: req.SessionEpoch == initialEpoch,
			replica: req.ReplicaId >= 0 || req.ReplicaState.ReplicaId >= 0}
		ctx.parts = requested(req)
		return ctx, errcode.None
	}
	session := s.byID[req.SessionId]
	switch {
	case session == nil:
		return nil, errcode.FetchSessionIdNotFound
	case session.epoch != req.SessionEpoch:
		return nil, errcode.InvalidFetchSessionEpoch
	case session.ids != (version >= 13):
		return nil, errcode.FetchSessionTopicIdError
	}
	session.update(req)
	if len(session.parts) == 0 {
		delete(s.byID, session.id)
		return &fetchContext{sessions: s, ids: session.ids}, errcode.None
	}
	session.used = now
	if session.epoch++; session.epoch < 0 {
		session.epoch = 1
	}
	return &fetchContext{sessions: s, session: session, sessionID: session.id, ids: session.ids,
		incremental: true, parts: session.borrow()}, errcode.None
}

// requested lists the partitions that a request names.
func requested(req *message.FetchRequest) []fetchPartition {
	req.Topics = mergeTopics(req.Topics,
		func(t *message.FetchRequestFetchTopic) topicKey { return topicKey{t.Topic, t.TopicId} },
		func(into, from *message.FetchRequestFetchTopic) {
			into.Partitions = append(into.Partitions, from.Partitions...)
		})
	n := 0
	for i := range req.Topics {
		t := &req.Topics[i]
		t.Partitions = lastOfEach(t.Partitions, func(p *message.FetchRequestFetchPartition) int32 { return p.Partition })
		n += len(t.Partitions)
	}
	parts := make([]fetchPartition, 0, n)
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			parts = append(parts, fetchPartition{fetchParams: paramsOf(&req.Topics[i], j)})
		}
	}
	return parts
}

func paramsOf(t *message.FetchRequestFetchTopic, j int) fetchParams {
	p := &t.Partitions[j]
	return fetchParams{name: t.Topic, id: t.TopicId, index: p.Partition, maxBytes: p.PartitionMaxBytes, offset: p.FetchOffset,
		currentEpoch: p.CurrentLeaderEpoch, fetchedEpoch: p.LastFetchedEpoch, logStart: p.LogStartOffset}
}

func (p *fetchParams) key() partKey { return partKey{name: p.name, id: p.id, index: p.index} }

// settle is called with what was read: it decides which partitions the answer mentions, remembers what the client is
// told, and makes the session that a full fetch asked for.
func (c *fetchContext) settle(now time.Time) {
	s := c.sessions
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.incremental:
		for i := range c.parts {
			fp := &c.parts[i]
			if fp.silent = !fp.cached.tell(&fp.result); !fp.silent && fp.result.size > 0 {
				c.session.moveBack(fp.cached) // who got data is read last next time
			}
		}
	case c.make:
		if session := s.create(c, now); session != nil {
			c.sessionID = session.id
		}
	}
}

// done takes back what the context borrowed.
func (c *fetchContext) done() {
	if c.session == nil {
		return
	}
	c.sessions.mu.Lock()
	c.session.giveBack(c.parts)
	c.sessions.mu.Unlock()
	c.session = nil
}

// create makes a session for a full fetch; nil when the cache is full of sessions with more right to stay.
func (s *fetchSessions) create(c *fetchContext, now time.Time) *fetchSession {
	if len(s.byID) >= s.slots && !s.evict(len(c.parts), c.replica, now) {
		return nil
	}
	id := int32(s.random(1<<31-1)) + 1
	for s.byID[id] != nil || id <= 0 {
		id = int32(s.random(1<<31-1)) + 1
	}
	session := &fetchSession{id: id, ids: c.ids, replica: c.replica, epoch: 1, used: now, created: now,
		parts: make(map[partKey]*cachedPartition, len(c.parts))}
	session.head.prev, session.head.next = &session.head, &session.head
	for i := range c.parts {
		fp := &c.parts[i]
		cached := session.add(fp.fetchParams)
		cached.tell(&fp.result)
	}
	s.byID[id] = session
	return session
}

// evict makes room for a session of a size: by one that nobody used for two minutes, or by a smaller one that is two
// minutes old; a follower's session goes before a consumer's only when it is stale.
func (s *fetchSessions) evict(size int, replica bool, now time.Time) bool {
	var victim *fetchSession
	for _, c := range s.byID {
		if now.Sub(c.used) > evictAfter && (victim == nil || c.used.Before(victim.used)) {
			victim = c
		}
	}
	if victim == nil {
		for _, c := range s.byID {
			weaker := !c.replica && replica || c.replica == replica && len(c.parts) < size
			if weaker && now.Sub(c.created) > evictAfter && (victim == nil || len(c.parts) < len(victim.parts)) {
				victim = c
			}
		}
	}
	if victim == nil {
		return false
	}
	delete(s.byID, victim.id)
	s.evicted++
	return true
}

// update takes over what an incremental request adds, changes and forgets.
func (s *fetchSession) update(req *message.FetchRequest) {
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			p := paramsOf(&req.Topics[i], j)
			if cached := s.parts[p.key()]; cached != nil {
				cached.fetchParams = p
			} else {
				s.add(p)
			}
		}
	}
	for i := range req.ForgottenTopicsData {
		f := &req.ForgottenTopicsData[i]
		for _, index := range f.Partitions {
			s.forget(partKey{name: f.Topic, id: f.TopicId, index: index})
		}
	}
}

func (s *fetchSession) add(p fetchParams) *cachedPartition {
	if old := s.parts[p.key()]; old != nil {
		old.fetchParams = p
		return old
	}
	c := &cachedPartition{fetchParams: p, highWatermark: -1, logStart: -1}
	s.parts[p.key()] = c
	s.linkLast(c)
	return c
}

func (s *fetchSession) linkLast(c *cachedPartition) {
	c.prev, c.next = s.head.prev, &s.head
	c.prev.next, s.head.prev = c, c
}

func (s *fetchSession) moveBack(c *cachedPartition) {
	if c.next == nil {
		return // forgotten meanwhile
	}
	c.prev.next, c.next.prev = c.next, c.prev
	s.linkLast(c)
}

func (s *fetchSession) forget(k partKey) {
	if c := s.parts[k]; c != nil {
		delete(s.parts, k)
		c.prev.next, c.next.prev = c.next, c.prev
		c.prev, c.next = nil, nil
	}
}

// borrow lists the session's partitions for a fetch, in memory that the session keeps if no other fetch has it.
func (s *fetchSession) borrow() []fetchPartition {
	var parts []fetchPartition
	if !s.lent {
		s.lent, parts = true, s.scratch[:0]
		s.scratch = nil
	}
	for c := s.head.next; c != &s.head; c = c.next {
		parts = append(parts, fetchPartition{cached: c, fetchParams: c.fetchParams})
	}
	return parts
}

func (s *fetchSession) giveBack(parts []fetchPartition) {
	clear(parts)
	s.scratch, s.lent = parts, false
}

// tell notes what the client hears about a partition and reports whether there is anything to hear: records, a moved
// high watermark or log start, a divergence, an error. After an error the partition is mentioned once more.
func (c *cachedPartition) tell(res *fetchResult) bool {
	news := res.size > 0 || res.diverging.Epoch >= 0
	if c.highWatermark != res.highWatermark {
		c.highWatermark, news = res.highWatermark, true
	}
	if c.logStart != res.logStart {
		c.logStart, news = res.logStart, true
	}
	if res.code != errcode.None {
		c.highWatermark, news = -1, true
	}
	return news
}

// mention reports whether the answer names the partition.
func (fp *fetchPartition) mention() bool { return !fp.silent }
