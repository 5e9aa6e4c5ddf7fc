package interop

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wirejson"
)

// transactionScenarios are the conformance suite's part about transactions. Each is told to brokers with transaction.version
// 2, and again to brokers with 1, whose answers differ.
var transactionScenarios = map[string]func(*txnTalk){
	"finding transaction coordinators":       findingTxnCoordinators,
	"producer ids in each version":           producerIDVersions,
	"what asking for an id may not say":      producerIDErrors,
	"expected ids and epochs":                expectedEpochs,
	"adding partitions in each version":      addingVersions,
	"what adding may not say":                addingErrors,
	"adding for several":                     addingForSeveral,
	"a transaction in each version":          transactionVersions,
	"transactions that nothing is in":        emptyTransactions,
	"ends that are refused":                  refusedEnds,
	"writing without adding":                 writingWithoutAdding,
	"batches that are not of their time":     wrongBatches,
	"a second instance":                      secondInstance,
	"transactions that take too long":        lateTransactions,
	"markers from outside":                   markersFromOutside,
	"offsets of transactions":                transactionOffsets,
	"offsets of transactions that are wrong": wrongTransactionOffsets,
	"offsets of members' transactions":       memberTransactionOffsets,
	"groups with offsets pending":            pendingGroups,
	"reading by isolation":                   readingByIsolation,
	"a reader waits for the end":             waitingForTheEnd,
	"offsets by isolation":                   offsetsByIsolation,
	"describing transactions":                describingTransactions,
	"listing transactions":                   listingTransactions,
	"describing producers":                   describingProducers,
	"a topic goes in a transaction":          topicGoes,
	"records go in a transaction":            recordsGo,
}

// transactionSettings make the coordinator look for late transactions often, on Apache Kafka and on ottla alike.
var transactionSettings = []string{"transaction.abort.timed.out.transaction.cleanup.interval.ms=200", "transaction.state.log.num.partitions=4"}

// TestTransactionConformance tells each scenario to Apache Kafka and to ottla and compares the transcripts.
func TestTransactionConformance(t *testing.T) {
	t.Parallel()
	ottla := startGroups(t, "--data", t.TempDir())
	converse(t, transactionScenarios, kafkaAddr, ottla.addr)
}

// TestTransactionConformanceBefore2 does it with transaction.version 1, where ends do not bump epochs and Produce does not add
// partitions.
func TestTransactionConformanceBefore2(t *testing.T) {
	t.Parallel()
	kafka := startSmallKafka(t, []string{"transaction.version=1"}, nil)
	ottla := startGroups(t, "--data", t.TempDir(), "--feature", "transaction.version=1")
	converse(t, transactionScenarios, kafka.addr, ottla.addr)
}

// TestEpochsRunOut bumps epochs until a new producer id is due.
func TestEpochsRunOut(t *testing.T) {
	t.Parallel()
	ottla := startGroups(t, "--data", t.TempDir())
	converse(t, map[string]func(*txnTalk){"by asking": epochsRunOut, "by ending": epochsRunOutInTransactions}, kafkaAddr, ottla.addr)
}

// converse tells scenarios to two brokers at the same time.
func converse(t *testing.T, scenarios map[string]func(*txnTalk), kafka, ottla string) {
	for _, addr := range []string{kafka, ottla} {
		awaitTransactions(t, addr)
	}
	answers := 0
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		scenario := scenarios[name]
		t.Run(name, func(t *testing.T) {
			theirs := newTxnTalk(t, kafka)
			scenario(theirs)
			ours := newTxnTalk(t, ottla)
			scenario(ours)
			answers += len(ours.transcript)
			requireSameTranscripts(t, theirs.transcript, ours.transcript)
		})
	}
	t.Logf("%d scenarios, %d answers", len(scenarios), answers)
}

