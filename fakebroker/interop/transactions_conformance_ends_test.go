package interop

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

func addingVersions(g *txnTalk) {
	g.topic("cf-adding", 3)
	for _, v := range versions(wire.KeyAddPartitionsToTxn) {
		p := g.starts(fmt.Sprint("cf-adding-", v))
		p.adds(v, "cf-adding", 0)
		g.describes("one is in", p.id)
		p.adds(v, "cf-adding", 0, 2)
		g.describes("two are in", p.id)
		p.adds(v, "cf-adding", 0, 2)
		p.ends(3, true)
		p.adds(v, "cf-adding", 1)
		g.describes("another transaction", p.id)
		p.ends(3, false)
		g.describes("and its end", p.id)
	}
}

func addingErrors(g *txnTalk) {
	g.topic("cf-adding-errors", 1)
	for _, v := range versions(wire.KeyAddPartitionsToTxn) {
		p := g.starts(fmt.Sprint("cf-adding-errors-", v))
		try := func(label string, change func(p *txnProducer)) {
			other := *p
			change(&other)
			g.ask(label, v, other.adding(v, "cf-adding-errors", 0))
		}
		try("an unknown id", func(p *txnProducer) { p.id = "cf-nobody" })
		try("no id", func(p *txnProducer) { p.id = "" })
		try("another producer", func(p *txnProducer) { p.producer += 500000 })
		try("the epoch to come", func(p *txnProducer) { p.epoch++ })
		try("no epoch", func(p *txnProducer) { p.epoch = -1 })
		g.ask("an absent topic", v, p.adding(v, "cf-nowhere", 0))
		g.ask("an absent partition", v, p.adding(v, "cf-adding-errors", 1))
		g.ask("one is there", v, p.adding(v, "cf-adding-errors", 0, 1))
		g.ask("no partitions", v, p.adding(v, "cf-adding-errors"))
		g.ask("a partition twice", v, p.adding(v, "cf-adding-errors", 0, 0))
		g.ask("an internal topic", v, p.adding(v, "__consumer_offsets", 0))
		nothing := p.adding(v, "x")
		nothing.V3AndBelowTopics = nil
		if v >= 4 {
			nothing.Transactions[0].Topics = nil
		}
		g.ask("no topics", v, nothing)
		g.describes("after all that", p.id)
		p.restarts(4, -1, -1)
		try("the epoch before", func(p *txnProducer) { p.epoch-- })
		g.describes("after that", p.id)
	}
}

