package server

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/purgatory"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleFetch reads, and answers at once if there is enough; otherwise it waits in purgatory until appends have brought
// min.bytes over all partitions, a partition has an error, or max.wait has passed since arrival, and reads again: what is
// answered is always a read of that moment.
//
//	session context -> resolve partitions -> read ──enough──> answer
//	                                           └──not yet──> purgatory ──event, deadline──> read -> answer
//
// Waiting and waking cost nothing per record; the second read runs on the connection that asked (Exchange.Resume).
func handleFetch(b *Broker, r *Request) {
	req := r.Body.(*message.FetchRequest)
	if req.IsolationLevel < 0 || req.IsolationLevel > 1 {
		refuseFetch(r, req, errcode.UnknownServerError)
		return
	}
	ctx, code := b.sessions.context(req, r.Version, r.Received)
	if code != errcode.None {
		r.RespondRaw(&fetchAnswer{request: r, code: code})
		return
	}
	f := &fetch{
		broker:    b,
		request:   r,
		ctx:       ctx,
		replica:   req.ReplicaId,
		minBytes:  int(req.MinBytes),
		maxBytes:  int(min(req.MaxBytes, b.fetchMaxBytes())),
		bound:     storage.BoundHighWatermark,
		committed: req.IsolationLevel == 1,
	}
	if r.Version >= 15 {
		f.replica = req.ReplicaState.ReplicaId
	}
	switch {
	case f.replica >= 0:
		f.bound = storage.BoundLogEnd
	case f.committed:
		f.bound = storage.BoundStable
	}
	f.maxWait = time.Duration(req.MaxWaitMs) * time.Millisecond
	f.readAndAnswer()
}

// refuseFetch answers with one error for all: what Apache Kafka does with an isolation level that does not exist.
func refuseFetch(r *Request, req *message.FetchRequest, code errcode.Code) {
	ctx := &fetchContext{parts: requested(req)}
	for i := range ctx.parts {
		ctx.parts[i].result = failedFetch(code)
		ctx.parts[i].result.abortedSet = true
	}
	r.RespondRaw(&fetchAnswer{request: r, code: code, ctx: ctx})
}

// A fetch is one Fetch request at work.
type fetch struct {
	broker    *Broker
	request   *Request
	ctx       *fetchContext
	replica   int32         // id of the broker that follows; negative for consumers
	maxWait   time.Duration // since arrival
	minBytes  int
	maxBytes  int
	bound     storage.Bound
	committed bool // read_committed: the aborted list is wanted

	bytes   int  // read, over all partitions
	urgent  bool // an error or a divergence that must not wait
	lost    bool // a partition has gone, or moved, during the wait
	readers int  // partitions that were read, or could have been but for an error
}

// A fetchPartition is one partition of a fetch: what was asked, and what was read.
type fetchPartition struct {
	cached *cachedPartition // its place in the session; nil without one
	fetchParams

	p        *partition // nil when it is unknown
	appended int64      // what readable said before the read
	silent   bool       // nothing new: the answer leaves it out
	result   fetchResult
}

// fetchParams is what a Fetch request says about one partition; a session keeps it between requests.
type fetchParams struct {
	name         string // topic, up to version 12
	id           wire.UUID
	index        int32
	maxBytes     int32
	offset       int64
	currentEpoch int32 // leader epoch the client knows, -1 none
	fetchedEpoch int32 // epoch of the last record it has, -1 none
	logStart     int64 // follower's log start
}

// fetchResult is the answer for one partition.
type fetchResult struct {
	code          errcode.Code
	highWatermark int64
	stable        int64
	logStart      int64
	diverging     storage.EpochEnd // Epoch -1: none
	leader, epoch int32            // current leader where the error calls for it; -1 none
	aborted       []storage.AbortedTxn
	abortedSet    bool // read_committed: the list is there, if empty
	records       storage.Records
	size          int
}

func (b *Broker) fetchMaxBytes() int32 { return int32(b.Config().Int("fetch.max.bytes")) }

// read reads every partition in the order of the context, within the limits of the request. The first batch found is
// returned whole however large it is, so that a consumer cannot get stuck; only the first.
func (f *fetch) read() {
	left, oversize := f.maxBytes, true
	f.bytes, f.urgent, f.readers = 0, false, 0
	for i := range f.ctx.parts {
		fp := &f.ctx.parts[i]
		f.readPartition(fp, left, oversize)
		if fp.result.size > 0 {
			oversize = false
			left = max(0, left-fp.result.size)
			f.bytes += fp.result.size
		}
	}
}

