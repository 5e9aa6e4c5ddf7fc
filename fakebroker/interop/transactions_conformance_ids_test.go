package interop

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

func findingTxnCoordinators(g *txnTalk) {
	for _, v := range versions(wire.KeyFindCoordinator) {
		if v == 0 {
			continue // knows of groups alone
		}
		req := message.NewFindCoordinatorRequest()
		req.KeyType = 1
		for _, key := range []string{"cf-found", "", "ü"} {
			if v < 4 {
				req.CoordinatorKey = key
			} else {
				req.CoordinatorKeys = []string{key, "cf-other"}
			}
			g.ask("transactional id "+key, v, req)
		}
	}
}

// producerIDVersions asks for ids with and without a transactional id.
func producerIDVersions(g *txnTalk) {
	for _, v := range []int16{0, 1, 2, 3, 4, 5} {
		g.ask("without a transactional id", v, initFor("", -1, -1))
		id := fmt.Sprint("cf-init-", v)
		g.ask("the first time", v, initFor(id, -1, -1))
		g.describes("after it", id)
		g.ask("the second time", v, initFor(id, -1, -1))
		g.describes("after it", id)
		p := g.starts(id)
		if v >= 3 {
			g.ask("with what it has", v, initFor(id, p.producer, p.epoch))
			g.ask("with what it had", v, initFor(id, p.producer, p.epoch))
			g.describes("after it", id)
		}
	}
	g.ask("of an unstable version", 6, initFor("cf-init-6", -1, -1))
}

func producerIDErrors(g *txnTalk) {
	for _, v := range []int16{0, 2, 4, 5} {
		empty := initFor("", -1, -1)
		empty.TransactionalId = new("")
		g.ask("an empty id", v, empty)
		for _, timeout := range []int32{math.MinInt32, -1, 0, 1, 900000, 900001, math.MaxInt32} {
			id := fmt.Sprint("cf-timeouts-", v)
			req := initFor(id, -1, -1)
			req.TransactionTimeoutMs = timeout
			g.ask(fmt.Sprint("a timeout of ", timeout), v, req)
			g.describes("after it", id)
			req = initFor("", -1, -1)
			req.TransactionTimeoutMs = timeout
			g.ask(fmt.Sprint("a timeout without an id of ", timeout), v, req)
		}
	}
	for _, v := range []int16{3, 5} {
		for _, expected := range []struct {
			producer int64
			epoch    int16
		}{{1000000, -1}, {-1, 3}, {1000000, 0}, {1000000, 7}, {-2, -2}, {1000000, 32767}, {1000000, 32766}} {
			g.ask(fmt.Sprint("without a transactional id, expecting ", expected), v, initFor("", expected.producer, expected.epoch))
			id := fmt.Sprint("cf-expecting-", v, "-", expected.producer, "-", expected.epoch)
			g.ask(fmt.Sprint("an unknown id, expecting ", expected), v, initFor(id, expected.producer, expected.epoch))
			g.describes("after it", id)
		}
	}
}

// expectedEpochs has a producer ask for the next epoch, ask again because the answer was lost, and come too late.
func expectedEpochs(g *txnTalk) {
	for _, v := range []int16{3, 4, 5} {
		id := fmt.Sprint("cf-epochs-", v)
		p := g.starts(id)
		for range 3 {
			p.restarts(v, p.producer, p.epoch)
		}
		g.describes("after three bumps", id)
		for epoch := p.epoch + 2; epoch >= -1; epoch-- {
			g.ask(fmt.Sprint("expecting epoch ", epoch), v, initFor(id, p.producer, epoch))
			g.describes("after it", id)
		}
		g.ask("expecting another producer", v, initFor(id, p.producer+500000, p.epoch))
		g.ask("expecting another producer and no epoch", v, initFor(id, p.producer+500000, -1))
		g.ask("expecting no producer and an epoch", v, initFor(id, -1, p.epoch))
		g.describes("after it", id)
		p.restarts(v, -1, -1)
		p.adds(3, "cf-nowhere", 0)
		g.topic(id, 1)
		p.adds(3, id, 0)
		g.ask("in a transaction, with what it has", v, initFor(id, p.producer, p.epoch))
		g.settled(id)
		g.describes("after it", id)
		g.ask("and again", v, initFor(id, p.producer, p.epoch))
		g.describes("after it", id)
		g.ask("and once more", v, initFor(id, p.producer, p.epoch))
		g.describes("after it", id)
	}
}

// secondInstance starts with the id of one that is in the middle of a transaction.
func secondInstance(g *txnTalk) {
	g.topic("cf-second", 2)
	for _, v := range []int16{2, 4, 5} {
		id := fmt.Sprint("cf-second-", v)
		old := g.open(id, "cf-second", 0, 2)
		g.ask("second in the middle of it", v, initFor(id, -1, -1))
		g.settled(id)
		g.describes("the first is out", id)
		old.adds(3, "cf-second", 1)
		old.writes(11, "cf-second", 0, 1)
		old.writes(11, "cf-second", 1, 1)
		old.writes(12, "cf-second", 0, 1)
		g.ask("offsets", 3, &message.AddOffsetsToTxnRequest{TransactionalId: id, ProducerId: old.producer, ProducerEpoch: old.epoch, GroupId: "cf-second"})
		for _, commit := range []bool{true, false} {
			g.ask("end", 3, old.ending(commit))
			g.ask("end", 5, old.ending(commit))
		}
		g.ask("it wants to go on", max(v, 3), initFor(id, old.producer, old.epoch))
		g.describes("after it", id)
		now := *old
		now.restarts(v, -1, -1)
		g.describes("the second is in", id)
		now.adds(3, "cf-second", 0)
		now.writes(11, "cf-second", 0, 3)
		old.writes(11, "cf-second", 0, 1)
		old.adds(3, "cf-second", 1)
		g.ask("the first wants to commit", 3, old.ending(true))
		g.ask("the first wants to go on", max(v, 3), initFor(id, old.producer, old.epoch))
		g.settled(id)
		g.describes("after it", id)
		now.ends(3, true)
		g.describes("at the end", id)
	}
	g.reads("what is there", 12, 1, "cf-second", 0, 0)
}

