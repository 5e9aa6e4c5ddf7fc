package fetch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// oneBroker is a view in which broker 1 leads everything.
type oneBroker struct{}

func (oneBroker) Topic(string) (wire.UUID, errcode.Code, bool) {
	return wire.UUID{1}, errcode.None, true
}
func (oneBroker) Leader(machine.TopicPartition) machine.Leader {
	return machine.Leader{Broker: 1, Epoch: 1}
}
func (oneBroker) Broker(id int32) bool { return id == 1 }

// rig is a driver without a client: the test says what brokers answer.
type rig struct {
	t *testing.T
	*Driver
}

func newRig(t *testing.T, partitions int32) *rig {
	d := &Driver{cells: map[machine.TopicPartition]*Cell{}, budget: client.NewBudget(1 << 20), ready: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	d.opts.Decompressor, d.opts.MaxDecompressed, d.opts.CheckCRC = compress.NewDecompressor(), 1<<20, true
	d.ctx, d.cancel = t.Context(), func() {}
	cl, err := client.New(client.Seeds("127.0.0.1:1"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cl.Close(t.Context())) })
	d.cl = cl
	d.machine = machine.New(machine.Config{MaxBytes: 1 << 20, MaxPartitionBytes: 1 << 20, MaxWait: time.Second, Reset: machine.Earliest, APITimeout: time.Minute, RetryBackoff: time.Millisecond, RetryBackoffMax: time.Second, Seed: 1})
	d.Step(machine.TopologyChanged{View: oneBroker{}})
	for p := range partitions {
		d.Step(machine.Added{TopicPartition: at(p), Start: machine.AtOffset(0)})
	}
	return &rig{t, d}
}

func at(p int32) machine.TopicPartition { return machine.TopicPartition{Topic: "t", Partition: p} }

// answer answers the fetch that is due with one batch of n records for each of those partitions.
func (r *rig) answer(codec compress.Codec, n int, partitions ...int32) {
	r.t.Helper()
	r.todo = machine.Effects{}
	r.Step(machine.Woke{})
	require.NotEmpty(r.t, r.todo.Fetches)
	f := r.todo.Fetches[0]
	owner := settle(r.budget, 0, 0)
	defer owner.leave()
	ev := machine.FetchReceived{Broker: 1, SessionID: 5}
	for _, part := range f.Parts {
		for _, p := range partitions {
			if part.Partition == p {
				b := record.NewBuilder(nil)
				for range n {
					b.Append(1, nil, make([]byte, 100), nil)
				}
				var bytes []byte
				if codec == compress.None {
					bytes = append(bytes, b.Seal(record.NoProducer())...)
				} else {
					comp, err := compress.NewCompressor(codec, compress.DefaultLevel)
					require.NoError(r.t, err)
					bytes = append(bytes, b.SealCompressed(nil, record.NoProducer(), comp)...)
				}
				record.PatchBase(bytes, part.Offset, 1)
				whole, next, err := scan(bytes)
				require.NoError(r.t, err)
				ev.Parts = append(ev.Parts, machine.FetchedPart{TopicPartition: part.TopicPartition, TopicID: part.TopicID, HighWatermark: 1000, Records: whole,
					Next: next, Leader: machine.Leader{Broker: -1}, Preferred: -1, Owner: owner})
			}
		}
	}
	r.Step(ev)
}

// queued lists the partitions of what waits for the reader.
func (r *rig) queued() (out []int32) {
	for _, it := range r.queue {
		out = append(out, it.cell.Partition)
	}
	return out
}