// addingForSeveral is what brokers ask the coordinator: in batches, to add or to verify only.
func addingForSeveral(g *txnTalk) {
	g.topic("cf-several", 3)
	for _, v := range []int16{4, 5} {
		var all []message.AddPartitionsToTxnTransaction
		for i := range 3 {
			p := g.starts(fmt.Sprint("cf-several-", v, "-", i))
			if i > 0 {
				p.adds(3, "cf-several", int32(i))
			}
			all = append(all, p.adding(v, "cf-several", 0, 1, 2).Transactions...)
		}
		verify := func(label string, change func(tx *message.AddPartitionsToTxnTransaction)) {
			for i := range all {
				one := all[i]
				one.VerifyOnly = true
				change(&one)
				g.ask(fmt.Sprint("verify ", label, " of ", i), v, &message.AddPartitionsToTxnRequest{Transactions: []message.AddPartitionsToTxnTransaction{one}})
			}
		}
		verify("as it is", func(*message.AddPartitionsToTxnTransaction) {})
		verify("the epoch to come", func(tx *message.AddPartitionsToTxnTransaction) { tx.ProducerEpoch++ })
		verify("the epoch before", func(tx *message.AddPartitionsToTxnTransaction) { tx.ProducerEpoch-- })
		verify("another producer", func(tx *message.AddPartitionsToTxnTransaction) { tx.ProducerId += 500000 })
		verify("an unknown id", func(tx *message.AddPartitionsToTxnTransaction) { tx.TransactionalId = "cf-nobody" })
		verify("no id", func(tx *message.AddPartitionsToTxnTransaction) { tx.TransactionalId = "" })
		verify("an absent topic", func(tx *message.AddPartitionsToTxnTransaction) {
			tx.Topics = []message.AddPartitionsToTxnTopic{{Name: "cf-several", Partitions: []int32{1}}, {Name: "cf-nowhere", Partitions: []int32{0}}}
		})
		mixed := append([]message.AddPartitionsToTxnTransaction{}, all...)
		mixed[1].VerifyOnly = true
		mixed[2].ProducerEpoch += 7
		mixed = append(mixed, message.AddPartitionsToTxnTransaction{TransactionalId: "cf-nobody", Topics: all[0].Topics})
		g.ask("one adds, one verifies, one is wrong, one is unknown", v, &message.AddPartitionsToTxnRequest{Transactions: mixed})
		g.ask("all", v, &message.AddPartitionsToTxnRequest{Transactions: all})
		for _, one := range all {
			g.describes("after it", one.TransactionalId)
		}
		ended := &txnProducer{g: g, id: all[1].TransactionalId, producer: all[1].ProducerId, epoch: all[1].ProducerEpoch}
		ended.ends(3, true)
		verify("one has ended", func(*message.AddPartitionsToTxnTransaction) {})
	}
}

// transactionVersions has a commit and an abort in every version of Produce and EndTxn.
func transactionVersions(g *txnTalk) {
	g.topic("cf-transaction", 1)
	for _, produce := range versions(wire.KeyProduce) {
		for _, end := range versions(wire.KeyEndTxn) {
			p := g.starts(fmt.Sprint("cf-transaction-", produce, "-", end))
			for _, commit := range []bool{true, false, true} {
				if produce < 12 {
					p.adds(3, "cf-transaction", 0)
				}
				p.writes(produce, "cf-transaction", 0, 2)
				p.writes(produce, "cf-transaction", 0, 1)
				p.ends(end, commit)
				g.describes("after it", p.id)
			}
		}
	}
	g.reads("everything", 12, 1, "cf-transaction", 0, 0)
}

// emptyTransactions end without anything in them, in all states that there are.
func emptyTransactions(g *txnTalk) {
	for _, v := range versions(wire.KeyEndTxn) {
		for _, commit := range []bool{true, false} {
			p := g.starts(fmt.Sprint("cf-empty-", v, "-", commit))
			for range 3 {
				p.ends(v, commit)
				g.describes("after it", p.id)
			}
			p.ends(v, !commit)
			g.describes("after the other", p.id)
		}
	}
}

func refusedEnds(g *txnTalk) {
	g.topic("cf-ends", 1)
	for _, v := range versions(wire.KeyEndTxn) {
		p := g.open(fmt.Sprint("cf-ends-", v), "cf-ends", 0, 1)
		try := func(label string, change func(p *txnProducer)) {
			other := *p
			change(&other)
			g.ask(label+", commit", v, other.ending(true))
			g.ask(label+", abort", v, other.ending(false))
		}
		all := func() {
			try("an unknown id", func(p *txnProducer) { p.id = "cf-nobody" })
			try("no id", func(p *txnProducer) { p.id = "" })
			try("another producer", func(p *txnProducer) { p.producer += 500000 })
			try("the epoch to come", func(p *txnProducer) { p.epoch++ })
			try("no epoch", func(p *txnProducer) { p.epoch = -1 })
			g.describes("after all that", p.id)
		}
		all()
		was := *p
		p.ends(v, v%2 == 0)
		g.describes("ended", p.id)
		for range 2 {
			g.ask("the same again", v, was.ending(v%2 == 0))
			g.ask("the other way", v, was.ending(v%2 == 1))
			g.describes("after it", p.id)
		}
		all()
	}
	g.reads("what is there", 12, 1, "cf-ends", 0, 0)
}