func failedFetch(code errcode.Code) fetchResult {
	return fetchResult{code: code, highWatermark: -1, stable: -1, logStart: -1,
		diverging: storage.EpochEnd{Epoch: -1, EndOffset: -1}, leader: -1, epoch: -1}
}

func (f *fetch) readPartition(fp *fetchPartition, left int, oversize bool) {
	b := f.broker
	t, code := b.fetchTopic(f.request.Version, fp)
	if fp.p = t.partition(fp.index); code == errcode.None && fp.p == nil {
		code = errcode.UnknownTopicOrPartition
	}
	if code == errcode.None {
		code = f.request.outcome.For(t.name)
		f.urgent = f.urgent || code != errcode.None
	}
	if code != errcode.None {
		fp.result = failedFetch(code)
		fp.result.abortedSet = true // empty here and null for other errors, as in Apache Kafka's answers
		return
	}
	f.readers++
	if fp.p, code = b.leads(t, fp.index); code == errcode.None {
		code = fp.p.checkEpoch(fp.currentEpoch)
	}
	if code == errcode.None && f.replica >= 0 {
		code = fp.p.knowsFollower(f.replica)
	}
	if code == errcode.None {
		code = f.readLog(fp, left, oversize)
	}
	if code != errcode.None {
		fp.result = failedFetch(code)
		f.urgent = true
		if f.request.Version >= 16 && (code == errcode.NotLeaderOrFollower || code == errcode.FencedLeaderEpoch) {
			fp.result.leader, fp.result.epoch, _ = b.currentLeader(f.request.Listener, t, fp.index)
		}
	}
}

// readLog reads one partition's log. The divergence check comes first: a reader whose last record is not ours must be
// told before it is given more.
func (f *fetch) readLog(fp *fetchPartition, left int, oversize bool) errcode.Code {
	log := fp.p.log
	res := fetchResult{diverging: storage.EpochEnd{Epoch: -1, EndOffset: -1}, leader: -1, epoch: -1}
	fp.appended = f.readable(fp.p)
	if fp.fetchedEpoch >= 0 {
		end, code := divergence(log, fp)
		if code != errcode.None {
			return code
		}
		if end.Epoch >= 0 {
			res.diverging = end
			res.logStart, res.stable, res.highWatermark, _ = log.Offsets()
			fp.result = res
			f.urgent = true
			return errcode.None
		}
	}
	limit := min(int(fp.maxBytes), left)
	if limit < 0 {
		return errcode.UnknownServerError
	}
	data, err := log.Read(fp.offset, limit, f.bound, oversize)
	if err != nil {
		return storage.CodeOf(err)
	}
	res.highWatermark, res.stable, res.logStart = data.HighWatermark, data.LastStableOffset, data.LogStartOffset
	res.records, res.size = data.Records, data.Records.Len
	res.aborted, res.abortedSet = data.Aborted, f.committed
	end := data.HighWatermark
	if f.bound == storage.BoundStable {
		end = data.LastStableOffset
	}
	// There is more to read than one read gives (a segment ends, a limit was met): nothing would be gained by waiting.
	f.urgent = f.urgent || res.size > 0 && data.NextOffset < end
	fp.result = res
	return errcode.None
}

// divergence compares the epoch of a reader's last record with the log (KIP-320, KIP-595). Epoch -1 means that they agree.
func divergence(log *storage.Log, fp *fetchPartition) (storage.EpochEnd, errcode.Code) {
	none := storage.EpochEnd{Epoch: -1, EndOffset: -1}
	if fp.offset < log.LogStartOffset() {
		return none, errcode.OffsetOutOfRange
	}
	end := log.EndOffsetForEpoch(fp.fetchedEpoch)
	if end.Epoch < 0 || end.EndOffset < 0 {
		return none, errcode.OffsetOutOfRange
	}
	if end.Epoch < fp.fetchedEpoch || end.EndOffset < fp.offset {
		return end, errcode.None
	}
	return none, errcode.None
}

