package harness_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// fetched is one answer to a Fetch of one partition.
type fetched struct {
	records []byte
	aborted []message.AbortedTransaction
	stable  int64
	high    int64
}

// fetchRaw asks for what lies at an offset.
func fetchRaw(ctx context.Context, cl *client.Client, topic string, partition int32, offset int64, maxBytes int32, committed bool) (*fetched, error) {
	top, err := cl.AwaitTopics(ctx, topic)
	if err != nil {
		return nil, err
	}
	req := message.NewFetchRequest()
	req.MaxWaitMs, req.MinBytes, req.MaxBytes = 0, 0, 1<<20
	if committed {
		req.IsolationLevel = 1
	}
	p := message.FetchRequestFetchPartition{}
	p.SetDefaults()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, maxBytes
	req.Topics = []message.FetchRequestFetchTopic{{TopicId: top.Topic(topic).ID, Topic: topic, Partitions: []message.FetchRequestFetchPartition{p}}}
	resp, err := cl.Request(ctx, client.LeaderOf(topic, partition), req)
	if err != nil {
		return nil, err
	}
	f := resp.(*message.FetchResponse)
	if f.ErrorCode != 0 {
		return nil, errcode.Code(f.ErrorCode)
	}
	if len(f.Responses) != 1 || len(f.Responses[0].Partitions) != 1 {
		return nil, errors.New("the answer has not the partition that was asked for")
	}
	d := &f.Responses[0].Partitions[0]
	return &fetched{d.Records, d.AbortedTransactions, d.LastStableOffset, d.HighWatermark}, errcode.Code(d.ErrorCode).Err()
}

// audit reads a log as it lies there and checks what holds whatever clients did: a producer's sequences go on without a gap
// in each epoch, its epochs only grow, no transaction is open at the end, and what is aborted is said in the answers.
func (tr *trial) audit(ctx context.Context, topic string, partition int32) {
	type producerState struct {
		epoch int16
		next  int32
		known bool
	}
	where := fmt.Sprintf("%s-%d", topic, partition)
	producers := map[int64]*producerState{}
	for offset := int64(0); ; {
		f, err := fetchRaw(ctx, tr.cl, topic, partition, offset, 1<<20, false)
		if err != nil {
			tr.find("audit: %s@%d: %v", where, offset, err)
			return
		}
		if offset == 0 && f.stable != f.high {
			tr.find("audit: %s: the last stable offset is %d, the high watermark %d", where, f.stable, f.high)
		}
		if len(f.records) == 0 {
			return
		}
		for rest := f.records; len(rest) > 0; {
			batch, after, err := record.Next(rest)
			if err != nil {
				tr.find("audit: %s@%d: %v", where, offset, err)
				return
			}
			rest = after
			h, err := record.ParseHeader(batch)
			if err != nil {
				tr.find("audit: %s@%d: %v", where, offset, err)
				return
			}
			offset = h.NextOffset()
			if !h.HasProducer() {
				continue
			}
			p := producers[h.ProducerID]
			if p == nil {
				p = &producerState{epoch: -1}
				producers[h.ProducerID] = p
			}
			if h.ProducerEpoch < p.epoch {
				tr.find("audit: %s@%d: producer %d goes back from epoch %d to %d", where, h.BaseOffset, h.ProducerID, p.epoch, h.ProducerEpoch)
			}
			if h.ProducerEpoch != p.epoch {
				*p = producerState{epoch: h.ProducerEpoch}
			}
			if h.Control() {
				continue
			}
			if p.known && h.BaseSequence != p.next || !p.known && h.BaseSequence != 0 {
				tr.find("audit: %s@%d: producer %d epoch %d has sequence %d where %d is next", where, h.BaseOffset, h.ProducerID, h.ProducerEpoch, h.BaseSequence, p.next)
			}
			p.next, p.known = h.NextSequence(), true
		}
	}
}

// filter is what read_committed consumers do with an answer: they leave out what belongs to aborted transactions, from the
// offset that the answer says until that producer's abort marker, and markers. Its fields are mistakes in that.
type filter struct {
	ignoresList  bool // leaves nothing out
	atOnce       bool // leaves a producer's records out from the beginning of the answer on, until any marker of its
	handsMarkers bool // hands markers out
}

// visible returns the records of an answer that an application gets, from an offset on, and where to go on.
func (fl filter) visible(f *fetched, from int64) (list []record.Record, next int64, err error) {
	// They come in the order of their markers.
	aborted, left := slices.SortedFunc(slices.Values(f.aborted), func(a, b message.AbortedTransaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) }), map[int64]bool{}
	next = from
	for rest := f.records; len(rest) > 0; {
		batch, after, err := record.Next(rest)
		if errors.Is(err, record.ErrPartial) {
			break
		} else if err != nil {
			return nil, next, err
		}
		rest = after
		it, err := record.Open(batch, record.ReadOptions{})
		if err != nil {
			return nil, next, err
		}
		h := it.Header()
		next = h.NextOffset()
		for len(aborted) > 0 && (aborted[0].FirstOffset <= h.LastOffset() || fl.atOnce) {
			left[aborted[0].ProducerId] = true
			aborted = aborted[1:]
		}
		skip := h.Transactional() && left[h.ProducerID] && !fl.ignoresList
		for r := range it.All() {
			if h.Control() {
				m, err := record.ParseEndTxn(r.Key, r.Value)
				if err == nil && (!m.Commit || fl.atOnce) {
					delete(left, h.ProducerID)
				}
				skip = !fl.handsMarkers
			}
			if !skip && r.Offset >= from {
				list = append(list, r)
			}
		}
		if err := it.Err(); err != nil {
			return nil, next, err
		}
	}
	return list, next, nil
}

// visibleAt reports whether read_committed readers can see the record at an offset.
func (tr *trial) visibleAt(topic string, partition int32, offset int64) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	f, err := fetchRaw(ctx, tr.cl, topic, partition, offset, 1<<20, true)
	if err != nil {
		return false, err
	}
	list, _, err := filter{}.visible(f, offset)
	return len(list) > 0 && list[0].Offset == offset, err
}

// visibleFrom reports whether read_committed readers can see anything of a partition from an offset on.
func (tr *trial) visibleFrom(topic string, partition int32, offset int64) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for {
		f, err := fetchRaw(ctx, tr.cl, topic, partition, offset, 1<<20, true)
		if err != nil {
			return false, err
		}
		list, next, err := filter{}.visible(f, offset)
		if err != nil || len(list) > 0 || next == offset {
			return len(list) > 0, err
		}
		offset = next
	}
}
