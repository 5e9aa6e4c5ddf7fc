package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn"
)

// job says what a worker of a pipeline does: it copies what is in a topic into another, exactly once.
type job struct {
	Kind           string // of the worker
	Addr           string
	Group, In, Out string
	Name           string // the same after a restart: its transactional id and client id
	Protocol       string // of the group
	State          string // a folder that outlives the worker
}

// workerEnv makes the test's binary a worker: it has the job in JSON.
const workerEnv = "OTTLA_INTEROP_WORKER"

// goWorkers are those that live in this binary, as processes of their own. They end with a word on stderr when something
// goes wrong that a restart is for.
var goWorkers = map[string]func(context.Context, job) error{"ottla": copyWithOurs, "franz-go": copyWithFranz, "sarama": copyWithSarama}

// goWorker is the command that runs a job in this binary.
func goWorker(j job) *exec.Cmd {
	spec, err := json.Marshal(j)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+string(spec), "GOMAXPROCS=1")
	return cmd
}

// work is what the child does, until it is killed.
func work(spec string) int {
	var j job
	err := json.Unmarshal([]byte(spec), &j)
	ctx := context.Background()
	if err == nil {
		err = goWorkers[j.Kind](ctx, j)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, j.Name, "ends:", err)
		return 3
	}
	return 0
}

// pace is how long a worker takes for a record, so that some are under way when it is killed.
const pace = time.Millisecond

// copyWithOurs is package txn's Pipe.
func copyWithOurs(ctx context.Context, j job) error {
	cl, err := client.New(client.Seeds(j.Addr), client.ClientID(j.Name))
	if err != nil {
		return err
	}
	c, err := consumer.New(cl, consumer.Group(j.Group), consumer.Subscribe(j.In), consumer.OnReset(consumer.Earliest),
		consumer.WithIsolation(consumer.ReadCommitted), consumer.GroupProtocol(j.Protocol), consumer.SessionTimeout(6*time.Second, 500*time.Millisecond))
	if err != nil {
		return err
	}
	s, err := txn.New(ctx, cl, j.Name)
	if err != nil {
		return err
	}
	return s.Pipe(ctx, c, func(ctx context.Context, tx *txn.Tx, r consumer.Record) error {
		time.Sleep(pace)
		return tx.Submit(ctx, producer.Record{Topic: j.Out, Key: r.Key, Value: r.Value}, nil)
	}, txn.CommitEvery(50*time.Millisecond))
}

// copyWithFranz is franz-go's GroupTransactSession.
func copyWithFranz(ctx context.Context, j job) error {
	opts := []kgo.Opt{kgo.SeedBrokers(j.Addr), kgo.ClientID(j.Name), kgo.TransactionalID(j.Name), kgo.ConsumerGroup(j.Group), kgo.ConsumeTopics(j.In),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(500 * time.Millisecond), kgo.DefaultProduceTopic(j.Out)}
	if j.Protocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	s, err := kgo.NewGroupTransactSession(opts...)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		fetches := s.PollRecords(ctx, 30)
		if err := s.Begin(); err != nil {
			return err
		}
		var failed error
		fetches.EachRecord(func(r *kgo.Record) {
			time.Sleep(pace)
			s.Produce(ctx, &kgo.Record{Key: r.Key, Value: r.Value}, func(_ *kgo.Record, err error) { failed = errors.Join(failed, err) })
		})
		if err := s.Client().Flush(ctx); err != nil {
			return err
		}
		if _, err := s.End(ctx, kgo.TransactionEndTry(failed == nil)); err != nil {
			return errors.Join(failed, err)
		}
	}
	return ctx.Err()
}

// copyWithSarama has a producer for each partition, because sarama's transactions do not say which member of the group they
// are of; each is fenced before the group is joined. One such worker at a time is safe.
func copyWithSarama(ctx context.Context, j job) error {
	cfg := sarama.NewConfig()
	cfg.Version, cfg.ClientID = sarama.V3_6_0_0, j.Name
	cfg.Consumer.Offsets.Initial, cfg.Consumer.Offsets.AutoCommit.Enable = sarama.OffsetOldest, false
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted
	cfg.Consumer.Group.Session.Timeout, cfg.Consumer.Group.Heartbeat.Interval = 6*time.Second, 500*time.Millisecond
	h := &saramaCopier{job: j}
	for p := range pipePartitions {
		c := *cfg
		c.Producer.Transaction.ID, c.Producer.Idempotent, c.Net.MaxOpenRequests = fmt.Sprint(j.Name, "-", p), true, 1
		c.Producer.RequiredAcks, c.Producer.Return.Successes, c.Producer.Retry.Max = sarama.WaitForAll, true, 50
		producer, err := sarama.NewSyncProducer([]string{j.Addr}, &c)
		if err != nil {
			return err
		}
		h.producers = append(h.producers, producer)
	}
	g, err := sarama.NewConsumerGroup([]string{j.Addr}, j.Group, cfg)
	for err == nil && ctx.Err() == nil {
		err = g.Consume(ctx, []string{j.In}, h)
	}
	return err
}

// saramaCopier has one claim for each partition and its producer.
type saramaCopier struct {
	job
	producers []sarama.SyncProducer
}

func (*saramaCopier) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*saramaCopier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h *saramaCopier) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	p := h.producers[claim.Partition()]
	for first := range claim.Messages() {
		batch := []*sarama.ConsumerMessage{first}
		for more := time.After(20 * time.Millisecond); more != nil; {
			select {
			case m, ok := <-claim.Messages():
				if batch = append(batch, m); ok && len(batch) < 30 {
					continue
				}
				if !ok {
					batch = batch[:len(batch)-1]
				}
				more = nil
			case <-more:
				more = nil
			}
		}
		if err := h.copy(p, batch); err != nil { // a restart is simplest
			fmt.Fprintln(os.Stderr, h.Name, "ends:", err)
			os.Exit(3)
		}
	}
	return nil
}

func (h *saramaCopier) copy(p sarama.SyncProducer, batch []*sarama.ConsumerMessage) error {
	if err := p.BeginTxn(); err != nil {
		return err
	}
	for _, m := range batch {
		time.Sleep(pace)
		out := &sarama.ProducerMessage{Topic: h.Out, Key: sarama.ByteEncoder(m.Key), Value: sarama.ByteEncoder(m.Value)}
		if _, _, err := p.SendMessage(out); err != nil {
			return err
		}
	}
	if err := p.AddMessageToTxn(batch[len(batch)-1], h.Group, nil); err != nil {
		return err
	}
	return p.CommitTxn()
}
