package interop

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// interleaved leaves a partition with transactions one into another, aborted and committed, a plain batch between them, and
// one open at the end.
func (g *txnTalk) interleaved(topic string) (open *txnProducer) {
	g.t.Helper()
	g.topic(topic, 1)
	g.write(topic, 0, batch{records: values("plain", "first")})
	a := g.open(topic+"-a", topic, 0, 2)
	b := g.open(topic+"-b", topic, 0, 1)
	a.writes(11, topic, 0, 1)
	g.write(topic, 0, batch{records: values("plain", "second")})
	a.ends(3, false)
	b.writes(11, topic, 0, 3)
	c := g.open(topic+"-c", topic, 0, 1)
	b.ends(3, true)
	a.adds(3, topic, 0)
	a.writes(11, topic, 0, 2)
	a.ends(3, false)
	c.ends(3, false)
	b.adds(3, topic, 0)
	b.writes(11, topic, 0, 2)
	g.write(topic, 0, batch{records: values("plain", "third")})
	return b
}

// readingByIsolation fetches from every offset in every version, with everything that there is and with limits.
func readingByIsolation(g *txnTalk) {
	open := g.interleaved("cf-isolation")
	all := func(label string) {
		for _, v := range versions(wire.KeyFetch) {
			for from := range int64(21) {
				for isolation := range int8(2) {
					if v != 4 && v != 12 && v != 18 && from%5 != 0 {
						continue
					}
					g.reads(fmt.Sprint(label, " from ", from, " isolation ", isolation), v, isolation, "cf-isolation", 0, from)
				}
			}
		}
		for _, limit := range []int32{1, 150, 300, 450, 700} {
			for from := range int64(20) {
				p := part("cf-isolation", 0, from)
				p.maxBytes = limit
				req := g.fetchRequest(12, p)
				req.IsolationLevel, req.MaxWaitMs = 1, 0
				g.ask(fmt.Sprint(label, " from ", from, " limit ", limit), 12, req)
			}
		}
	}
	all("one is open")
	open.ends(3, false)
	all("all have ended")
	g.reads("isolation 2", 12, 2, "cf-isolation", 0, 0)
}

// waitingForTheEnd is about fetches that wait for more than there is.
func waitingForTheEnd(g *txnTalk) {
	g.topic("cf-wait", 1)
	for _, commit := range []bool{true, false} {
		p := g.open(fmt.Sprint("cf-wait-", commit), "cf-wait", 0, 2)
		end := g.quiet(7, g.offsetsRequest("cf-wait", -1)).(*message.ListOffsetsResponse).Topics[0].Partitions[0].Offset
		req := g.reading(12, 1, "cf-wait", 0, end-2)
		req.MaxWaitMs = int32(patience.Milliseconds() / 2)
		wait := g.later("a reader of what is committed", 12, req)
		g.quiet(3, &message.HeartbeatRequest{}) // the reader's request is under way, if not there yet
		p.ends(3, commit)
		wait()
	}
}

func offsetsByIsolation(g *txnTalk) {
	open := g.interleaved("cf-txn-offsets")
	all := func(label string) {
		for _, v := range versions(wire.KeyListOffsets) {
			if v < 2 {
				continue // knows no isolation
			}
			// Not -3, the largest timestamp: it is a marker's, and two of them may be of the same millisecond.
			for _, ts := range []int64{-1, -2, -4, -5, epoch - 1, epoch, epoch + 1, epoch + 2, epoch + 1000} {
				for isolation := range int8(2) {
					req := g.offsetsRequest("cf-txn-offsets", ts)
					req.IsolationLevel = isolation
					g.ask(fmt.Sprint(label, " isolation ", isolation, " at ", ts-epoch), v, req)
				}
			}
		}
	}
	all("one is open")
	open.ends(3, true)
	for _, v := range versions(wire.KeyListOffsets)[1:] { // markers have the broker's time
		for isolation := range int8(2) {
			req := g.offsetsRequest("cf-txn-offsets", -1)
			req.IsolationLevel = isolation
			g.ask(fmt.Sprint("all have ended, isolation ", isolation), v, req)
		}
	}
}

func describingTransactions(g *txnTalk) {
	g.topic("cf-describe", 4)
	g.topic("cf-describe-too", 2)
	p := g.starts("cf-describe")
	g.describes("empty", p.id)
	p.adds(3, "cf-describe", 3, 1)
	g.describes("ongoing", p.id)
	p.adds(3, "cf-describe-too", 0)
	g.ask("offsets", 3, p.addingOffsets("cf-describe"))
	g.describes("more", p.id, "cf-nobody", "")
	p.ends(3, true)
	g.describes("committed", p.id)
	p.adds(3, "cf-describe", 0)
	p.ends(3, false)
	g.describes("aborted", p.id)
	p.writes(12, "cf-describe", 2, 1)
	g.describes("by writing", p.id)
	p.ends(5, true)
	g.describes("committed", p.id)
	g.describes("nobody")
	g.describes("twice", p.id, p.id)
	init := initFor("cf-describe", -1, -1)
	init.TransactionTimeoutMs = 12345
	g.ask("another timeout", 4, init)
	g.describes("after it", p.id)
}