func (b *Broker) fetchTopic(version int16, fp *fetchPartition) (*topic, errcode.Code) {
	if version >= 13 {
		if t := b.table.identified(fp.id); t != nil {
			return t, errcode.None
		}
		return nil, errcode.UnknownTopicId
	}
	if t := b.table.named(fp.name); t != nil {
		return t, errcode.None
	}
	return nil, errcode.UnknownTopicOrPartition
}

// knowsFollower refuses brokers that hold no replica, and the leader's own id.
func (p *partition) knowsFollower(id int32) errcode.Code {
	s := p.state.Load()
	for _, r := range s.replicas {
		if r == id && r != s.leader {
			return errcode.None
		}
	}
	return errcode.NotLeaderOrFollower
}

// enough reports whether the answer need not wait.
func (f *fetch) enough() bool {
	return f.readers == 0 || f.urgent || f.bytes >= f.minBytes
}

// arrived is the purgatory's question: has enough been appended since the read, or has anything gone wrong? It only
// looks at counters.
func (f *fetch) arrived() bool {
	total := 0
	for i := range f.ctx.parts {
		fp := &f.ctx.parts[i]
		p := fp.p
		if p == nil || fp.result.code != errcode.None {
			continue
		}
		if !p.isLeader(f.broker.opts.NodeID) || p.checkEpoch(fp.currentEpoch) != errcode.None {
			f.lost = true
			return true
		}
		total += min(fp.result.size+int(f.readable(p)-fp.appended), int(fp.maxBytes))
	}
	return total > 0 && total >= f.minBytes
}

// readable counts the bytes that this reader may see. What is in an open transaction does not end the wait of a reader of
// committed records, its marker does.
func (f *fetch) readable(p *partition) int64 {
	if f.bound == storage.BoundStable {
		return p.log.StableBytes()
	}
	return p.appended.Load()
}

func (f *fetch) keys() []*partition {
	keys := make([]*partition, 0, len(f.ctx.parts))
	for i := range f.ctx.parts {
		if p := f.ctx.parts[i].p; p != nil {
			keys = append(keys, p)
		}
	}
	return keys
}

// readAndAnswer answers unless the fetch has to wait, after which it comes here again: what woke it only counted, and may
// have counted a batch that the last read had seen already. A partition that was lost ends the wait for all.
func (f *fetch) readAndAnswer() {
	f.read()
	if f.maxWait > 0 && !f.lost && !f.enough() {
		if left := f.maxWait - time.Since(f.request.Received); left > 0 {
			f.wait(left)
			return
		}
	}
	f.answer()
}

func (f *fetch) wait(left time.Duration) {
	f.release() // files are not held open over a wait: it ends with another read
	op := &purgatory.Operation{Try: f.arrived, Done: func(o purgatory.Outcome) {
		if o != purgatory.Satisfied {
			f.maxWait = 0
		}
		f.request.x.Resume(f.readAndAnswer)
	}}
	f.broker.waiting.Watch(op, left, f.keys()...)
}

// release lets go of files that the last read holds.
func (f *fetch) release() {
	for i := range f.ctx.parts {
		f.ctx.parts[i].result.records.Release()
	}
}

// answer responds with what was read; the session decides which partitions are worth mentioning.
func (f *fetch) answer() {
	a := &fetchAnswer{request: f.request, ctx: f.ctx}
	f.ctx.settle(f.request.Received)
	if f.replica < 0 && f.request.Version >= 16 && f.urgent {
		a.hints = f.leaderHints()
	}
	f.request.RespondRaw(a)
}

// leaderHints says where the leaders live that the answer names (KIP-951).
func (f *fetch) leaderHints() []message.FetchResponseNodeEndpoint {
	var hints []message.FetchResponseNodeEndpoint
	seen := make(map[int32]bool)
	for i := range f.ctx.parts {
		fp := &f.ctx.parts[i]
		if fp.result.leader < 0 || seen[fp.result.leader] {
			continue
		}
		seen[fp.result.leader] = true
		t, _ := f.broker.fetchTopic(f.request.Version, fp)
		if id, _, node := f.broker.currentLeader(f.request.Listener, t, fp.index); node != nil {
			hints = append(hints, message.FetchResponseNodeEndpoint{NodeId: id, Host: node.host, Port: node.port, Rack: node.rack})
		}
	}
	return hints
}