func TestEvictionDropsWhatPausedPartitionsHold(t *testing.T) {
	// The first one in the queue is evicted first, which moves the queue under whoever goes through it.
	r := newRig(t, 3)
	r.answer(compress.None, 3, 0, 1, 2)
	r.answer(compress.None, 3, 0, 1, 2)
	require.Equal(t, []int32{0, 1, 2, 0, 1, 2}, r.queued())
	r.Step(machine.Paused{TopicPartition: at(0)})
	r.Step(machine.Paused{TopicPartition: at(1)})
	r.mu.Lock()
	r.evict()
	r.mu.Unlock()
	require.Equal(t, []int32{2, 2}, r.queued())
	for p, left := range []int{0, 0, 2} {
		require.Equal(t, left, r.cells[at(int32(p))].pending, "partition %d", p)
	}
	// What was dropped is fetched again from where it began.
	r.Step(machine.Resumed{TopicPartition: at(0)})
	r.Step(machine.Resumed{TopicPartition: at(1)})
	r.answer(compress.None, 3, 0, 1)
	require.Equal(t, []int32{2, 2, 0, 1}, r.queued())
	require.Zero(t, r.queue[2].Chunk.From.Offset)
}

func TestEvictionKeepsWhatIsHalfReadAndTheOrderOfErrors(t *testing.T) {
	r := newRig(t, 2)
	r.answer(compress.None, 3, 0, 1)
	reader := NewReader(r.Driver)
	g, _, err := reader.Next(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, at(0), g.Cell.TopicPartition)
	r.Step(machine.Paused{TopicPartition: at(0)})
	r.Step(machine.Paused{TopicPartition: at(1)})
	g, _, err = reader.Next(t.Context(), false) // puts the half-read chunk back
	require.NoError(t, err)
	require.Nil(t, g)
	r.mu.Lock()
	r.evict()
	r.mu.Unlock()
	require.Equal(t, []int32{0}, r.queued())
	r.Step(machine.Resumed{TopicPartition: at(0)})
	g, _, err = reader.Next(t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, at(0), g.Cell.TopicPartition)
}

func TestHalfReadBatchOfADroppedPartitionGivesItsMemoryBack(t *testing.T) {
	for _, end := range []machine.Event{machine.Removed{TopicPartition: at(0)}, machine.Sought{TopicPartition: at(0), To: machine.AtOffset(1)}} {
		r := newRig(t, 1)
		r.answer(compress.Gzip, 50, 0)
		reader := NewReader(r.Driver)
		g, _, err := reader.Next(t.Context(), false)
		require.NoError(t, err)
		used, _ := r.budget.Used()
		require.Positive(t, used, "the batch was decompressed")
		g.Took(0)
		r.Step(machine.Paused{TopicPartition: at(0)})
		g, _, err = reader.Next(t.Context(), false) // puts it back, open as it is
		require.NoError(t, err)
		require.Nil(t, g)
		r.Step(end)
		used, _ = r.budget.Used()
		require.Zero(t, used, "%T", end)
		require.Empty(t, r.queued())
	}
}

func TestReportsReachTheReaderInOrderAndTheFinalOneStays(t *testing.T) {
	r := newRig(t, 1)
	reader := NewReader(r.Driver)
	first, last := errcode.NotController, errcode.FencedInstanceId
	r.Report(first, false)
	r.Report(last, true)
	_, failed, err := reader.Next(t.Context(), false)
	require.NoError(t, err)
	require.ErrorIs(t, failed.Err, first)
	for range 3 {
		_, _, err = reader.Next(t.Context(), false)
		require.ErrorIs(t, err, last)
	}
}

func TestWhatIsHeldIsNotDone(t *testing.T) {
	c := newCell(at(0))
	require.EqualValues(t, -1, c.Done().Offset)
	c.setPosition(machine.Position{Offset: 5, Epoch: 2})
	require.Equal(t, machine.Position{Offset: 5, Epoch: 2}, c.Done())
	c.Hold(5)
	c.offset.Store(8)
	require.Equal(t, machine.Position{Offset: 5, Epoch: -1}, c.Done())
	require.True(t, c.Held())
	c.Unhold()
	require.Equal(t, machine.Position{Offset: 8, Epoch: 2}, c.Done())
}
