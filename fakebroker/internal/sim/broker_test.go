package sim

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/fakebroker/internal/sim/clockwork"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// groupID is the one group of a run.
const groupID = "g"

// entry is a record of __consumer_offsets as bytes; a nil value is a tombstone.
type entry struct{ key, value []byte }

// brokers are two brokers, of which one leads the partition with the group. They do what coordinator.Runtime does, one
// event at a time: append, replay, hold replies until they are committed.
type brokers struct {
	w         *world
	config    *config.Layers
	env       group.Environment
	leader    int32
	alive     [3]bool // by broker id
	shard     *group.Machine
	life      int // counts shards, so that events of a dropped one do nothing
	log       []entry
	committed int
	held      []heldReply
	waiting   map[coordinator.Ticket]func(any, errcode.Code)
	ticket    coordinator.Ticket
	refusing  time.Time // until then the log takes nothing
	refused   bool      // it did not take everything
	alarm     time.Time
}

type heldReply struct {
	offset int
	reply  coordinator.Reply
}

func newBrokers(w *world) *brokers {
	layers, err := config.NewLayers(map[string]string{
		"group.initial.rebalance.delay.ms":         "300",
		"group.consumer.session.timeout.ms":        fmt.Sprint(session.Milliseconds()),
		"group.consumer.min.session.timeout.ms":    "1000",
		"group.consumer.heartbeat.interval.ms":     fmt.Sprint(heartbeat.Milliseconds()),
		"group.consumer.min.heartbeat.interval.ms": "500",
		"group.consumer.migration.policy":          "bidirectional",
		"group.consumer.assignors":                 w.fleet.server,
	})
	if err != nil {
		w.Fail("%v", err)
	}
	b := &brokers{w: w, config: layers, leader: 1, alive: [3]bool{1: true, 2: true}, waiting: map[coordinator.Ticket]func(any, errcode.Code){}}
	b.env = group.Environment{Image: w.topics.img, Config: layers}
	b.load(0)
	return b
}

func (b *brokers) down(id int32) bool { return !b.alive[id] }

// fresh is a machine with what the log has.
func (b *brokers) fresh(log []entry) *group.Machine {
	m := group.New(group.Options{Environment: b.env, NewUUID: func() (id wire.UUID) {
		for i := range id {
			id[i] = byte(b.w.ids.IntN(256))
		}
		return id
	}})
	for i, e := range log {
		key, err := logrecord.ReadKey(logrecord.GroupLog, e.key)
		if err != nil {
			b.w.Fail("record %d: %v", i, err)
		}
		value, _, err := logrecord.ReadValue(logrecord.GroupLog, key.APIKey(), e.value)
		if err != nil {
			b.w.Fail("record %d: %v", i, err)
		}
		if err := m.Replay(int64(i), key, value); err != nil {
			b.w.Fail("record %d does not replay: %v", i, err)
		}
	}
	return m
}

// load makes the leader the coordinator after d.
func (b *brokers) load(d time.Duration) {
	b.life++
	life := b.life
	b.w.After(d, func() {
		if life != b.life || b.down(b.leader) {
			return
		}
		b.w.Note("broker %d coordinates, %d records", b.leader, len(b.log))
		b.shard = b.fresh(b.log)
		b.committed, b.alarm = len(b.log), time.Time{}
		var out coordinator.Result
		b.shard.Loaded(b.w.Now, &out)
		b.carryOut(&out)
		b.arm()
	})
}

// drop ends the shard. What was promised and not committed is lost with truncate. silent: nobody is told.
func (b *brokers) drop(truncate, silent bool) {
	if b.shard == nil {
		b.life++
		return
	}
	if truncate && b.committed < len(b.log) {
		b.w.Sometimes("uncommitted records cut off")
		b.log = b.log[:b.committed]
		b.w.ledger.truncated(b)
	}
	var out coordinator.Result
	b.shard.Drop(errcode.NotCoordinator, &out)
	b.shard = nil
	b.life++
	held := b.held
	b.held = nil
	if silent {
		clear(b.waiting)
		return
	}
	for _, h := range held {
		b.answer(coordinator.Reply{Ticket: h.reply.Ticket, Code: errcode.NotCoordinator})
	}
	for _, r := range out.Replies {
		b.answer(r)
	}
	if len(b.waiting) > 0 {
		b.w.Fail("%d requests are forgotten when the coordinator goes", len(b.waiting))
	}
}

