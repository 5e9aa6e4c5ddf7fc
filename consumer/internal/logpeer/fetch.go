package logpeer

import (
	"bytes"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

type session struct {
	broker int32
	epoch  int32 // expected next
	parts  map[key]*cached
	order  []key
}

type key struct {
	topic     string
	id        wire.UUID
	partition int32
}

type cached struct {
	req  message.FetchRequestFetchPartition
	told bool // hw and log start below were sent
	hw   int64
	log  int64
	err  int16
}

// DropSessions forgets all sessions, as a broker does that restarts.
func (c *Cluster) DropSessions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.sessions)
}

// Sessions is how many sessions there are.
func (c *Cluster) Sessions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions)
}

// fetch answers as Kafka does: sessions first, then it waits until there is enough, then it reads.
func (c *Cluster) fetch(r *wiretest.Request, req *message.FetchRequest) message.Response {
	deadline := time.NewTimer(time.Duration(req.MaxWaitMs) * time.Millisecond)
	defer deadline.Stop()
	c.mu.Lock()
	s, code := c.session(r.Broker, req)
	if code != errcode.None {
		c.mu.Unlock()
		return &message.FetchResponse{ErrorCode: int16(code)}
	}
	for {
		resp, size, urgent := c.read(r, req, s, false)
		if urgent || size >= int(req.MinBytes) || req.MaxWaitMs == 0 {
			c.mu.Unlock()
			return resp
		}
		grown := c.grown
		c.mu.Unlock()
		select {
		case <-grown:
			c.mu.Lock()
		case <-deadline.C:
			c.mu.Lock()
			resp, _, _ = c.read(r, req, s, true)
			c.mu.Unlock()
			return resp
		}
	}
}

// session finds, makes or refuses the session of a request (KIP-227).
func (c *Cluster) session(broker int32, req *message.FetchRequest) (*session, errcode.Code) {
	if req.SessionEpoch <= 0 {
		delete(c.sessions, req.SessionId)
		s := &session{broker: broker, parts: map[key]*cached{}}
		if req.SessionEpoch == 0 {
			c.lastID++
			c.sessions[c.lastID] = s
			s.epoch = 1
		}
		s.add(req)
		return s, errcode.None
	}
	s := c.sessions[req.SessionId]
	if s == nil || s.broker != broker {
		return nil, errcode.FetchSessionIdNotFound
	}
	if s.epoch != req.SessionEpoch {
		return nil, errcode.InvalidFetchSessionEpoch
	}
	s.epoch++
	for _, t := range req.ForgottenTopicsData {
		for _, p := range t.Partitions {
			k := key{t.Topic, t.TopicId, p}
			if s.parts[k] == nil {
				return nil, errcode.InvalidRequest // nobody forgets what was never asked for
			}
			delete(s.parts, k)
		}
	}
	s.add(req)
	return s, errcode.None
}

func (s *session) add(req *message.FetchRequest) {
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			k := key{t.Topic, t.TopicId, p.Partition}
			if s.parts[k] == nil {
				s.order = append(s.order, k)
			}
			s.parts[k] = &cached{req: p}
		}
	}
}

func (c *Cluster) idOf(s *session) int32 {
	for id, other := range c.sessions {
		if other == s {
			return id
		}
	}
	return 0
}

// read makes the answer. Without last nothing is noted as sent unless there is something urgent or enough.
func (c *Cluster) read(r *wiretest.Request, req *message.FetchRequest, s *session, last bool) (*message.FetchResponse, int, bool) {
	resp := &message.FetchResponse{SessionId: c.idOf(s)}
	full := req.SessionEpoch <= 0
	size, urgent := 0, false
	var moved, rest []key
	for _, k := range s.order {
		q := s.parts[k]
		if q == nil {
			continue
		}
		d := c.readPart(r, req, k, q, &size)
		if d.ErrorCode != 0 || d.DivergingEpoch.Epoch >= 0 || d.PreferredReadReplica >= 0 {
			urgent = true
		}
		if full || len(d.Records) > 0 || d.ErrorCode != 0 || d.DivergingEpoch.Epoch >= 0 || d.PreferredReadReplica >= 0 ||
			!q.told || q.hw != d.HighWatermark || q.log != d.LogStartOffset {
			resp.Responses = append(resp.Responses, message.FetchableTopicResponse{Topic: k.topic, TopicId: k.id,
				Partitions: []message.FetchResponsePartitionData{d}})
		}
		if len(d.Records) > 0 {
			moved = append(moved, k)
		} else {
			rest = append(rest, k)
		}
	}
	if urgent || size >= int(req.MinBytes) || last || req.MaxWaitMs == 0 {
		s.order = append(rest, moved...)
		for _, t := range resp.Responses {
			d := &t.Partitions[0]
			q := s.parts[key{t.Topic, t.TopicId, d.PartitionIndex}]
			q.told, q.hw, q.log, q.err = true, d.HighWatermark, d.LogStartOffset, d.ErrorCode
		}
	}
	return resp, size, urgent
}