func writingWithoutAdding(g *txnTalk) {
	g.topic("cf-without", 2)
	for _, v := range versions(wire.KeyProduce) {
		p := g.starts(fmt.Sprint("cf-without-", v))
		p.writes(v, "cf-without", 0, 1)
		g.describes("after it", p.id)
		p.adds(3, "cf-without", 1)
		p.writes(v, "cf-without", 0, 1)
		p.writes(v, "cf-without", 1, 1)
		p.writes(v, "cf-without", 0, 1)
		g.describes("after them", p.id)
		p.ends(3, true)
		p.writes(v, "cf-without", 1, 1)
		p.ends(3, false)
		g.describes("at the end", p.id)
	}
	for partition := range int32(2) {
		g.reads("what is there", 12, 1, "cf-without", partition, 0)
	}
}

// wrongBatches are sent into open transactions.
func wrongBatches(g *txnTalk) {
	g.topic("cf-wrong", 2)
	for _, v := range versions(wire.KeyProduce) {
		p := g.open(fmt.Sprint("cf-wrong-", v), "cf-wrong", 0, 2)
		try := func(label string, sequence int32, change func(p *txnProducer)) {
			other := *p
			change(&other)
			req := other.writing(v, "cf-wrong", 0, sequence, 2)
			req.TransactionalId = &p.id
			g.ask(label, v, req)
		}
		same := func(*txnProducer) {}
		try("the same again", 0, same)
		try("a gap", 5, same)
		try("back by one", 1, same)
		try("the epoch to come", 0, func(p *txnProducer) { p.epoch++ })
		try("the epoch before", 2, func(p *txnProducer) { p.epoch-- })
		try("another producer", 0, func(p *txnProducer) { p.producer += 500000 })
		try("the next", 2, same)
		plain := batch{stamp: &record.Stamp{ProducerID: p.producer, ProducerEpoch: p.epoch, BaseSequence: 4}, records: values("plain")}
		g.ask("not of the transaction", v, g.produceRequest(v, "cf-wrong", 0, -1, plain.bytes(g.t)))
		named := g.produceRequest(v, "cf-wrong", 0, -1, plain.bytes(g.t))
		named.TransactionalId = &p.id
		g.ask("not of the transaction, with its name", v, named)
		req := p.writing(v, "cf-wrong", 0, 4, 1)
		req.TransactionalId = nil
		g.ask("no transactional id", v, req)
		req = p.writing(v, "cf-wrong", 0, 4, 1)
		req.TransactionalId = new("")
		g.ask("an empty transactional id", v, req)
		req = p.writing(v, "cf-wrong", 1, 0, 1)
		req.TransactionalId = new("cf-nobody")
		g.ask("an unknown transactional id", v, req)
		req = p.writing(v, "cf-wrong", 0, 4, 1)
		req.Acks = 1
		g.ask("acks 1", v, req)
		req = p.writing(v, "cf-wrong", 0, 5, 1)
		two := p.writing(v, "cf-wrong", 1, 0, 1)
		req.TopicData[0].PartitionData = append(req.TopicData[0].PartitionData, two.TopicData[0].PartitionData...)
		g.ask("two partitions, one was not added", v, req)
		g.describes("after all that", p.id)
		p.ends(3, true)
		g.ask("after the end", v, p.writing(v, "cf-wrong", 0, 6, 1))
		g.settled(p.id)
		g.ask("ends that", 3, p.ending(false))
		g.settled(p.id)
	}
	for partition := range int32(2) {
		g.reads("what is there", 12, 1, "cf-wrong", partition, 0)
	}
}

