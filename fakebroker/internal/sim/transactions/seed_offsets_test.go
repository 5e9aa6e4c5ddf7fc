package transactions

import (
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/transaction"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// offsetLabel is the index of a label that is no record but the offset of a transaction.
const offsetLabel = 100

// number is an offset that says whose it is.
func (l label) number() int64 { return int64(l.actor)<<16 | int64(l.txn)<<8 | 1 }

func labelOfOffset(n int64) label { return label{int8(n >> 16), int8(n >> 8), offsetLabel} }

// offsets is the partition of __consumer_offsets with the one group, on broker 1: its log, and the group's coordinator, which
// keeps what a transaction commits until the marker comes.
type offsets struct {
	w      *world
	broker int32
	fs     *vfs.MemFS
	l      *storage.Log
	m      *group.Machine
	life   int
	expect int64 // what the group has committed, as the ledger knows it
}

func newOffsets(w *world) *offsets {
	o := &offsets{w: w, broker: 1, fs: vfs.NewMem(), expect: -1}
	o.open()
	return o
}

// open loads the log, at the start and after a crash.
func (o *offsets) open() {
	l, err := storage.OpenLog(storage.LogOptions{FS: o.fs, Dir: "d/offsets-0", Partition: storage.TopicPartition{Topic: "__consumer_offsets"},
		Config: storage.DefaultLogConfig()}, o.w.Now)
	if err != nil {
		o.w.Fail("offsets do not open: %v", err)
	}
	o.l = l
	o.life++
	o.l.SetHighWatermark(o.l.LogEndOffset())
	o.m = group.New(group.Options{Environment: group.Environment{Image: inputImage(), Config: o.w.coord.config}, NewUUID: func() wire.UUID { return wire.UUID{} }})
	d, err := o.l.Read(0, 1<<20, storage.BoundLogEnd, true)
	if err != nil {
		o.w.Fail("offsets: %v", err)
	}
	raw, err := d.Records.AppendTo(nil)
	if err != nil {
		o.w.Fail("offsets: %v", err)
	}
	d.Records.Release()
	for len(raw) > 0 {
		batch, rest, err := record.Next(raw)
		if err == nil {
			err = o.replay(batch)
		}
		if err != nil {
			o.w.Fail("offsets do not load: %v", err)
		}
		raw = rest
	}
	var out coordinator.Result
	o.m.Loaded(o.w.Now, &out)
	if got := o.committed(); got != o.expect {
		o.w.Fail("E3: the group has committed %d, and after loading %d", o.expect, got)
	}
}

// inputImage is a cluster with the topic in.
func inputImage() *image.Image {
	d := image.NewDelta(image.Empty())
	id := wire.UUID{1}
	for i, r := range []logrecord.Record{&logrecord.TopicRecord{Name: "in", TopicId: id},
		&logrecord.PartitionRecord{TopicId: id, Leader: 1, Replicas: []int32{1}, Isr: []int32{1}, Directories: []wire.UUID{{2}}}} {
		if err := d.Apply(int64(i), 1, image.Record{Record: r}); err != nil {
			panic(err)
		}
	}
	return d.Image()
}

// replay is what the runtime does with a batch on loading.
func (o *offsets) replay(batch []byte) error {
	h, err := record.ParseHeader(batch)
	if err != nil {
		return err
	}
	if h.Control() {
		h, kind, _, err := record.ReadControl(batch)
		if err != nil {
			return err
		}
		return o.m.EndTxn(h.BaseOffset, h.ProducerID, kind == record.ControlCommit)
	}
	it, err := record.Open(batch, record.ReadOptions{})
	if err != nil {
		return err
	}
	for r := range it.All() {
		key, err := logrecord.ReadKey(logrecord.GroupLog, r.Key)
		if err != nil {
			return err
		}
		value, _, err := logrecord.ReadValue(logrecord.GroupLog, key.APIKey(), r.Value)
		if err != nil {
			return err
		}
		if err := o.m.ReplayTxn(r.Offset, h.ProducerID, key, value); err != nil {
			return err
		}
	}
	return it.Err()
}

// committed asks for the group's offset.
func (o *offsets) committed() int64 {
	var out coordinator.Result
	ask := group.FetchOffsets{Group: message.OffsetFetchRequestGroup{GroupId: seedGroup, MemberEpoch: -1,
		Topics: []message.OffsetFetchRequestTopics{{Name: "in", PartitionIndexes: []int32{0}}}}}
	o.m.Handle(o.w.Now, coordinator.Request{Ticket: 1, Body: ask, Version: 8}, &out)
	got := out.Replies[0].Response.(message.OffsetFetchResponseGroup)
	return got.Topics[0].Partitions[0].CommittedOffset
}

// commit serves TxnOffsetCommit: the transaction is verified, or the partition added to it, unless it is known to be open here.
func (o *offsets) commit(to int32, req *message.TxnOffsetCommitRequest, version int16, reply func(message.Response)) {
	w, life := o.w, o.life
	refuse := func(code errcode.Code) {
		w.Sometimes("offsets refused: " + code.Name())
		reply(offsetsRefused(req, code))
	}
	if to != o.broker {
		refuse(errcode.NotCoordinator)
		return
	}
	by, adds := transaction.Producer{ID: req.ProducerId, Epoch: req.ProducerEpoch}, version >= 5
	guard, err := o.l.StartVerification(by.ID, by.Epoch, -1, adds, w.Now)
	if err != nil {
		refuse(storage.CodeOf(err))
		return
	}
	if guard == 0 {
		o.write(req, version, 0, reply, refuse)
		return
	}
	w.verify(transaction.TopicPartition{Topic: "__consumer_offsets"}, by, adds, func(code errcode.Code) {
		switch {
		case life != o.life: // its broker is not what it was
		case code == errcode.None:
			o.write(req, version, guard, reply, refuse)
		case code == errcode.NotCoordinator:
			refuse(errcode.CoordinatorNotAvailable)
		case code == errcode.ProducerFenced:
			refuse(errcode.InvalidProducerEpoch)
		default:
			refuse(code)
		}
	})
}

// write has the group's machine propose the records, appends and replays them.
func (o *offsets) write(req *message.TxnOffsetCommitRequest, version int16, guard uint64, reply func(message.Response), refuse func(errcode.Code)) {
	w := o.w
	var out coordinator.Result
	o.m.Handle(w.Now, coordinator.Request{Ticket: 1, Body: group.CommitInTransaction{Request: req, Guard: guard}, Version: version}, &out)
	if len(out.Records) > 0 {
		info, err := o.l.AppendTransactional(o.batch(&out), 0, storage.FromCoordinator, storage.Verification{Required: true, Guard: out.Txn.Guard}, w.Now)
		if err != nil {
			refuse(storage.CodeOf(err))
			return
		}
		for i, r := range out.Records {
			if err := o.m.ReplayTxn(info.FirstOffset+int64(i), out.Txn.ProducerID, r.Key, r.Value); err != nil {
				w.Fail("offsets: %v", err)
			}
		}
		o.l.SetHighWatermark(o.l.LogEndOffset())
		by, of := transaction.Producer{ID: req.ProducerId, Epoch: req.ProducerEpoch}, labelOfOffset(req.Topics[0].Partitions[0].CommittedOffset)
		w.Note("offset of %+v of %v", of, by)
		w.ledger.appended(offsetsPart, by, -1, of)
	}
	for _, f := range out.Written {
		var next coordinator.Result
		f(w.Now, &next)
	}
	if resp, ok := out.Replies[0].Response.(message.Response); ok {
		reply(resp)
		return
	}
	refuse(out.Replies[0].Code)
}

// batch makes the batch of a transactional result, as the runtime does.
func (o *offsets) batch(out *coordinator.Result) []byte {
	b := record.NewBuilder(nil)
	for _, r := range out.Records {
		key, err := logrecord.AppendKey(nil, r.Key)
		if err != nil {
			o.w.Fail("%v", err)
		}
		value, err := logrecord.AppendValue(nil, r.Value, r.Version)
		if err != nil {
			o.w.Fail("%v", err)
		}
		b.Append(o.w.Now.UnixMilli(), key, value, nil)
	}
	stamp := record.NoProducer()
	stamp.ProducerID, stamp.ProducerEpoch, stamp.Transactional = out.Txn.ProducerID, out.Txn.ProducerEpoch, true
	return b.Seal(stamp)
}

func offsetsRefused(req *message.TxnOffsetCommitRequest, code errcode.Code) message.Response {
	resp := message.NewTxnOffsetCommitResponse()
	for i := range req.Topics {
		t := message.TxnOffsetCommitResponseTopic{Name: req.Topics[i].Name}
		for _, p := range req.Topics[i].Partitions {
			t.Partitions = append(t.Partitions, message.TxnOffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex, ErrorCode: int16(code)})
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// mark ends a transaction: what it has committed counts now, or is forgotten.
func (o *offsets) mark(m *transaction.Markers) errcode.Code {
	w := o.w
	if !w.up[o.broker] {
		return errcode.NotLeaderOrFollower
	}
	info, err := o.l.AppendEndTxnMarker(marker(m), 0, w.Now)
	if err != nil {
		return storage.CodeOf(err)
	}
	o.l.SetHighWatermark(o.l.LogEndOffset())
	w.Note("offsets: end of %v commit %t", m.Producer, m.Commit)
	if err := o.m.EndTxn(info.FirstOffset, m.Producer.ID, m.Commit); err != nil {
		w.Fail("offsets: %v", err)
	}
	if open := w.ledger.open[offsetsPart][m.Producer.ID]; m.Commit && len(open) > 0 {
		o.expect = open[len(open)-1].number()
	}
	w.ledger.marked(offsetsPart, m)
	if got := o.committed(); got != o.expect {
		w.Fail("E3: the group has committed %s, expected %s", offsetText(got), offsetText(o.expect))
	}
	return errcode.None
}

func offsetText(n int64) string {
	if n < 0 {
		return "nothing"
	}
	return fmt.Sprintf("%+v", labelOfOffset(n))
}