// readPart reads one partition.
func (c *Cluster) readPart(r *wiretest.Request, req *message.FetchRequest, k key, q *cached, size *int) message.FetchResponsePartitionData {
	var d message.FetchResponsePartitionData
	d.SetDefaults()
	d.PartitionIndex = k.partition
	d.HighWatermark, d.LastStableOffset, d.LogStartOffset = -1, -1, -1
	fail := func(code errcode.Code) message.FetchResponsePartitionData {
		d.ErrorCode = int16(code)
		return d
	}
	t := c.find(k.topic, k.id)
	switch {
	case t == nil && r.Version >= 13:
		return fail(errcode.UnknownTopicId)
	case t == nil || int(k.partition) >= len(t.parts):
		return fail(errcode.UnknownTopicOrPartition)
	}
	p := t.parts[k.partition]
	if p.Leader != r.Broker && p.Preferred != r.Broker {
		if r.Version >= 12 {
			d.CurrentLeader.LeaderId, d.CurrentLeader.LeaderEpoch = p.Leader, p.Epoch
		}
		return fail(errcode.NotLeaderOrFollower)
	}
	if code := p.checkEpoch(q.req.CurrentLeaderEpoch); code != errcode.None {
		return fail(code)
	}
	offset := q.req.FetchOffset
	if offset < p.LogStart {
		return fail(errcode.OffsetOutOfRange)
	}
	if e := q.req.LastFetchedEpoch; e >= 0 {
		if epoch, end := p.endOf(e); epoch < e || end < offset {
			d.DivergingEpoch.Epoch, d.DivergingEpoch.EndOffset = epoch, end
			return d
		}
	}
	if offset > p.end {
		return fail(errcode.OffsetOutOfRange)
	}
	d.HighWatermark, d.LastStableOffset, d.LogStartOffset = p.end, p.stable(), p.LogStart
	if p.Preferred >= 0 && p.Preferred != r.Broker && req.RackId != "" {
		d.PreferredReadReplica = p.Preferred
		return d
	}
	p.fill(&d, req, q, size)
	return d
}

// fill copies whole batches within the limits; the first one of an answer always goes.
func (p *Partition) fill(d *message.FetchResponsePartitionData, req *message.FetchRequest, q *cached, size *int) {
	limit := p.end
	if req.IsolationLevel == 1 {
		limit = p.stable()
	}
	var out bytes.Buffer
	last := q.req.FetchOffset
	for _, b := range p.batches {
		if b.next <= q.req.FetchOffset || b.base >= limit {
			continue
		}
		if *size > 0 && (*size+len(b.bytes) > int(req.MaxBytes) || out.Len()+len(b.bytes) > int(q.req.PartitionMaxBytes)) {
			break
		}
		out.Write(b.bytes)
		*size += len(b.bytes)
		last = b.next
	}
	d.Records = out.Bytes()
	if req.IsolationLevel == 1 && out.Len() > 0 {
		d.AbortedTransactions = []message.AbortedTransaction{}
		for _, a := range p.aborted {
			if a.first < last && a.last >= q.req.FetchOffset { // exactly what overlaps with the answer
				d.AbortedTransactions = append(d.AbortedTransactions, message.AbortedTransaction{ProducerId: a.producer, FirstOffset: a.first})
			}
		}
	}
}

func (p *Partition) checkEpoch(current int32) errcode.Code {
	switch {
	case current < 0 || current == p.Epoch:
		return errcode.None
	case current < p.Epoch:
		return errcode.FencedLeaderEpoch
	}
	return errcode.UnknownLeaderEpoch
}

// endOf is the largest epoch up to e that the log has, and where it ends.
func (p *Partition) endOf(e int32) (int32, int64) {
	if e > p.Epoch {
		return -1, -1
	}
	found, end := int32(-1), int64(-1)
	for i, s := range p.epochs {
		if s.epoch > e {
			break
		}
		found, end = s.epoch, p.end
		if i+1 < len(p.epochs) {
			end = p.epochs[i+1].start
		}
	}
	return found, end
}