// move makes the other broker the coordinator.
func (b *brokers) move(loading time.Duration) {
	b.drop(true, false)
	b.leader = 3 - b.leader
	b.load(loading)
}

// crash takes a broker down for a while; the other one takes over if it can, or the broker comes back as it was.
func (b *brokers) crash(id int32, away time.Duration, takeover bool) {
	b.alive[id] = false
	if id == b.leader {
		b.drop(true, true)
		if other := 3 - id; takeover && b.alive[other] {
			b.leader = other
			b.load(100 * time.Millisecond)
		}
	}
	for _, n := range b.w.nodes {
		n.hangUp(id)
	}
	b.w.After(away, func() {
		b.alive[id] = true
		if b.leader == id {
			b.load(50 * time.Millisecond)
		}
	})
}

// environment tells the shard of new metadata.
func (b *brokers) environment(e group.Environment) {
	b.env = group.Environment{Image: e.Image, Config: e.Config}
	if b.shard != nil {
		b.ask(e, 0, func(any, errcode.Code) {})
	}
}

// ask hands a request to the shard.
func (b *brokers) ask(body any, version int16, done func(any, errcode.Code)) {
	b.ticket++
	b.waiting[b.ticket] = done
	var out coordinator.Result
	b.shard.Handle(b.w.Now, coordinator.Request{Ticket: b.ticket, Body: body, Version: version, ClientID: "sim", ClientHost: "/127.0.0.1"}, &out)
	b.carryOut(&out)
	b.arm()
}

// peek asks for something that changes nothing.
func (b *brokers) peek(m *group.Machine, body any, version int16) (response any) {
	var out coordinator.Result
	m.Handle(b.w.Now, coordinator.Request{Ticket: 1, Body: body, Version: version}, &out)
	return out.Replies[0].Response
}

// handle answers a request that has arrived at a broker.
func (b *brokers) handle(c *call, req message.Request, version int16, reply func(message.Response)) {
	switch {
	case c.to != b.leader:
		b.w.Sometimes("asked a broker that does not coordinate")
		reply(refused(req, version, errcode.NotCoordinator))
		return
	case b.shard == nil:
		b.w.Sometimes("asked a coordinator that loads")
		reply(refused(req, version, errcode.CoordinatorLoadInProgress))
		return
	}
	b.w.ledger.late = c.late
	defer func() { b.w.ledger.late = false }()
	var body any = req
	if fetch, ok := req.(*message.OffsetFetchRequest); ok {
		body = group.FetchOffsets{Group: fetch.Groups[0]}
	}
	b.ask(body, version, func(response any, code errcode.Code) {
		switch r := response.(type) {
		case message.OffsetFetchResponseGroup:
			resp := message.NewOffsetFetchResponse()
			resp.Groups = append(resp.Groups, r)
			reply(resp)
		case *message.JoinGroupResponse:
			if version < 7 && r.ProtocolName == nil {
				r.ProtocolName = new(string)
			}
			reply(r)
		case message.Response:
			reply(r)
		default:
			b.w.Sometimes("request refused as a whole: " + code.Name())
			reply(refused(req, version, code))
		}
	})
}

// carryOut does what a result says: append, replay, Written, replies.
func (b *brokers) carryOut(out *coordinator.Result) {
	var next coordinator.Result
	replies := out.Replies
	written := out.Written
	if len(out.Records) > 0 && b.w.Now.Before(b.refusing) {
		b.w.Sometimes("append refused")
		b.refused = true
		written = nil
		for _, f := range out.Failed {
			f(b.w.Now, errcode.CoordinatorNotAvailable, &next)
		}
		for i := range replies {
			if len(out.Failed) == 0 {
				replies[i] = coordinator.Reply{Ticket: replies[i].Ticket, Code: errcode.CoordinatorNotAvailable}
			}
		}
	} else {
		b.append(out.Records)
	}
	for _, r := range replies {
		b.held = append(b.held, heldReply{len(b.log), r})
	}
	for _, f := range written {
		f(b.w.Now, &next)
	}
	if len(next.Records)+len(next.Replies)+len(next.Written) > 0 {
		b.carryOut(&next)
		return
	}
	b.commit()
}

