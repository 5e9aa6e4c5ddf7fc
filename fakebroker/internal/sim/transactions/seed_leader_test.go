package transactions

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// leader is a partition of out with its log, on one broker.
type leader struct {
	w      *world
	index  int32
	broker int32
	fs     *vfs.MemFS
	l      *storage.Log
	life   int // of the broker's process
	held   []func()
}

func newLeader(w *world, index, broker int32) *leader {
	p := &leader{w: w, index: index, broker: broker, fs: vfs.NewMem()}
	p.open()
	return p
}

func (p *leader) open() {
	cfg := storage.DefaultLogConfig()
	l, err := storage.OpenLog(storage.LogOptions{FS: p.fs, Dir: fmt.Sprintf("d/out-%d", p.index),
		Partition: storage.TopicPartition{Topic: "out", Partition: p.index}, Config: cfg}, p.w.Now)
	if err != nil {
		p.w.Fail("out-%d does not open: %v", p.index, err)
	}
	p.l = l
	p.life++
	p.l.SetHighWatermark(p.l.LogEndOffset())
}

// crash ends the broker's process: what was written is there when it is opened again.
func (p *leader) crash() {
	p.life++
	p.held = nil
}

// produce appends a batch: the coordinator of its transaction is asked first, unless the transaction is known to be open here.
func (p *leader) produce(batch []byte, version int16, reply func(errcode.Code, int64)) {
	w, life := p.w, p.life
	h, err := record.ParseHeader(batch)
	if err != nil {
		w.Fail("a batch without a header: %v", err)
	}
	by := transaction.Producer{ID: h.ProducerID, Epoch: h.ProducerEpoch}
	implicit := version >= 12
	guard, err := p.l.StartVerification(by.ID, by.Epoch, h.BaseSequence, implicit, w.Now)
	if err != nil {
		w.Sometimes("batch refused before verification: " + storage.CodeOf(err).Name())
		reply(storage.CodeOf(err), -1)
		return
	}
	if guard == 0 {
		p.append(batch, guard, reply)
		return
	}
	w.verify(transaction.TopicPartition{Topic: "out", Partition: p.index}, by, implicit, func(code errcode.Code) {
		if life != p.life {
			return // its broker is not what it was
		}
		switch code {
		case errcode.None:
			p.append(batch, guard, reply)
			return
		case errcode.CoordinatorNotAvailable, errcode.CoordinatorLoadInProgress, errcode.NotCoordinator:
			code = errcode.NotEnoughReplicas
		case errcode.ConcurrentTransactions:
			if !implicit {
				code = errcode.NotEnoughReplicas
			}
		case errcode.InvalidProducerIdMapping:
			code = errcode.InvalidTxnState
		case errcode.ProducerFenced:
			code = errcode.InvalidProducerEpoch
		case errcode.TransactionAbortable:
			if version < 11 {
				code = errcode.InvalidTxnState
			}
		}
		w.Sometimes("verification refused: " + code.Name())
		reply(code, -1)
	})
}

// verify asks the coordinator about a partition for a leader, or has it added.
func (w *world) verify(tp transaction.TopicPartition, by transaction.Producer, add bool, done func(errcode.Code)) {
	ask := func(answer func(errcode.Code)) {
		if !w.up[w.coord.leader] {
			answer(errcode.CoordinatorNotAvailable)
			return
		}
		var body any = transaction.VerifyPartitions{ID: seedID, Producer: by, Partitions: []transaction.TopicPartition{tp}}
		if add {
			body = transaction.AddPartitions{ID: seedID, Producer: by, Partitions: []transaction.TopicPartition{tp}, Version: 2}
		}
		w.coord.ask(body, func(r any, code errcode.Code) {
			if codes, ok := r.([]errcode.Code); ok && code == errcode.None {
				code = codes[0]
			}
			answer(code)
		})
	}
	over := false
	w.After(2*time.Second, func() {
		if !over {
			over = true
			done(errcode.CoordinatorNotAvailable)
		}
	})
	if w.lost() {
		return
	}
	w.After(w.delay(), func() {
		ask(func(code errcode.Code) {
			if w.lost() {
				return
			}
			w.After(w.delay(), func() {
				if !over {
					over = true
					done(code)
				}
			})
		})
	})
}

