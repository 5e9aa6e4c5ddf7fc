package producer

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// request carries a machine.Request over a connection. It is reused with it, so issuing does not allocate.
type request struct {
	p     *Producer
	m     *machine.Request
	call  client.Call
	reply client.Reply
	// written tells whether the connection has begun to write it; until then it can be called back.
	written atomic.Int32
}

const (
	issued  = iota // not looked at by the connection yet
	begun          // the connection reads the batches
	revoked        // called back: it will not be written, and its end does not matter any more
)

// errRevoked ends the attempt of a request that was called back.
var errRevoked = errors.New("no connection to the broker in time")

// The versions of Produce this package writes: 3 is the first with magic 2 batches, 7 the first that takes zstd, 13
// the first with topic ids instead of names.
const (
	minVersion  = 3
	zstdVersion = 7
	idVersion   = 13
	// implicitVersion is the first whose leaders add their partitions to the transaction themselves (KIP-890).
	implicitVersion = 12
)

// send issues a request. Its batches are put in the order of their topics first, which the machine does not mind.
func (l *loop) send(mr *machine.Request) {
	r, _ := mr.Owner.(*request)
	if r == nil {
		r = &request{p: l.p, m: mr}
		mr.Owner = r
		r.call.AppendVec = r.appendTo
		r.call.Done = r.done
	}
	p := l.p
	r.call.Key = wire.KeyProduce
	r.call.MinVersion, r.call.MaxVersion = minVersion, idVersion
	if p.cfg.Compression == compress.Zstd {
		r.call.MinVersion = zstdVersion
	}
	if p.txnID != nil {
		l.boundVersions(&r.call)
	}
	mixed := false
	first := topicOf(mr.Batches[0])
	for _, mb := range mr.Batches {
		t := topicOf(mb)
		mixed = mixed || t != first
		if t.id.Load().IsZero() {
			r.call.MaxVersion = min(r.call.MaxVersion, idVersion-1)
		}
		if mb.Attempts > 1 {
			p.meter.SendRetries.Add(int64(mb.Count))
		}
		mb.Owner.(*batch).part.blocked.Store(0)
	}
	if mixed {
		slices.SortStableFunc(mr.Batches, func(a, b *machine.Batch) int { return topicOf(a).number - topicOf(b).number })
	}
	r.written.Store(issued)
	l.flying = append(l.flying, r)
	r.call.Timeout = p.cfg.RequestTimeout
	r.call.NoResponse = p.cfg.Acks == AcksNone
	p.cl.Issue(mr.Broker, client.Produce, &r.call)
}

func topicOf(mb *machine.Batch) *topic { return mb.Owner.(*batch).part.topic }

// appendTo writes the body of a ProduceRequest, with the batches where they are. It runs on the connection's
// goroutine, and checksums the batches there.
//
//	transactional id, acks, timeout, [ name or id, [ partition, records ] ]
//
// Compact lengths and empty tag sections from version 9 on.
func (r *request) appendTo(v *client.Vec, version int16) error {
	if !r.written.CompareAndSwap(issued, begun) {
		return errRevoked
	}
	flexible := version >= 9
	batches := r.m.Batches
	if flexible {
		v.B = wire.AppendCompactNullableString(v.B, r.p.txnID)
	} else {
		v.B = wire.AppendNullableString(v.B, r.p.txnID)
	}
	v.B = wire.AppendInt16(v.B, int16(r.p.cfg.Acks))
	v.B = wire.AppendInt32(v.B, int32(r.p.cfg.RequestTimeout/time.Millisecond))
	topics := 0
	for i := range batches {
		if i == 0 || topicOf(batches[i]) != topicOf(batches[i-1]) {
			topics++
		}
	}
	v.B = appendLen(v.B, flexible, topics)
	for i := 0; i < len(batches); {
		t := topicOf(batches[i])
		end := i + 1
		for end < len(batches) && topicOf(batches[end]) == t {
			end++
		}
		switch {
		case version >= idVersion:
			v.B = wire.AppendUUID(v.B, *t.id.Load())
		case flexible:
			v.B = wire.AppendCompactString(v.B, t.name)
		default:
			v.B = wire.AppendString(v.B, t.name)
		}
		v.B = appendLen(v.B, flexible, end-i)
		for ; i < end; i++ {
			b := batches[i].Owner.(*batch)
			bytes := b.bytes(r.p.txnID != nil)
			v.B = wire.AppendInt32(v.B, b.part.index)
			if flexible {
				v.B = wire.AppendUvarint(v.B, uint32(len(bytes)+1))
				v.Ref(bytes)
				v.B = append(v.B, 0)
			} else {
				v.B = wire.AppendInt32(v.B, int32(len(bytes)))
				v.Ref(bytes)
			}
		}
		if flexible {
			v.B = append(v.B, 0)
		}
	}
	if flexible {
		v.B = append(v.B, 0)
	}
	return nil
}

func appendLen(b []byte, flexible bool, n int) []byte {
	if flexible {
		return wire.AppendCompactArrayLen(b, n)
	}
	return wire.AppendArrayLen(b, n)
}

// done is the call's end; see client.Call.
func (r *request) done(reply client.Reply) {
	if r.written.Load() == revoked {
		return // the machine was told, and r is used for nothing else
	}
	r.reply = reply
	r.p.loop.replied(r)
}

