package producer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// logs is a broker made of a scripted peer: it checks and keeps what is produced, idempotently, and misbehaves when told.
type logs struct {
	t *testing.T
	*wiretest.Peer

	mu     sync.Mutex
	parts  map[string]*logPart // "topic-partition"
	nextID int64
	count  int // produce requests so far
	// fault, when set, is asked about each produce request, by number from 1.
	fault func(n int, r *message.ProduceRequest) misdeed
}

type logPart struct {
	records  []got
	batches  int
	producer map[int64]*lastBatches
}

type got struct {
	key, value []byte
	headers    []record.Header
	timestamp  int64
}

type lastBatches struct {
	epoch int16
	last  []seqRange
}

type seqRange struct {
	first, count int32
	offset       int64
}

// misdeed is what happens to one produce request; the zero value is nothing.
type misdeed struct {
	code     errcode.Code // answer this
	apply    bool         // but append first
	hangUp   bool         // close the connection instead of an answer
	delay    time.Duration
	message  string
	perIndex []message.BatchIndexAndErrorMessage
	each     func(topic string, partition int32, records []byte) errcode.Code
}

func newLogs(t *testing.T, topics ...string) *logs {
	l := &logs{t: t, parts: map[string]*logPart{}, nextID: 1000}
	l.Peer = wiretest.NewCluster(1, l.answer)
	for _, name := range topics {
		l.SetTopic(name, 0, 1, 1, 1)
	}
	t.Cleanup(l.Close)
	return l
}

func (l *logs) answer(r *wiretest.Request) message.Response {
	switch req := r.Body.(type) {
	case *message.InitProducerIdRequest:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.nextID++
		resp := message.NewInitProducerIdResponse()
		resp.ProducerId = l.nextID
		return resp
	case *message.ProduceRequest:
		return l.produce(r.Version, req)
	}
	return nil
}

func (l *logs) produce(version int16, req *message.ProduceRequest) message.Response {
	l.mu.Lock()
	l.count++
	var f misdeed
	if l.fault != nil {
		f = l.fault(l.count, req)
	}
	l.mu.Unlock()
	if f.delay > 0 {
		time.Sleep(f.delay)
	}
	if f.hangUp && !f.apply {
		return wiretest.HangUp
	}
	resp := message.NewProduceResponse()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, td := range req.TopicData {
		name := td.Name
		if version >= 13 {
			name = ""
			for key := range l.parts { // ids of topics already seen, then of those that were announced
				if base := key[:len(key)-2]; wiretest.TopicID(base) == td.TopicId {
					name = base
				}
			}
			for _, candidate := range []string{"orders", "other", "t"} {
				if wiretest.TopicID(candidate) == td.TopicId {
					name = candidate
				}
			}
		}
		require.NotEmpty(l.t, name, "unknown topic id")
		tr := message.TopicProduceResponse{Name: td.Name, TopicId: td.TopicId}
		for _, pd := range td.PartitionData {
			pr := message.PartitionProduceResponse{Index: pd.Index, BaseOffset: -1, LogAppendTimeMs: -1, LogStartOffset: -1}
			pr.CurrentLeader.LeaderId, pr.CurrentLeader.LeaderEpoch = -1, -1
			code := f.code
			if f.each != nil {
				code = f.each(name, pd.Index, pd.Records)
			}
			if code == errcode.None || f.apply {
				offset, c := l.part(name, pd.Index).append(l.t, pd.Records)
				pr.BaseOffset = offset
				if c != errcode.None {
					code = c
				}
			}
			if pr.ErrorCode = int16(code); code != errcode.None {
				pr.BaseOffset = -1
				pr.RecordErrors = f.perIndex
				if f.message != "" {
					pr.ErrorMessage = &f.message
				}
			}
			tr.PartitionResponses = append(tr.PartitionResponses, pr)
		}
		resp.Responses = append(resp.Responses, tr)
	}
	switch {
	case f.hangUp:
		return wiretest.HangUp
	case req.Acks == 0:
		return wiretest.NoAnswer
	}
	return resp
}

