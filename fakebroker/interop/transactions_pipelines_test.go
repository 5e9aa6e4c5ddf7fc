package interop

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker/harness"
	"github.com/ottla-kafka/ottla/producer"
)

// pipelines are programs that different people wrote and that copy a topic exactly once, or count its words. Each is run as
// processes that are killed with SIGKILL at random moments and started again.
var pipelines = []pipeline{
	{kind: "ottla", protocol: "classic", workers: 2, kills: 5, command: goPipe, alsoOnKafka: true},
	{kind: "ottla", protocol: "consumer", workers: 2, kills: 5, command: goPipe, alsoOnKafka: true},
	{kind: "franz-go", protocol: "classic", workers: 2, kills: 4, command: goPipe},
	{kind: "franz-go", protocol: "consumer", workers: 2, kills: 4, command: goPipe},
	{kind: "sarama", protocol: "classic", workers: 1, kills: 4, command: goPipe},
	{kind: "confluent", protocol: "classic", workers: 2, kills: 4, command: pythonPipe("confluent_pipe.py")},
	{kind: "confluent", protocol: "consumer", workers: 2, kills: 4, command: pythonPipe("confluent_pipe.py")},
	{kind: "kafka-python", protocol: "classic", workers: 2, kills: 3, command: pythonPipe("kafkapython_pipe.py")},
	{kind: "streams", protocol: "classic", workers: 2, kills: 4, command: streamsPipe, words: true},
	{kind: "copier", protocol: "classic", workers: 2, kills: 3, command: copierPipe, ends: true},
}

type pipeline struct {
	kind, protocol string
	workers, kills int
	command        func(t testing.TB, j job) *exec.Cmd
	words          bool // it counts words
	ends           bool // a worker ends when it has processed what there was at its start
	alsoOnKafka    bool
}

const (
	pipePartitions = 4
	waveRecords    = 300 // are written before each kill
	maxEndings     = 40  // of workers by themselves: a restart is how some deal with errors
)

// TestPipelinesOutliveTheirWorkers runs all of them on ottla, and ours on Apache Kafka, too.
func TestPipelinesOutliveTheirWorkers(t *testing.T) {
	t.Parallel()
	ottla := startGroups(t, "--data", t.TempDir())
	for _, p := range pipelines {
		name := p.kind + "-" + p.protocol
		t.Run(name+"/ottla", func(t *testing.T) {
			t.Parallel()
			p.run(t, "pipe-"+name, ottla.addr, nil)
		})
		if p.alsoOnKafka || os.Getenv("OTTLA_INTEROP_ALL") != "" {
			t.Run(name+"/kafka", func(t *testing.T) {
				t.Parallel()
				p.run(t, "pipe-"+name, kafkaAddr, nil)
			})
		}
	}
}

// TestPipelinesOutliveTheBroker kills ottla instead, which goes on with its folder at once. confluent-kafka is not among them:
// a connection that is lost twice in AddOffsetsToTxn leaves librdkafka 2.16 in send_offsets_to_transaction beyond its timeout,
// without a request under way.
func TestPipelinesOutliveTheBroker(t *testing.T) {
	t.Parallel()
	for _, p := range []pipeline{
		{kind: "ottla", protocol: "consumer", workers: 2, kills: 4, command: goPipe},
		{kind: "franz-go", protocol: "classic", workers: 2, kills: 4, command: goPipe},
	} {
		t.Run(p.kind, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			port := fmt.Sprint(reserve(t, 1))
			broker := startGroups(t, "--data", data, "--port", port)
			p.run(t, "broken-"+p.kind, broker.addr, func() {
				broker.kill()
				broker = startGroups(t, "--data", data, "--port", port)
			})
		})
	}
}