// awaitTransactions waits until both coordinators have their topics and all partitions of these are loaded.
func awaitTransactions(t testing.TB, addr string) {
	t.Helper()
	g := newTxnTalk(t, addr)
	awaitCoordinator(t, g.conversation)
	awaitProducerIDs(g.conversation)
	g.until(func() bool {
		find := &message.FindCoordinatorRequest{CoordinatorKey: "cf-any", KeyType: 1}
		if g.quiet(3, find).(*message.FindCoordinatorResponse).ErrorCode != 0 {
			return false
		}
		var ids []string
		for i := range 40 { // names enough to meet every partition
			ids = append(ids, fmt.Sprint("cf-nobody-", i))
		}
		resp := g.quiet(0, &message.DescribeTransactionsRequest{TransactionalIds: ids}).(*message.DescribeTransactionsResponse)
		return !slices.ContainsFunc(resp.TransactionStates, func(s message.DescribeTransactionsResponseTransactionState) bool {
			return errcode.Code(s.ErrorCode) != errcode.TransactionalIdNotFound
		})
	})
}

// txnTalk is a conversation about transactions.
type txnTalk struct {
	*groupTalk
}

func newTxnTalk(t testing.TB, addr string) *txnTalk {
	return &txnTalk{newGroupTalk(t, addr)}
}

// ask is conversation.ask with the times and hash orders of the answers about transactions evened out.
func (g *txnTalk) ask(label string, version int16, req message.Request) message.Response {
	g.t.Helper()
	resp := g.exchange(version, req)
	g.heard(label, version, req, resp)
	return resp
}

func (g *txnTalk) heard(label string, version int16, req message.Request, resp message.Response) {
	g.t.Helper()
	if f, ok := resp.(*message.FetchResponse); ok {
		g.unpack(f)
	}
	if resp == nil {
		g.note(label, version, req, "closed")
		return
	}
	g.learn(resp)
	g.order(resp)
	sortHashed(resp)
	orderTransactions(resp)
	text, err := wirejson.Append(nil, resp, version)
	require.NoError(g.t, err)
	s := txnTimes.ReplaceAllString(g.normal(req.Key(), text), `"$1":"TIME"`)
	g.note(label, version, req, memberIDs.ReplaceAllStringFunc(s, func(id string) string { return cmp.Or(g.ids[id], id) }))
}

// later is ask over a connection of its own, whose answer is noted when the function that it returns is called.
func (g *txnTalk) later(label string, version int16, req message.Request) func() {
	other := &conversation{t: g.t, addr: g.addr}
	other.dial()
	answer := make(chan message.Response, 1)
	go func() { // ends with the answer
		defer close(answer)
		answer <- other.exchange(version, req)
	}()
	return func() { g.heard(label, version, req, <-answer) }
}

// txnTimes are clocks of brokers.
var txnTimes = regexp.MustCompile(`"(transactionStartTimeMs|lastTimestamp)":\d{13}`)