func (p *leader) append(batch []byte, guard uint64, reply func(errcode.Code, int64)) {
	w := p.w
	h, _ := record.ParseHeader(batch)
	what := labelOf(batch)
	info, err := p.l.AppendTransactional(batch, 0, storage.FromClient, storage.Verification{Required: true, Guard: guard}, w.Now)
	if err != nil {
		code := storage.CodeOf(err)
		w.Note("out-%d refuses %+v of %d/%d sequence %d: %s", p.index, what, h.ProducerID, h.ProducerEpoch, h.BaseSequence, code.Name())
		w.Sometimes("batch refused: " + code.Name())
		reply(code, -1)
		return
	}
	if info.Duplicate {
		w.Sometimes("duplicate batch recognised")
	} else {
		w.Note("out-%d offset %d: %+v of %d/%d sequence %d", p.index, info.FirstOffset, what, h.ProducerID, h.ProducerEpoch, h.BaseSequence)
		w.ledger.appended(p.index, transaction.Producer{ID: h.ProducerID, Epoch: h.ProducerEpoch}, h.BaseSequence, what)
	}
	p.committed(func() {
		if w.faulty && w.menu.slowISR && clockwork.Chance(w.net, 30) {
			w.Sometimes("batch appended and not acknowledged in time")
			reply(errcode.RequestTimedOut, -1)
			return
		}
		reply(errcode.None, info.FirstOffset)
	})
}

// committed has f done when the high watermark has reached the end of the log, which may take a little.
func (p *leader) committed(f func()) {
	w := p.w
	if !w.faulty || !w.menu.lag {
		p.l.SetHighWatermark(p.l.LogEndOffset())
		f()
		return
	}
	end, life := p.l.LogEndOffset(), p.life
	w.After(clockwork.Between(w.net, 0, 30*time.Millisecond), func() {
		if life != p.life {
			return
		}
		if end > p.l.HighWatermark() {
			p.l.SetHighWatermark(end)
		}
		f()
	})
}

// mark writes an end marker where it belongs.
func (w *world) mark(m *transaction.Markers, tp transaction.TopicPartition) errcode.Code {
	if tp.Topic != "out" {
		return w.offsets.mark(m)
	}
	p := w.leaders[tp.Partition]
	if !w.up[p.broker] {
		return errcode.NotLeaderOrFollower
	}
	info, err := p.l.AppendEndTxnMarker(marker(m), 0, w.Now)
	if err != nil {
		return storage.CodeOf(err)
	}
	w.Note("out-%d offset %d: end of %v commit %t", p.index, info.FirstOffset, m.Producer, m.Commit)
	w.ledger.marked(p.index, m)
	p.committed(func() {})
	return errcode.None
}

// labelOf is whose record a batch has.
func labelOf(batch []byte) label {
	it, err := record.Open(batch, record.ReadOptions{})
	if err != nil {
		panic(err)
	}
	for r := range it.All() {
		return label{int8(r.Value[0]), int8(r.Value[1]), int8(r.Value[2])}
	}
	panic("an empty batch")
}

// handle answers a request that has arrived at a broker.
func (w *world) handle(to int32, req message.Request, version int16, reply func(message.Response)) {
	switch req := req.(type) {
	case *message.ProduceRequest:
		w.handleProduce(to, req, version, reply)
	case *message.TxnOffsetCommitRequest:
		w.offsets.commit(to, req, version, reply)
	default:
		w.handleCoordinator(to, req, version, reply)
	}
}

func (w *world) handleProduce(to int32, req *message.ProduceRequest, version int16, reply func(message.Response)) {
	resp := message.NewProduceResponse()
	left := 0
	for i := range req.TopicData {
		left += len(req.TopicData[i].PartitionData)
	}
	for i := range req.TopicData {
		t := &req.TopicData[i]
		resp.Responses = append(resp.Responses, message.TopicProduceResponse{Name: t.Name, PartitionResponses: make([]message.PartitionProduceResponse, len(t.PartitionData))})
		for j := range t.PartitionData {
			pd, out := &t.PartitionData[j], &resp.Responses[i].PartitionResponses[j]
			out.SetDefaults()
			out.Index, out.BaseOffset = pd.Index, -1
			done := func(code errcode.Code, offset int64) {
				out.ErrorCode, out.BaseOffset = int16(code), offset
				if left--; left == 0 {
					reply(resp)
				}
			}
			if w.leaders[pd.Index].broker != to {
				done(errcode.NotLeaderOrFollower, -1)
				continue
			}
			w.leaders[pd.Index].produce(append([]byte(nil), pd.Records...), version, done)
		}
	}
}