func listingTransactions(g *txnTalk) {
	g.topic("cf-list", 1)
	g.starts("cf-list-empty")
	open := g.open("cf-list-open", "cf-list", 0, 1)
	committed := g.open("cf-list-committed", "cf-list", 0, 1)
	committed.ends(3, true)
	aborted := g.open("cf-list-aborted", "cf-list", 0, 1)
	aborted.ends(3, false)
	for _, v := range versions(wire.KeyListTransactions) {
		list := func(label string, change func(req *message.ListTransactionsRequest)) {
			req := message.NewListTransactionsRequest()
			change(req)
			g.ask(label, v, req)
		}
		list("all", func(*message.ListTransactionsRequest) {})
		for _, states := range [][]string{{"Empty"}, {"Ongoing"}, {"CompleteCommit", "CompleteAbort"}, {"PrepareCommit", "PrepareAbort", "Dead", "PrepareEpochFence"},
			{"ongoing"}, {"Nonsense"}, {"Nonsense", "Ongoing", "More"}, {""}} {
			list(fmt.Sprint(states), func(req *message.ListTransactionsRequest) { req.StateFilters = states })
		}
		list("a producer", func(req *message.ListTransactionsRequest) { req.ProducerIdFilters = []int64{open.producer} })
		list("two producers and a state", func(req *message.ListTransactionsRequest) {
			req.ProducerIdFilters, req.StateFilters = []int64{open.producer, aborted.producer, 1 << 50}, []string{"CompleteAbort"}
		})
		if v >= 1 {
			for _, duration := range []int64{0, 3600000} {
				list(fmt.Sprint("running for ", duration), func(req *message.ListTransactionsRequest) { req.DurationFilter = duration })
			}
			list("running for less than nothing", func(req *message.ListTransactionsRequest) { req.DurationFilter = -7 })
		}
		if v >= 2 {
			for _, pattern := range []string{"cf-list-.*", "cf-list-o", ".*open", "", "cf-list-(open|empty)", "cf-(", "cf-list-[a-c].*"} {
				list("pattern "+pattern, func(req *message.ListTransactionsRequest) { req.TransactionalIdPattern = &pattern })
			}
		}
	}
}

func describingProducers(g *txnTalk) {
	g.topic("cf-producers", 3)
	plain := batch{records: values("x", "y")}
	g.write("cf-producers", 0, plain)
	g.producers("nobody", "cf-producers", 0)
	id, e := g.initProducer(4)
	g.ask("idempotent", 12, g.produceRequest(12, "cf-producers", 0, -1, g.idempotent(id, e, 0, 3)))
	g.producers("an idempotent one", "cf-producers", 0)
	p := g.open("cf-producers", "cf-producers", 0, 2)
	g.producers("one with a transaction", "cf-producers", 0)
	p.writes(11, "cf-producers", 0, 4)
	g.producers("with more", "cf-producers", 0)
	p.ends(3, true)
	g.producers("committed", "cf-producers", 0)
	p.restarts(4, p.producer, p.epoch)
	g.producers("bumped", "cf-producers", 0)
	p.adds(3, "cf-producers", 1)
	p.writes(11, "cf-producers", 1, 1)
	p.ends(3, false)
	p.writes(12, "cf-producers", 2, 1)
	for i := range int32(3) {
		g.producers("everywhere", "cf-producers", i)
	}
	p.ends(5, true)
	g.producers("by the second protocol", "cf-producers", 2)
	g.producers("an absent partition", "cf-producers", 3)
	g.producers("an absent topic", "cf-nowhere", 0)
	g.producers("a negative partition", "cf-producers", -1)
	g.ask("nothing", 0, &message.DescribeProducersRequest{})
}

// topicGoes deletes a topic that an open transaction has records in; the transaction ends nevertheless.
func topicGoes(g *txnTalk) {
	for i, commit := range []bool{true, false} {
		gone, stays := fmt.Sprint("cf-goes-", i), fmt.Sprint("cf-stays-", i)
		g.topic(stays, 1)
		g.topic(gone, 1)
		p := g.open(gone, gone, 0, 1)
		p.adds(3, stays, 0)
		p.writes(11, stays, 0, 1)
		g.drop(gone)
		g.until(func() bool {
			req := message.NewMetadataRequest()
			req.Topics, req.AllowAutoTopicCreation = []message.MetadataRequestTopic{{Name: &gone}}, false
			return g.quiet(12, req).(*message.MetadataResponse).Topics[0].ErrorCode == 3
		})
		g.describes("one is gone", p.id)
		p.writes(11, gone, 0, 1)
		p.writes(11, stays, 0, 1)
		p.ends(3, commit)
		g.describes("the end", p.id)
		g.reads("what is there", 12, 1, stays, 0, 0)
		p.adds(3, gone, 0)
		p.ends(3, commit)
		g.describes("the end", p.id)
	}
}

// recordsGo deletes records of transactions, of one that is open, too.
func recordsGo(g *txnTalk) {
	open := g.interleaved("cf-delete")
	for _, before := range []int64{1, 4, 7, 13, 17, 20} {
		req := &message.DeleteRecordsRequest{TimeoutMs: 5000, Topics: []message.DeleteRecordsTopic{{Name: "cf-delete",
			Partitions: []message.DeleteRecordsPartition{{PartitionIndex: 0, Offset: before}}}}}
		g.ask(fmt.Sprint("delete before ", before), 2, req)
		g.reads("what is left", 12, 1, "cf-delete", 0, before)
		g.reads("what is left", 12, 0, "cf-delete", 0, before)
		g.producers("who is left", "cf-delete", 0)
		for isolation := range int8(2) {
			req := g.offsetsRequest("cf-delete", -1)
			req.IsolationLevel = isolation
			g.ask("the end", 7, req)
		}
	}
	open.ends(3, false)
	g.reads("ended", 12, 1, "cf-delete", 0, 20)
	g.producers("ended", "cf-delete", 0)
}