// orderTransactions sorts what is in the order of a hash table, and leaves out the transactions of other tests.
func orderTransactions(resp message.Response) {
	switch r := resp.(type) {
	case *message.ListTransactionsResponse:
		r.TransactionStates = slices.DeleteFunc(r.TransactionStates, func(s message.ListTransactionsResponseTransactionState) bool {
			return !strings.HasPrefix(s.TransactionalId, "cf-list-")
		})
		slices.SortFunc(r.TransactionStates, func(x, y message.ListTransactionsResponseTransactionState) int {
			return strings.Compare(x.TransactionalId, y.TransactionalId)
		})
		slices.Sort(r.UnknownStateFilters)
	case *message.DescribeTransactionsResponse:
		slices.SortStableFunc(r.TransactionStates, func(x, y message.DescribeTransactionsResponseTransactionState) int {
			return strings.Compare(x.TransactionalId, y.TransactionalId)
		})
		for _, s := range r.TransactionStates {
			slices.SortFunc(s.Topics, func(x, y message.DescribeTransactionsResponseTopicData) int { return strings.Compare(x.Topic, y.Topic) })
			for _, topic := range s.Topics {
				slices.Sort(topic.Partitions)
			}
		}
	case *message.AddPartitionsToTxnResponse:
		orderAdded(r.ResultsByTopicV3AndBelow)
		slices.SortStableFunc(r.ResultsByTransaction, func(x, y message.AddPartitionsToTxnResult) int {
			return strings.Compare(x.TransactionalId, y.TransactionalId)
		})
		for _, one := range r.ResultsByTransaction {
			orderAdded(one.TopicResults)
		}
	case *message.DescribeProducersResponse:
		for _, topic := range r.Topics {
			for _, p := range topic.Partitions {
				slices.SortFunc(p.ActiveProducers, func(x, y message.ProducerState) int { return cmp.Compare(x.ProducerId, y.ProducerId) })
			}
		}
	case *message.WriteTxnMarkersResponse:
		slices.SortFunc(r.Markers, func(x, y message.WritableTxnMarkerResult) int { return cmp.Compare(x.ProducerId, y.ProducerId) })
		for _, m := range r.Markers {
			slices.SortFunc(m.Topics, func(x, y message.WritableTxnMarkerTopicResult) int { return strings.Compare(x.Name, y.Name) })
			for _, topic := range m.Topics {
				slices.SortFunc(topic.Partitions, func(x, y message.WritableTxnMarkerPartitionResult) int {
					return cmp.Compare(x.PartitionIndex, y.PartitionIndex)
				})
			}
		}
	case *message.ListOffsetsResponse:
		for _, topic := range r.Topics {
			for i := range topic.Partitions {
				if p := &topic.Partitions[i]; p.Timestamp > epoch+60000 {
					p.Timestamp = 1 // a marker's, which is the broker's clock
				}
			}
		}
	case *message.TxnOffsetCommitResponse:
		slices.SortStableFunc(r.Topics, func(x, y message.TxnOffsetCommitResponseTopic) int { return strings.Compare(x.Name, y.Name) })
	}
}

func orderAdded(topics []message.AddPartitionsToTxnTopicResult) {
	slices.SortFunc(topics, func(x, y message.AddPartitionsToTxnTopicResult) int { return strings.Compare(x.Name, y.Name) })
	for _, topic := range topics {
		slices.SortFunc(topic.ResultsByPartition, func(x, y message.AddPartitionsToTxnPartitionResult) int {
			return cmp.Compare(x.PartitionIndex, y.PartitionIndex)
		})
	}
}

// unpack writes the batches of a fetch into the transcript, because producer ids and clocks are in their bytes.
//
// A difference: Apache Kafka's list of aborted transactions reaches to the next entry of the offset index, ottla's to the last
// record that is returned. What begins behind that concerns no record of the answer and is left out here.
func (g *txnTalk) unpack(r *message.FetchResponse) {
	for _, topic := range r.Responses {
		for i := range topic.Partitions {
			p, next := &topic.Partitions[i], int64(0)
			for rest := p.Records; len(rest) > 0; {
				one, more, err := record.Next(rest)
				if errors.Is(err, record.ErrPartial) {
					g.transcript = append(g.transcript, fmt.Sprintf("and %d bytes of another", len(rest)))
					break
				}
				require.NoError(g.t, err)
				g.transcript = append(g.transcript, fmt.Sprintf("in partition %d: %s", p.PartitionIndex, g.batchText(one)))
				h, err := record.ParseHeader(one)
				require.NoError(g.t, err)
				rest, next = more, h.NextOffset()
			}
			p.AbortedTransactions = slices.DeleteFunc(p.AbortedTransactions, func(a message.AbortedTransaction) bool { return a.FirstOffset >= next })
			if p.Records != nil {
				p.Records = []byte{}
			}
		}
	}
}