// handleCoordinator turns a request into one for the machine, as the server's handlers do.
func (w *world) handleCoordinator(to int32, req message.Request, version int16, reply func(message.Response)) {
	c := w.coord
	var body any
	var answer func(r any, code errcode.Code) message.Response
	switch req := req.(type) {
	case *message.InitProducerIdRequest:
		body = transaction.InitProducerID{ID: *req.TransactionalId, TimeoutMs: req.TransactionTimeoutMs,
			Expected: transaction.Producer{ID: req.ProducerId, Epoch: req.ProducerEpoch}, NewProducerID: -1}
		answer = func(r any, code errcode.Code) message.Response {
			resp := message.NewInitProducerIdResponse()
			resp.ErrorCode, resp.ProducerId, resp.ProducerEpoch = int16(code), -1, -1
			if p, ok := r.(transaction.Producer); ok && code == errcode.None {
				resp.ProducerId, resp.ProducerEpoch = p.ID, p.Epoch
			}
			return resp
		}
	case *message.AddPartitionsToTxnRequest:
		var parts []transaction.TopicPartition
		for i := range req.V3AndBelowTopics {
			for _, p := range req.V3AndBelowTopics[i].Partitions {
				parts = append(parts, transaction.TopicPartition{Topic: req.V3AndBelowTopics[i].Name, Partition: p})
			}
		}
		body = transaction.AddPartitions{ID: req.V3AndBelowTransactionalId, Producer: transaction.Producer{ID: req.V3AndBelowProducerId, Epoch: req.V3AndBelowProducerEpoch}, Partitions: parts}
		answer = func(_ any, code errcode.Code) message.Response {
			resp := message.NewAddPartitionsToTxnResponse()
			for i := range req.V3AndBelowTopics {
				t := message.AddPartitionsToTxnTopicResult{Name: req.V3AndBelowTopics[i].Name}
				for _, p := range req.V3AndBelowTopics[i].Partitions {
					t.ResultsByPartition = append(t.ResultsByPartition, message.AddPartitionsToTxnPartitionResult{PartitionIndex: p, PartitionErrorCode: int16(code)})
				}
				resp.ResultsByTopicV3AndBelow = append(resp.ResultsByTopicV3AndBelow, t)
			}
			return resp
		}
	case *message.AddOffsetsToTxnRequest:
		body = transaction.AddPartitions{ID: req.TransactionalId, Producer: transaction.Producer{ID: req.ProducerId, Epoch: req.ProducerEpoch},
			Partitions: []transaction.TopicPartition{{Topic: "__consumer_offsets", Partition: 0}}}
		answer = func(_ any, code errcode.Code) message.Response {
			return &message.AddOffsetsToTxnResponse{ErrorCode: int16(code)}
		}
	case *message.EndTxnRequest:
		end := transaction.EndTxn{ID: req.TransactionalId, Producer: transaction.Producer{ID: req.ProducerId, Epoch: req.ProducerEpoch}, Commit: req.Committed, NewProducerID: -1}
		if version >= 5 {
			end.Version = 2
		}
		body = end
		answer = func(r any, code errcode.Code) message.Response {
			resp := message.NewEndTxnResponse()
			resp.ErrorCode = int16(code)
			if p, ok := r.(transaction.Producer); ok && code == errcode.None {
				resp.ProducerId, resp.ProducerEpoch = p.ID, p.Epoch
			}
			return resp
		}
	case *message.DescribeTransactionsRequest:
		body = transaction.Describe{ID: req.TransactionalIds[0]}
		answer = func(r any, code errcode.Code) message.Response {
			resp := message.NewDescribeTransactionsResponse()
			d, ok := r.(message.DescribeTransactionsResponseTransactionState)
			if !ok {
				d = message.DescribeTransactionsResponseTransactionState{TransactionalId: req.TransactionalIds[0], ErrorCode: int16(code)}
			}
			resp.TransactionStates = append(resp.TransactionStates, d)
			return resp
		}
	default:
		w.Fail("nobody sends %T", req)
	}
	if to != c.leader {
		w.Sometimes("asked a broker that does not coordinate")
		reply(answer(nil, errcode.NotCoordinator))
		return
	}
	c.ask(body, func(r any, code errcode.Code) { reply(answer(r, code)) })
}