// run writes waves of records; in each a worker is killed, or kill kills something else.
func (p *pipeline) run(t *testing.T, name, addr string, kill func()) {
	seed := fnv.New64()
	io.WriteString(seed, name)
	chance := rand.New(rand.NewPCG(seed.Sum64(), 5))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cl := newClient(t, addr)
	lively(t, cl, name, 6*time.Second)
	j := job{Kind: p.kind, Addr: addr, Group: name, In: name + "-in", Out: name + "-out", Protocol: p.protocol, State: t.TempDir()}
	for _, topic := range []string{j.In, j.Out} {
		createTopic(t, cl, admin.NewTopic{Name: topic, Partitions: pipePartitions, Replicas: 1})
	}
	w, err := producer.New(cl, producer.DeliveryTimeout(patience))
	require.NoError(t, err)
	defer w.Close(context.Background())
	written := 0
	write := func(n int) {
		for range n {
			r := producer.Record{Topic: j.In, Key: fmt.Append(nil, "key-", written%29), Value: line(chance, written)}
			require.NoError(t, w.Submit(ctx, r, nil))
			written++
		}
		require.NoError(t, w.Flush(ctx))
	}
	if p.ends {
		write((p.kills + 2) * waveRecords * 3)
	}
	c := startCrew(t, p, j)
	a := admin.New(cl)
	for n := range p.kills {
		before := int64(-1)
		await(ctx, t, c, "the broker answers", func() bool { before = outSize(ctx, a, j.Out); return before >= 0 })
		if !p.ends {
			write(waveRecords)
		}
		progress := int64(1 + chance.IntN(waveRecords/2))
		await(ctx, t, c, fmt.Sprintf("%d records of wave %d are copied", progress, n), func() bool {
			size := outSize(ctx, a, j.Out)
			return size >= before+progress || p.ends && size >= int64(written)
		})
		time.Sleep(time.Duration(chance.IntN(60)) * time.Millisecond) // not to wait for something, but to kill at any moment
		if kill != nil {
			kill()
		} else {
			c.kill(chance.IntN(p.workers))
		}
	}
	if !p.ends {
		write(waveRecords)
	}
	p.check(ctx, t, cl, j)
	c.stop()
	t.Logf("%s: %d records, %d kills, %d workers ended by themselves", name, written, p.kills, c.endings())
}

// line is a text of some words that begins with its number, so that no two are the same.
func line(chance *rand.Rand, n int) []byte {
	words := []string{fmt.Sprint(n)}
	for range 1 + chance.IntN(4) {
		words = append(words, []string{"river", "stone", "wind", "salt", "reed", "lark", "ash", "moor"}[chance.IntN(8)])
	}
	return []byte(strings.Join(words, " "))
}

// outSize is how far the partitions of a topic go; -1 when that cannot be known now.
func outSize(ctx context.Context, a *admin.Admin, topic string) (size int64) {
	var parts []admin.TopicPartition
	for p := range int32(pipePartitions) {
		parts = append(parts, admin.TopicPartition{Topic: topic, Partition: p})
	}
	ends, err := a.ListOffsets(ctx, admin.Latest, parts...)
	if err != nil {
		return -1
	}
	for _, end := range ends {
		if end.Err != nil {
			return -1
		}
		size += end.Offset
	}
	return size
}