func (g *txnTalk) batchText(one []byte) string {
	require.NoError(g.t, record.Validate(one))
	h, err := record.ParseHeader(one)
	require.NoError(g.t, err)
	line := fmt.Sprintf("offset %d to %d epoch %d producer %s epoch %d sequence %d transactional %t:", h.BaseOffset, h.LastOffset(), h.PartitionLeaderEpoch,
		g.normal(wire.KeyFetch, fmt.Appendf(nil, `"producerId":%d`, h.ProducerID)), h.ProducerEpoch, h.BaseSequence, h.Transactional())
	it, err := record.Open(one, record.ReadOptions{Decompressor: compress.NewDecompressor()})
	require.NoError(g.t, err)
	for r := range it.All() {
		if h.Control() {
			line += fmt.Sprintf(" control %x %x", r.Key, r.Value)
		} else {
			line += fmt.Sprintf(" %q", r.Value)
		}
	}
	require.NoError(g.t, it.Err())
	return line
}

// topic makes a topic and waits until the whole broker knows it.
func (g *txnTalk) topic(name string, partitions int32, configs ...string) {
	g.t.Helper()
	g.create(name, partitions, configs...)
	g.until(func() bool {
		req := message.NewMetadataRequest()
		req.Topics, req.AllowAutoTopicCreation = []message.MetadataRequestTopic{{Name: &name}}, false
		topic := g.quiet(12, req).(*message.MetadataResponse).Topics[0]
		return topic.ErrorCode == 0 && len(topic.Partitions) == int(partitions)
	})
}

// initFor asks for a producer id, expecting one or, with -1 and -1, none.
func initFor(id string, producer int64, epoch int16) *message.InitProducerIdRequest {
	req := message.NewInitProducerIdRequest()
	req.TransactionTimeoutMs, req.ProducerId, req.ProducerEpoch = 900000, producer, epoch // as long as may be
	req.TransactionalId = nil
	if id != "" {
		req.TransactionalId = &id
	}
	return req
}

// txnProducer is a producer of a scenario; what it does is noted, and it goes on with the ids and epochs that it is given.
type txnProducer struct {
	g        *txnTalk
	id       string
	producer int64
	epoch    int16
	next     map[string]int32 // partition -> next sequence
}

// starts begins with the id and epoch that a coordinator gives.
func (g *txnTalk) starts(id string) *txnProducer {
	g.t.Helper()
	p := &txnProducer{g: g, id: id}
	p.restarts(4, -1, -1)
	return p
}

// restarts asks for an id again, expecting one, until no transaction is in the way.
func (p *txnProducer) restarts(version int16, producer int64, epoch int16) {
	p.g.t.Helper()
	p.g.settled(p.id)
	p.g.until(func() bool {
		resp := p.g.quiet(version, initFor(p.id, producer, epoch)).(*message.InitProducerIdResponse)
		if errcode.Code(resp.ErrorCode) == errcode.ConcurrentTransactions {
			return false
		}
		require.Zero(p.g.t, resp.ErrorCode)
		p.producer, p.epoch, p.next = resp.ProducerId, resp.ProducerEpoch, map[string]int32{}
		return true
	})
	p.g.normal(wire.KeyInitProducerId, fmt.Appendf(nil, `"producerId":%d`, p.producer)) // names it
}

// adds asks for partitions of a topic to be in the transaction.
func (p *txnProducer) adds(version int16, topic string, partitions ...int32) {
	p.g.t.Helper()
	p.g.ask(p.id+" adds", version, p.adding(version, topic, partitions...))
}

func (p *txnProducer) adding(version int16, topic string, partitions ...int32) *message.AddPartitionsToTxnRequest {
	topics := []message.AddPartitionsToTxnTopic{{Name: topic, Partitions: partitions}}
	if version < 4 {
		return &message.AddPartitionsToTxnRequest{V3AndBelowTransactionalId: p.id, V3AndBelowProducerId: p.producer, V3AndBelowProducerEpoch: p.epoch, V3AndBelowTopics: topics}
	}
	return &message.AddPartitionsToTxnRequest{Transactions: []message.AddPartitionsToTxnTransaction{{TransactionalId: p.id, ProducerId: p.producer, ProducerEpoch: p.epoch, Topics: topics}}}
}