func (l *logs) part(topic string, partition int32) *logPart {
	key := fmt.Sprintf("%s-%d", topic, partition)
	if l.parts[key] == nil {
		l.parts[key] = &logPart{producer: map[int64]*lastBatches{}}
	}
	return l.parts[key]
}

func (p *logPart) append(t *testing.T, batch []byte) (int64, errcode.Code) {
	one, rest, err := record.Next(batch)
	require.NoError(t, err)
	require.Empty(t, rest, "one batch for each partition")
	it, err := record.Open(one, record.ReadOptions{Decompressor: compress.NewDecompressor()})
	require.NoError(t, err, "the batch must be intact")
	h := it.Header()
	require.NoError(t, h.CheckProduced())
	offset := int64(len(p.records))
	if h.ProducerID >= 0 {
		s := p.producer[h.ProducerID]
		if s == nil {
			s = &lastBatches{epoch: h.ProducerEpoch}
			p.producer[h.ProducerID] = s
		}
		switch {
		case h.ProducerEpoch < s.epoch:
			return -1, errcode.InvalidProducerEpoch
		case h.ProducerEpoch > s.epoch:
			if h.BaseSequence != 0 {
				return -1, errcode.OutOfOrderSequenceNumber
			}
			*s = lastBatches{epoch: h.ProducerEpoch}
		}
		for _, d := range s.last {
			if d.first == h.BaseSequence && d.count == h.Count {
				return d.offset, errcode.None
			}
		}
		if n := len(s.last); n > 0 && record.AddSequence(s.last[n-1].first, s.last[n-1].count) != h.BaseSequence {
			return -1, errcode.OutOfOrderSequenceNumber
		}
		s.last = append(s.last, seqRange{h.BaseSequence, h.Count, offset})
		s.last = s.last[max(0, len(s.last)-5):]
	}
	p.batches++
	for {
		r, ok := it.Next()
		if !ok {
			break
		}
		p.records = append(p.records, got{bytesOf(r.Key), bytesOf(r.Value), r.Headers.AppendTo(nil), r.Timestamp})
	}
	require.NoError(t, it.Err())
	return offset, errcode.None
}

// bytesOf copies and keeps null apart from empty.
func bytesOf(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

// records are those of one partition, or of all for -1.
func (l *logs) records(topic string, partition int32) []got {
	l.mu.Lock()
	defer l.mu.Unlock()
	if partition >= 0 {
		return append([]got(nil), l.part(topic, partition).records...)
	}
	var all []got
	for i := range int32(3) {
		all = append(all, l.part(topic, i).records...)
	}
	return all
}

func (l *logs) values(topic string, partition int32) []string {
	var out []string
	for _, r := range l.records(topic, partition) {
		out = append(out, string(r.value))
	}
	return out
}

func (l *logs) setFault(f func(n int, r *message.ProduceRequest) misdeed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

// produceVersions limits what the peer speaks.
func (l *logs) produceVersions(most int16) { l.SetVersions(wire.KeyProduce, 0, most) }

// client connects to the peer.
func (l *logs) client(opts ...client.Option) *client.Client {
	cl, err := client.New(append([]client.Option{client.Cluster(l.Peer), client.Jitter(1)}, opts...)...)
	require.NoError(l.t, err)
	l.t.Cleanup(func() { require.NoError(l.t, cl.Close(context.Background())) })
	return cl
}

// producer makes one, with pooled buffers poisoned, and closes it at the end of the test.
func (l *logs) producer(opts ...producer.Option) *producer.Producer {
	p, err := producer.New(l.client(), opts...)
	require.NoError(l.t, err)
	producer.PoisonBuffers(p)
	l.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Close(ctx)
	})
	return p
}