func await(ctx context.Context, t *testing.T, c *crew, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		require.Less(t, c.endings(), maxEndings, "the workers end all the time")
		select {
		case <-ctx.Done():
			require.Fail(t, "it does not come about: "+what, "%d workers ended by themselves", c.endings())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// check waits until the pipeline has processed everything and finds each record once in what it wrote.
func (p *pipeline) check(ctx context.Context, t *testing.T, cl *client.Client, j job) {
	t.Helper()
	if !p.words {
		harness.CheckExactlyOnce(t, harness.Seeds(j.Addr), j.In, j.Out, harness.Group(j.Group), harness.Within(patience))
		return
	}
	// There is a topic between both, so that the group's offsets in the first say little.
	for {
		counts := map[string]int{} // in each word that comes, its count so far
		found, err := harness.ExactlyOnce(ctx, cl, j.In, j.Out, harness.Group(j.Group), harness.AnyOrder(), harness.Expect(func(in consumer.Record) (all []string) {
			for _, word := range strings.Fields(string(in.Value)) {
				counts[word]++
				all = append(all, fmt.Sprint(word, "=", counts[word]))
			}
			return all
		}), harness.OutIdentity(func(out consumer.Record) string { return fmt.Sprint(string(out.Key), "=", string(out.Value)) }))
		require.NoError(t, err)
		if found.Err() == nil {
			t.Log(found)
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(t, found.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// crew are the workers of a pipeline. Each is started again when it has ended, for whatever reason, until stop.
type crew struct {
	t       testing.TB
	mu      sync.Mutex
	stopped bool
	now     []*process
	killed  []bool // the present process was killed by kill
	ended   int
	log     lockedBuffer
	over    sync.WaitGroup
}

func startCrew(t testing.TB, p *pipeline, j job) *crew {
	c := &crew{t: t, now: make([]*process, p.workers), killed: make([]bool, p.workers)}
	for i := range p.workers {
		mine := j
		mine.Name = fmt.Sprint(j.Group, "-", i)
		c.over.Add(1)
		go c.employ(i, func() *exec.Cmd { return p.command(t, mine) }, p.ends) // ends with stop
	}
	t.Cleanup(func() {
		c.stop()
		if log := c.log.String(); t.Failed() {
			t.Logf("the workers said: %s", log[max(0, len(log)-20000):])
		}
	})
	return c
}

// employ runs a worker, again and again; one that has processed everything is not started again.
func (c *crew) employ(i int, command func() *exec.Cmd, ends bool) {
	defer c.over.Done()
	for {
		cmd := command()
		cmd.Stdout = &lineWriter{tell: func(line string) { fmt.Fprintln(&c.log, line) }}
		c.mu.Lock()
		if c.stopped {
			c.mu.Unlock()
			return
		}
		worker, err := launch(cmd)
		if err != nil {
			c.mu.Unlock()
			c.t.Errorf("%v: %v", cmd.Args, err)
			return
		}
		c.now[i], c.killed[i] = worker, false
		c.mu.Unlock()
		<-worker.over
		fmt.Fprint(&c.log, worker.log)
		err = worker.err
		c.mu.Lock()
		done := c.stopped || ends && err == nil && !c.killed[i]
		if !c.killed[i] && !done {
			c.ended++
		}
		tired := c.ended >= maxEndings
		c.mu.Unlock()
		if tired {
			c.t.Errorf("the workers end all the time; the last: %v", err)
			return
		}
		if done {
			return
		}
	}
}

// kill kills the present process of a worker, which is started again at once.
func (c *crew) kill(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now[i] != nil {
		c.killed[i] = true
		c.now[i].kill()
	}
}

func (c *crew) endings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// stop kills all workers for good.
func (c *crew) stop() {
	c.mu.Lock()
	c.stopped = true
	for _, worker := range c.now {
		if worker != nil {
			worker.kill()
		}
	}
	c.mu.Unlock()
	c.over.Wait()
}

func goPipe(_ testing.TB, j job) *exec.Cmd { return goWorker(j) }

func pythonPipe(script string) func(testing.TB, job) *exec.Cmd {
	return func(_ testing.TB, j job) *exec.Cmd {
		return exec.Command(os.Getenv("OTTLA_PYTHON"), "peers/"+script, j.Addr, j.Group, j.In, j.Out, j.Name, j.Protocol)
	}
}

// copierPipe is Apache Kafka's own TransactionalMessageCopier, which aborts some of its transactions on purpose.
func copierPipe(_ testing.TB, j job) *exec.Cmd {
	return javaCommand(context.Background(), "org.apache.kafka.tools.TransactionalMessageCopier", "--broker-list", j.Addr, "--input-topic", j.In, "--input-partition", "-1",
		"--output-topic", j.Out, "--consumer-group", j.Group, "--transactional-id", j.Name, "--transaction-size", "10", "--group-mode", "--use-group-metadata", "--enable-random-aborts")
}

// streamsPipe is Kafka Streams; the state of a worker's folder outlives it, as it does in production.
func streamsPipe(t testing.TB, j job) *exec.Cmd {
	return peerCommand(t, "WordCount", j.Addr, j.Group, j.In, j.Out, j.Name, filepath.Join(j.State, j.Name))
}