// markersFromOutside are sent as a coordinator sends them.
func markersFromOutside(g *txnTalk) {
	g.topic("cf-markers", 2)
	marker := func(p *txnProducer, commit bool, coordinator int32, version int8, topics ...message.WritableTxnMarkerTopic) message.WritableTxnMarker {
		if topics == nil {
			topics = []message.WritableTxnMarkerTopic{{Name: "cf-markers", PartitionIndexes: []int32{0}}}
		}
		return message.WritableTxnMarker{ProducerId: p.producer, ProducerEpoch: p.epoch, TransactionResult: commit, Topics: topics, CoordinatorEpoch: coordinator, TransactionVersion: version}
	}
	for _, v := range versions(wire.KeyWriteTxnMarkers) {
		for _, tv := range []int8{0, 1, 2, 3} {
			if v < 2 && tv > 0 {
				continue
			}
			send := func(label string, list ...message.WritableTxnMarker) {
				g.ask(fmt.Sprint(label, ", transaction version ", tv), v, &message.WriteTxnMarkersRequest{Markers: list})
			}
			id := fmt.Sprint("cf-markers-", v, "-", tv)
			g.starts(id)
			p := g.open(id, "cf-markers", 0, 1) // with epoch 1
			old, next := *p, *p
			next.epoch++
			for range 3 {
				old.epoch--
				send(fmt.Sprint("epoch ", old.epoch), marker(&old, true, 0, tv))
			}
			send("a coordinator of the past", marker(p, true, -1, tv))
			send("an absent topic", marker(p, true, 0, tv, message.WritableTxnMarkerTopic{Name: "cf-nowhere", PartitionIndexes: []int32{0}}))
			send("an absent partition", marker(p, true, 0, tv, message.WritableTxnMarkerTopic{Name: "cf-markers", PartitionIndexes: []int32{5}}))
			g.producers("before", "cf-markers", 0)
			send("the epoch that it has", marker(p, false, 0, tv))
			g.producers("after", "cf-markers", 0)
			send("the same again", marker(p, false, 0, tv))
			p.writes(11, "cf-markers", 0, 1)
			g.producers("open again", "cf-markers", 0)
			p.ends(3, false)
			g.describes("the coordinator", p.id)
			g.producers("ended", "cf-markers", 0)
			send("the epoch to come", marker(&next, true, 0, tv))
			g.producers("after", "cf-markers", 0)
			p.restarts(4, -1, -1)
			p.adds(3, "cf-markers", 0)
			p.writes(11, "cf-markers", 0, 1)
			p.ends(3, true)
			g.producers("at the end", "cf-markers", 0)
			there := message.WritableTxnMarkerTopic{Name: "cf-markers", PartitionIndexes: []int32{1}}
			stranger := &txnProducer{g: g, producer: p.producer + 700000 + 1000*int64(v) + 100*int64(tv), epoch: 3} // whom no coordinator knows
			send("a producer that never wrote", marker(stranger, true, 0, tv, there))
			send("a coordinator to come", marker(stranger, true, 5, tv, there))
			send("and one before it", marker(stranger, true, 4, tv, there))
			other := *stranger
			other.producer++
			everywhere := []message.WritableTxnMarkerTopic{{Name: "cf-markers", PartitionIndexes: []int32{0, 1, 7}}, {Name: "cf-nowhere", PartitionIndexes: []int32{0}}}
			send("several", marker(stranger, true, 9, tv, there), marker(&other, false, 9, tv, everywhere...))
			g.producers("at the end", "cf-markers", 1)
		}
		g.ask("no markers", v, &message.WriteTxnMarkersRequest{})
	}
	for partition := range int32(2) {
		g.reads("what is there", 12, 1, "cf-markers", partition, 0)
	}
}

// producers notes what a partition knows of producers.
func (g *txnTalk) producers(label, topic string, partition int32) {
	g.t.Helper()
	g.ask(label, 0, &message.DescribeProducersRequest{Topics: []message.DescribeProducersRequestTopicRequest{{Name: topic, PartitionIndexes: []int32{partition}}}})
}
