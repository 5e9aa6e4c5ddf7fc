package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/hash"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// TestBrokersFinishEachOthersTransactions lets ottla, Apache Kafka and ottla again go on with one data folder, each after a
// clean end or a kill of the one before. Each finds transactions that are open, which their producers then end, and one that
// is decided and whose markers are missing, which it ends itself.
func TestBrokersFinishEachOthersTransactions(t *testing.T) {
	t.Parallel()
	data, port := t.TempDir(), reserve(t, 2)
	conf := filepath.Join(t.TempDir(), "server.properties")
	require.NoError(t, os.WriteFile(conf, []byte(strings.Join(smallSettings(data, port), "\n")), 0o644))
	startOurs := func() *process { return startGroups(t, "--data", data, "--port", fmt.Sprint(port)) }
	s := &succession{t: t}
	startTheirs := func() *process {
		for range 5 {
			p, err := runKafka(conf, data, listeners{"PLAINTEXT": fmt.Sprintf("127.0.0.1:%d", port)})
			require.NoError(t, err)
			t.Cleanup(func() { p.kill() })
			if s.markersWritten(p.addr) {
				return p
			}
			p.kill()
		}
		require.Fail(t, "Apache Kafka writes no markers")
		return nil
	}
	p := startOurs()
	s.begin("first", p.addr)
	p.kill()
	p = startTheirs()
	s.finish("first", p.addr)
	s.begin("second", p.addr)
	require.NoError(t, ended(p))
	p = startOurs()
	s.finish("second", p.addr)
	s.begin("third", p.addr)
	require.NoError(t, ended(p))
	p = startTheirs()
	s.finish("third", p.addr)
	s.begin("fourth", p.addr)
	p.kill()
	p = startOurs()
	s.finish("fourth", p.addr)
	t.Logf("%d records of %d transactions are as they have to be", len(s.committed), s.transactions)
}

// succession is what must hold whoever is in charge.
type succession struct {
	t            *testing.T
	open         *txnProducer // commits under the next broker
	doomed       *txnProducer // aborts there
	late         *txnProducer // is aborted by the next instance there
	decided      *txnProducer // has no markers yet
	committed    []string     // values in the order of topic tk, for a reader of what is committed
	transactions int
}

// begin leaves transactions in every state.
func (s *succession) begin(who, addr string) {
	awaitTransactions(s.t, addr)
	g := newTxnTalk(s.t, addr)
	g.keeps = true
	if who == "first" {
		g.topic("tk", 1)
	}
	id := func(kind string) string { return "tk-" + kind + "-" + who }
	add := func(p *txnProducer, n int) { // a batch's values, as txnProducer.writing makes them
		for i := range n {
			s.committed = append(s.committed, fmt.Sprintf("%s %d 0+%d", p.id, p.epoch, i))
		}
		s.transactions++
	}
	done := g.open(id("done"), "tk", 0, 2)
	add(done, 2)
	done.ends(3, true)
	g.open(id("aborted"), "tk", 0, 3).ends(3, false)
	s.open = g.open(id("open"), "tk", 0, 2)
	add(s.open, 2)
	group := id("group")
	g.quiet(3, s.open.addingOffsets(group))
	g.quiet(3, s.open.committing(3, group, "tk", 41))
	s.doomed = g.open(id("doomed"), "tk", 0, 1)
	s.late = g.open(id("late"), "tk", 0, 1)
	s.decided = g.open(id("decided"), "tk", 0, 2)
	add(s.decided, 2)
	g.decide(s.decided, "tk")
	s.transactions += 3
}

// markersWritten tells whether Apache Kafka has written the markers of the transaction that is decided. It does not when its
// coordinator is loaded before its own metadata has come in: it takes the partition for deleted then, and the transaction for
// complete, which leaves it hanging. Then the decision is put back.
func (s *succession) markersWritten(addr string) bool {
	awaitTransactions(s.t, addr)
	g := newTxnTalk(s.t, addr)
	g.settled(s.decided.id)
	req := &message.DescribeProducersRequest{Topics: []message.DescribeProducersRequestTopicRequest{{Name: "tk", PartitionIndexes: []int32{0}}}}
	for _, p := range g.quiet(0, req).(*message.DescribeProducersResponse).Topics[0].Partitions[0].ActiveProducers {
		if p.ProducerId == s.decided.producer && p.CurrentTxnStartOffset >= 0 {
			s.t.Log("Apache Kafka has forgotten markers")
			g.decide(s.decided, "tk")
			return false
		}
	}
	return true
}