// append writes records and replays them.
func (b *brokers) append(records []coordinator.Record) {
	for _, r := range records {
		var e entry
		var err error
		if e.key, err = logrecord.AppendKey(nil, r.Key); err != nil {
			b.w.Fail("key of %T: %v", r.Key, err)
		}
		if r.Value != nil {
			if e.value, err = logrecord.AppendValue(nil, r.Value, r.Version); err != nil {
				b.w.Fail("value of %T: %v", r.Key, err)
			}
		}
		b.w.Mix(e.key)
		b.w.Mix(e.value)
		b.log = append(b.log, e)
		if err := b.shard.Replay(int64(len(b.log)-1), r.Key, r.Value); err != nil {
			b.w.Fail("the machine does not take its own record: %v", err)
		}
		b.w.ledger.written(r.Key, r.Value)
	}
}

// commit lets the high watermark follow the log, at once or a little later, and the replies with it.
func (b *brokers) commit() {
	lag := time.Duration(0)
	if b.committed < len(b.log) && b.w.faulty && b.w.menu.lag {
		lag = clockwork.Between(b.w.net, 0, 40*time.Millisecond)
	}
	to, life := len(b.log), b.life
	release := func() {
		if life != b.life {
			return
		}
		b.committed = max(b.committed, to)
		for len(b.held) > 0 && b.held[0].offset <= b.committed {
			r := b.held[0].reply
			b.held = b.held[1:]
			b.answer(r)
		}
	}
	if lag == 0 {
		release()
		return
	}
	b.w.After(lag, release)
}

// answer ends a ticket.
func (b *brokers) answer(r coordinator.Reply) {
	done, ok := b.waiting[r.Ticket]
	if !ok {
		b.w.Fail("a request is answered twice")
	}
	delete(b.waiting, r.Ticket)
	done(r.Response, r.Code)
}

// arm wakes the shard at its deadline.
func (b *brokers) arm() {
	if b.shard == nil {
		return
	}
	at := b.shard.Deadline()
	if at.IsZero() || at.Equal(b.alarm) {
		return
	}
	b.alarm = at
	life := b.life
	b.w.After(at.Sub(b.w.Now), func() {
		if life != b.life || b.shard == nil || !b.alarm.Equal(at) {
			return
		}
		b.alarm = time.Time{}
		for i := 0; ; i++ {
			t := b.shard.Deadline()
			if t.IsZero() || b.w.Now.Before(t) {
				break
			}
			if i > 1000 {
				b.w.Fail("the coordinator's clock does not come to rest")
			}
			var out coordinator.Result
			b.shard.Tick(b.w.Now, &out)
			b.carryOut(&out)
		}
		b.arm()
	})
}

// refused is the answer of a broker that cannot ask the machine.
func refused(req message.Request, version int16, code errcode.Code) message.Response {
	c := int16(code)
	switch req := req.(type) {
	case *message.JoinGroupRequest:
		resp := message.NewJoinGroupResponse()
		resp.ErrorCode, resp.MemberId = c, req.MemberId
		if resp.ProtocolName = nil; version < 7 {
			resp.ProtocolName = new(string)
		}
		return resp
	case *message.SyncGroupRequest:
		return &message.SyncGroupResponse{ErrorCode: c}
	case *message.HeartbeatRequest:
		return &message.HeartbeatResponse{ErrorCode: c}
	case *message.LeaveGroupRequest:
		return &message.LeaveGroupResponse{ErrorCode: c}
	case *message.ConsumerGroupHeartbeatRequest:
		resp := message.NewConsumerGroupHeartbeatResponse()
		resp.ErrorCode = c
		return resp
	case *message.OffsetFetchRequest:
		resp := message.NewOffsetFetchResponse()
		resp.Groups = append(resp.Groups, message.OffsetFetchResponseGroup{GroupId: groupID, ErrorCode: c})
		return resp
	case *message.OffsetCommitRequest:
		resp := message.NewOffsetCommitResponse()
		for _, t := range req.Topics {
			answer := message.OffsetCommitResponseTopic{Name: t.Name, TopicId: t.TopicId}
			for _, p := range t.Partitions {
				answer.Partitions = append(answer.Partitions, message.OffsetCommitResponsePartition{PartitionIndex: p.PartitionIndex, ErrorCode: c})
			}
			resp.Topics = append(resp.Topics, answer)
		}
		return resp
	}
	panic(fmt.Sprintf("sim: nobody sends %T", req))
}