// lateTransactions are aborted by the coordinator; what a producer may still do then.
func lateTransactions(g *txnTalk) {
	g.topic("cf-late", 1)
	for _, v := range []int16{4, 5} {
		id := fmt.Sprint("cf-late-", v)
		start := func() *txnProducer {
			p := g.starts(id)
			g.until(func() bool {
				req := initFor(id, p.producer, p.epoch)
				req.TransactionTimeoutMs = 1 // the next look finds it late
				resp := g.quiet(v, req).(*message.InitProducerIdResponse)
				p.epoch = resp.ProducerEpoch
				return resp.ErrorCode == 0
			})
			g.describes("at the start", id)
			p.adds(3, "cf-late", 0)
			g.until(func() bool { return g.state(id).TransactionState == "CompleteAbort" })
			g.describes("it was late", id)
			return p
		}
		p := start()
		p.writes(11, "cf-late", 0, 1)
		p.writes(12, "cf-late", 0, 1)
		p.adds(3, "cf-late", 0)
		g.ask("commit", 3, p.ending(true))
		g.ask("abort", 3, p.ending(false))
		g.ask("commit", 5, p.ending(true))
		g.ask("abort", 5, p.ending(false))
		g.describes("after it", id)
		g.ask("it goes on", v, initFor(id, p.producer, p.epoch))
		g.ask("it goes on with the next epoch", v, initFor(id, p.producer, p.epoch+1))
		g.describes("after it", id)
		p = start()
		g.ask("another begins", v, initFor(id, -1, -1))
		g.ask("the first abort", 5, p.ending(false))
	}
}

// nearlyOut starts a producer whose epoch is one of the last.
func (g *txnTalk) nearlyOut(id string) *txnProducer {
	g.t.Helper()
	p := g.starts(id)
	version, many := int16(4), 200 // so many are under way at a time, which is quicker
	one := wire.AppendRequestHeader(make([]byte, 4), wire.KeyInitProducerId, version, 77, nil)
	one, err := initFor(id, -1, -1).AppendTo(one, version)
	require.NoError(g.t, err)
	binary.BigEndian.PutUint32(one, uint32(len(one)-4))
	in := bufio.NewReader(g.conn)
	for left := int(math.MaxInt16 - 4 - p.epoch); left > 0; left -= many {
		many = min(many, left)
		g.conn.SetDeadline(time.Now().Add(patience))
		_, err := g.conn.Write(bytes.Repeat(one, many))
		require.NoError(g.t, err)
		for range many {
			answer := make([]byte, 4)
			_, err := io.ReadFull(in, answer)
			require.NoError(g.t, err)
			answer = make([]byte, binary.BigEndian.Uint32(answer))
			_, err = io.ReadFull(in, answer)
			require.NoError(g.t, err)
			r := wire.NewReader(answer)
			_, err = wire.ReadResponseHeader(r, wire.KeyInitProducerId, version)
			require.NoError(g.t, err)
			var resp message.InitProducerIdResponse
			require.NoError(g.t, resp.ReadFrom(r, version))
			require.Equal(g.t, errcode.None, errcode.Code(resp.ErrorCode))
			require.Equal(g.t, p.producer, resp.ProducerId)
			require.Equal(g.t, p.epoch+1, resp.ProducerEpoch)
			p.epoch++
		}
	}
	require.Zero(g.t, in.Buffered())
	return p
}

// epochsRunOut bumps until the last epoch: a new producer id follows, without a gap for the one that asks.
func epochsRunOut(g *txnTalk) {
	const id = "cf-exhausted"
	p := g.nearlyOut(id)
	before := *p
	for range 6 {
		resp := g.ask("bump", 4, initFor(id, p.producer, p.epoch)).(*message.InitProducerIdResponse)
		g.describes("after it", id)
		before = *p
		p.producer, p.epoch = resp.ProducerId, resp.ProducerEpoch
		g.ask("bump again", 4, initFor(id, before.producer, before.epoch))
	}
}

// epochsRunOutInTransactions does the same by ending transactions.
func epochsRunOutInTransactions(g *txnTalk) {
	const id = "cf-exhausted-ends"
	g.topic(id, 1)
	p := g.nearlyOut(id)
	for i := range 6 {
		p.writes(12, id, 0, 1)
		g.describes("open", id)
		was := *p
		p.ends(5, i%2 == 0)
		g.describes("ended", id)
		g.ask("ends again", 5, was.ending(i%2 == 0))
		g.ask("ends the other way", 5, was.ending(i%2 == 1))
		was.writes(12, id, 0, 1)
	}
	g.reads("what is there", 12, 1, id, 0, 0)
}