// revoke calls a request back that no connection has begun to write, and tells the machine in the next step. Its
// batches are free at once: the connection will find it revoked and not look at them.
func (l *loop) revoke(r *request) bool {
	if !r.written.CompareAndSwap(issued, revoked) {
		return false
	}
	m := r.m
	m.Owner = nil // r stays with the client until its call ends
	m.Err = errRevoked
	l.landed(r)
	l.over = append(l.over, m)
	l.event(machine.Event{Kind: machine.Replied, Request: m})
	return true
}

// revokeExpired calls back what was never written of requests with batches whose time is up, so that those end as not
// written instead of unknown.
func (l *loop) revokeExpired(now time.Time) {
	for _, r := range slices.Clone(l.flying) {
		for _, mb := range r.m.Batches {
			if !now.Before(mb.Created.Add(l.p.cfg.DeliveryTimeout)) {
				l.revoke(r)
				break
			}
		}
	}
}

// carrier is the request in the air that carries a batch, nil if none does.
func (l *loop) carrier(mb *machine.Batch) *request {
	for _, r := range l.flying {
		if slices.Contains(r.m.Batches, mb) {
			return r
		}
	}
	return nil
}

func (l *loop) landed(r *request) {
	if i := slices.Index(l.flying, r); i >= 0 {
		l.flying = slices.Delete(l.flying, i, i+1)
	}
}

// response is the decoder's scratch.
type response struct {
	msg    message.ProduceResponse
	reader wire.Reader
}

// decode fills in what the machine wants to know, and passes hints of new leaders on to the client.
func (r *request) decode(s *response) {
	m := r.m
	m.Results = slices.Grow(m.Results[:0], len(m.Batches))[:len(m.Batches)]
	if r.reply.Err != nil {
		m.Err, m.Written = r.reply.Err, r.reply.Written
		m.Fatal = !client.Retriable(m.Err)
		return
	}
	r.p.meter.SendLatency.Add(r.reply.Latency)
	if r.call.NoResponse {
		return
	}
	s.reader.Reset(r.reply.Body)
	err := s.msg.ReadFrom(&s.reader, r.reply.Version)
	r.reply.Body = nil
	if err != nil {
		m.Err, m.Written = err, true
		return
	}
	for i, mb := range m.Batches {
		m.Results[i] = machine.Result{Missing: true, BaseOffset: -1, AppendTime: -1}
		mb.Owner.(*batch).part.slot = i
	}
	for i := range s.msg.Responses {
		tr := &s.msg.Responses[i]
		t := r.topic(tr)
		if t == nil {
			continue // a topic we did not ask about
		}
		parts := *t.parts.Load()
		for j := range tr.PartitionResponses {
			pr := &tr.PartitionResponses[j]
			if pr.Index < 0 || int(pr.Index) >= len(parts) {
				continue
			}
			at := parts[pr.Index].slot
			if at >= len(m.Batches) || m.Batches[at].Owner.(*batch).part != parts[pr.Index] {
				continue // a partition we did not ask about
			}
			m.Results[at] = resultOf(pr)
			if hint := pr.CurrentLeader; hint.LeaderId >= 0 {
				r.learn(topicOf(m.Batches[at]), pr, s.msg.NodeEndpoints)
			}
		}
	}
	if ms := s.msg.ThrottleTimeMs; ms > 0 {
		r.p.cl.Throttle(m.Broker, client.Produce, wire.KeyProduce, time.Duration(ms)*time.Millisecond)
	}
}

// topic is the topic of the request that a part of the answer is about. Brokers do not keep the order of a request.
func (r *request) topic(tr *message.TopicProduceResponse) *topic {
	var last *topic
	for _, mb := range r.m.Batches {
		t := topicOf(mb)
		if t == last {
			continue
		}
		last = t
		if r.reply.Version >= idVersion && *t.id.Load() == tr.TopicId || r.reply.Version < idVersion && t.name == tr.Name {
			return t
		}
	}
	return nil
}

func resultOf(pr *message.PartitionProduceResponse) machine.Result {
	res := machine.Result{
		Code: errcode.Code(pr.ErrorCode), BaseOffset: pr.BaseOffset, AppendTime: pr.LogAppendTimeMs,
	}
	if pr.ErrorCode == 0 {
		return res
	}
	c := &machine.Complaint{Message: text(pr.ErrorMessage)}
	res.Complaint = c
	for _, e := range pr.RecordErrors {
		c.Records = append(c.Records, machine.RecordError{Index: e.BatchIndex, Message: text(e.BatchIndexErrorMessage)})
	}
	return res
}

func (r *request) learn(t *topic, pr *message.PartitionProduceResponse, endpoints []message.ProduceResponseNodeEndpoint) {
	nodes := make([]client.Node, 0, len(endpoints))
	for _, e := range endpoints {
		nodes = append(nodes, client.Node{ID: e.NodeId, Host: e.Host, Port: e.Port, Rack: text(e.Rack)})
	}
	r.p.cl.LearnLeader(*t.id.Load(), pr.Index, pr.CurrentLeader.LeaderId, pr.CurrentLeader.LeaderEpoch, nodes)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