// writes sends n records in the transaction.
func (p *txnProducer) writes(version int16, topic string, partition int32, n int) errcode.Code {
	p.g.t.Helper()
	at := fmt.Sprint(topic, "-", partition)
	resp := p.g.ask(p.id+" writes", version, p.writing(version, topic, partition, p.next[at], n)).(*message.ProduceResponse)
	code := errcode.Code(resp.Responses[0].PartitionResponses[0].ErrorCode)
	if code == errcode.None {
		p.next[at] += int32(n)
	}
	return code
}

func (p *txnProducer) writing(version int16, topic string, partition, sequence int32, n int) *message.ProduceRequest {
	b := batch{stamp: &record.Stamp{ProducerID: p.producer, ProducerEpoch: p.epoch, BaseSequence: sequence, Transactional: true}}
	for i := range n {
		b.records = append(b.records, values(fmt.Sprint(p.id, " ", p.epoch, " ", sequence, "+", i))...)
	}
	req := p.g.produceRequest(version, topic, partition, -1, b.bytes(p.g.t))
	req.TransactionalId = &p.id
	return req
}

// ends commits or aborts and waits until that is done.
func (p *txnProducer) ends(version int16, commit bool) {
	p.g.t.Helper()
	resp := p.g.ask(fmt.Sprint(p.id, " ends with ", commit), version, p.ending(commit)).(*message.EndTxnResponse)
	if resp.ProducerId >= 0 && (resp.ProducerId != p.producer || resp.ProducerEpoch != p.epoch) {
		p.producer, p.epoch, p.next = resp.ProducerId, resp.ProducerEpoch, map[string]int32{}
	}
	p.g.settled(p.id)
}

func (p *txnProducer) ending(commit bool) *message.EndTxnRequest {
	return &message.EndTxnRequest{TransactionalId: p.id, ProducerId: p.producer, ProducerEpoch: p.epoch, Committed: commit}
}

// state is what the coordinator says of a transactional id.
func (g *txnTalk) state(id string) message.DescribeTransactionsResponseTransactionState {
	g.t.Helper()
	resp := g.quiet(0, &message.DescribeTransactionsRequest{TransactionalIds: []string{id}}).(*message.DescribeTransactionsResponse)
	return resp.TransactionStates[0]
}

// settled waits until no transaction of the id is being ended.
func (g *txnTalk) settled(id string) {
	g.t.Helper()
	g.until(func() bool { return !strings.HasPrefix(g.state(id).TransactionState, "Prepare") })
}

// describes notes what the coordinator says of transactional ids.
func (g *txnTalk) describes(label string, ids ...string) {
	g.t.Helper()
	g.ask(label, 0, &message.DescribeTransactionsRequest{TransactionalIds: ids})
}

// reads notes what a partition holds for a reader with an isolation level, 0 or 1.
func (g *txnTalk) reads(label string, version int16, isolation int8, topic string, partition int32, from int64) {
	g.t.Helper()
	g.ask(label, version, g.reading(version, isolation, topic, partition, from))
}

func (g *txnTalk) reading(version int16, isolation int8, topic string, partition int32, from int64) *message.FetchRequest {
	req := g.fetchRequest(version, part(topic, partition, from))
	req.IsolationLevel, req.MaxWaitMs = isolation, 0
	return req
}

// open makes a producer with a transaction that has n records in a partition.
func (g *txnTalk) open(id, topic string, partition int32, n int) *txnProducer {
	g.t.Helper()
	p := g.starts(id)
	p.adds(3, topic, partition)
	require.Equal(g.t, errcode.None, p.writes(11, topic, partition, n))
	return p
}