// finish goes on with what the broker before has left.
func (s *succession) finish(who, addr string) {
	awaitTransactions(s.t, addr)
	g := newTxnTalk(s.t, addr)
	g.keeps = true
	g.topicIDs["tk"] = wire.UUID{}
	id := func(kind string) string { return "tk-" + kind + "-" + who }
	require.Equal(s.t, "CompleteCommit", g.state(id("done")).TransactionState, who)
	require.Equal(s.t, "CompleteAbort", g.state(id("aborted")).TransactionState, who)
	g.settled(id("decided"))
	require.Equal(s.t, "CompleteCommit", g.state(id("decided")).TransactionState, who)
	for _, p := range []*txnProducer{s.open, s.doomed, s.late} {
		state := g.state(p.id)
		require.Equal(s.t, "Ongoing", state.TransactionState, p.id)
		require.Equal(s.t, p.producer, state.ProducerId, p.id)
		require.Equal(s.t, p.epoch, state.ProducerEpoch, p.id)
		p.g = g
	}
	group := id("group")
	stable := g.fetching(7, group, "tk", 0)
	stable.RequireStable = true
	offset := func() message.OffsetFetchResponsePartition {
		return g.quiet(7, stable).(*message.OffsetFetchResponse).Topics[0].Partitions[0]
	}
	require.Equal(s.t, errcode.UnstableOffsetCommit, errcode.Code(offset().ErrorCode), "%s: the offset is pending", who)
	require.Equal(s.t, errcode.None, s.open.writes(11, "tk", 0, 1), "%s: an open transaction goes on", who)
	s.committed = append(s.committed, fmt.Sprintf("%s %d 2+0", s.open.id, s.open.epoch))
	for _, p := range []*txnProducer{s.open, s.doomed} { // told twice, as by one who did not get the answer
		commit, before := p == s.open, *p
		p.ends(5, commit)
		require.Equal(s.t, before.epoch+1, p.epoch)
		before.ends(5, commit)
		require.Equal(s.t, p.epoch, before.epoch)
	}
	s.late.restarts(4, -1, -1)
	for _, p := range []*txnProducer{s.open, s.doomed, s.late} {
		require.NotEqual(s.t, "Ongoing", g.state(p.id).TransactionState)
	}
	g.awaitStable(group, "tk")
	require.EqualValues(s.t, 41, offset().CommittedOffset, who)
	require.Equal(s.t, s.committed, g.valuesCommitted("tk"), "%s: what is committed", who)
}

// decide writes into the log of the coordinator that a transaction is to be committed, as if the broker had died before it
// wrote the markers. What the coordinator has in memory is another matter: the broker has to go now.
func (g *txnTalk) decide(p *txnProducer, topic string) {
	g.t.Helper()
	key := logrecord.TransactionLogKey{TransactionalId: p.id}
	value := logrecord.NewTransactionLogValue()
	value.ProducerId, value.ProducerEpoch, value.TransactionTimeoutMs = p.producer, p.epoch, 900000
	value.PreviousProducerId = p.producer
	value.TransactionStatus = 2 // PrepareCommit
	value.TransactionPartitions = []logrecord.PartitionsSchema{{Topic: topic, PartitionIds: []int32{0}}}
	value.TransactionStartTimestampMs, value.TransactionLastUpdateTimestampMs = time.Now().UnixMilli(), time.Now().UnixMilli()
	k, err := key.AppendTo([]byte{0, 0}, 0)
	require.NoError(g.t, err)
	v, err := value.AppendTo([]byte{0, 1}, 1)
	require.NoError(g.t, err)
	const partitions = 4 // transactionSettings
	b := batch{records: []record.Record{{Timestamp: time.Now().UnixMilli(), Key: k, Value: v}}}
	admin := &conversation{t: g.t, addr: g.addr, client: "__admin_client"} // who may
	admin.dial()
	h := hash.JavaString(p.id)
	req := admin.produceRequest(12, "__transaction_state", max(h, -h)%partitions, -1, b.bytes(g.t))
	resp := admin.quiet(12, req).(*message.ProduceResponse).Responses[0].PartitionResponses[0]
	require.Equal(g.t, errcode.None, errcode.Code(resp.ErrorCode))
}

// valuesCommitted reads partition 0 of a topic as a reader of what is committed does: with the list of what was aborted.
func (g *txnTalk) valuesCommitted(topic string) (list []string) {
	g.t.Helper()
	for next := int64(0); ; {
		resp := g.quiet(11, g.reading(11, 1, topic, 0, next)).(*message.FetchResponse)
		p := resp.Responses[0].Partitions[0]
		require.Zero(g.t, p.ErrorCode)
		require.Equal(g.t, p.HighWatermark, p.LastStableOffset, "no transaction is open")
		if len(p.Records) == 0 {
			return list
		}
		aborted := map[int64]int64{} // producer -> first offset
		for _, a := range p.AbortedTransactions {
			if first, ok := aborted[a.ProducerId]; !ok || a.FirstOffset < first {
				aborted[a.ProducerId] = a.FirstOffset
			}
		}
		for rest := p.Records; len(rest) > 0; {
			one, more, err := record.Next(rest)
			if err != nil {
				break
			}
			h, err := record.ParseHeader(one)
			require.NoError(g.t, err)
			first, gone := aborted[h.ProducerID]
			switch {
			case h.Control():
				delete(aborted, h.ProducerID)
			case !gone || h.BaseOffset < first:
				list = append(list, valuesOf(g.t, one)...)
			}
			rest, next = more, h.NextOffset()
		}
	}
}

func valuesOf(t testing.TB, one []byte) (list []string) {
	t.Helper()
	it, err := record.Open(one, record.ReadOptions{})
	require.NoError(t, err)
	for r := range it.All() {
		list = append(list, string(r.Value))
	}
	require.NoError(t, it.Err())
	return list
}
