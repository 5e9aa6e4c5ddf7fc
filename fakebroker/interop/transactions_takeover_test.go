package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// TestTransactionsAreTakenOver has ottla, Apache Kafka and ottla again coordinate the same transactions on one data folder.
// In each turn the transactions that the one before has left open are committed or aborted, twice as if the first answer was
// lost, and new ones are opened. Ottla's turns end as a crash does.
func TestTransactionsAreTakenOver(t *testing.T) {
	t.Parallel()
	data, port := t.TempDir(), twoPorts(t)
	addr, controller := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", port+1)
	conf := filepath.Join(t.TempDir(), "server.properties")
	require.NoError(t, os.WriteFile(conf, []byte(strings.Join([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.bootstrap.servers=" + controller,
		"listeners=PLAINTEXT://" + addr + ",CONTROLLER://" + controller, "controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "log.dirs=" + data,
		"offsets.topic.replication.factor=1", "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "",
	}, "\n")), 0o644))
	const topic, partitions = "cf-takeover", 3
	ids := []string{"cf-over-commit", "cf-over-abort", "cf-over-offsets"}
	left := make(map[string]txnProducer) // what the turn before has left open
	var committed int64                  // by the group
	turn := func(n int, p *process) {
		g := newTxnTalk(t, p.addr)
		awaitTransactions(t, p.addr)
		if n == 0 {
			create := message.NewCreateTopicsRequest()
			create.TimeoutMs, create.Topics = 5000, []message.CreatableTopic{{Name: topic, NumPartitions: partitions, ReplicationFactor: 1}}
			require.Zero(t, g.quiet(7, create).(*message.CreateTopicsResponse).Topics[0].ErrorCode)
		}
		for i, id := range ids {
			p, open := left[id]
			if open {
				p.g = g
				require.Equal(t, "Ongoing", g.state(id).TransactionState, "turn %d, %s", n, id)
				require.Equal(t, p.epoch, g.state(id).ProducerEpoch)
				before := p
				p.ends(5, id != "cf-over-abort")
				if id == "cf-over-offsets" {
					committed = int64(n)
				}
				again := before
				again.ends(5, id != "cf-over-abort") // told again, by whoever coordinates now
				require.Equal(t, p.epoch, again.epoch)
				require.Equal(t, before.epoch+1, p.epoch)
				p.restarts(4, p.producer, p.epoch)
			} else {
				p = *g.starts(id)
			}
			p.adds(3, topic, int32(i))
			require.Equal(t, errcode.None, p.writes(11, topic, int32(i), 2), "turn %d, %s", n, id)
			if id == "cf-over-offsets" {
				commitInTransaction(&p, "cf-over-group", topic, int64(n+1))
				require.Equal(t, committed, fetchOffset(g, "cf-over-group", topic), "turn %d", n)
			}
			left[id] = p
		}
	}
	turns := []string{"ottla", "kafka", "ottla"}
	for n, who := range turns {
		var p *process
		if who == "kafka" {
			var err error
			p, err = runKafka(conf, addr)
			require.NoError(t, err)
			t.Cleanup(func() { p.stop() })
		} else {
			p = startOttla(t, "--data", data, "--port", fmt.Sprint(port))
		}
		turn(n, p)
		if n%2 == 0 {
			p.kill()
		} else {
			require.NoError(t, ended(p), "%s: %s", who, p.log)
		}
	}
}

// commitInTransaction commits an offset of partition 0 in a producer's transaction.
func commitInTransaction(p *txnProducer, group, topic string, offset int64) {
	p.g.t.Helper()
	add := p.g.quiet(3, &message.AddOffsetsToTxnRequest{TransactionalId: p.id, ProducerId: p.producer, ProducerEpoch: p.epoch, GroupId: group})
	require.Zero(p.g.t, add.(*message.AddOffsetsToTxnResponse).ErrorCode)
	req := message.NewTxnOffsetCommitRequest()
	req.TransactionalId, req.GroupId, req.ProducerId, req.ProducerEpoch = p.id, group, p.producer, p.epoch
	part := message.TxnOffsetCommitRequestPartition{}
	part.SetDefaults()
	part.CommittedOffset = offset
	req.Topics = []message.TxnOffsetCommitRequestTopic{{Name: topic, Partitions: []message.TxnOffsetCommitRequestPartition{part}}}
	resp := p.g.quiet(3, req).(*message.TxnOffsetCommitResponse)
	require.Zero(p.g.t, resp.Topics[0].Partitions[0].ErrorCode)
}

// fetchOffset is what the group has committed for partition 0; 0 for nothing yet.
func fetchOffset(g *txnTalk, group, topic string) int64 {
	g.t.Helper()
	req := &message.OffsetFetchRequest{GroupId: group, Topics: []message.OffsetFetchRequestTopic{{Name: topic, PartitionIndexes: []int32{0}}}}
	resp := g.quiet(7, req).(*message.OffsetFetchResponse)
	return max(resp.Topics[0].Partitions[0].CommittedOffset, 0)
}
