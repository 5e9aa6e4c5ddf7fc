package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// OffsetAndTime is a record's place: its offset, timestamp and leader epoch.
type OffsetAndTime struct {
	Offset      int64
	TimestampMs int64 // -1 when the offset is not one of a record (the beginning, the end)
	LeaderEpoch int32 // -1 unknown
}

// ListOffsets' names for the ends of a log.
const (
	askLatest   int64 = -1
	askEarliest int64 = -2
)

// BeginningOffsets asks the leaders for the first offset of each partition, assigned or not. It tries again what passes, until
// ctx ends, or if that has no deadline until default.api.timeout.ms has passed; what was found is returned beside an error.
func (c *Consumer) BeginningOffsets(ctx context.Context, list ...TopicPartition) (map[TopicPartition]int64, error) {
	return c.ends(ctx, "BeginningOffsets", askEarliest, list)
}

// EndOffsets asks the leaders for the offset behind the last record of each partition that may be read: the high
// watermark, or with read_committed the last stable offset. It waits as BeginningOffsets does.
func (c *Consumer) EndOffsets(ctx context.Context, list ...TopicPartition) (map[TopicPartition]int64, error) {
	return c.ends(ctx, "EndOffsets", askLatest, list)
}

func (c *Consumer) ends(ctx context.Context, op string, ask int64, list []TopicPartition) (map[TopicPartition]int64, error) {
	asks := make(map[TopicPartition]int64, len(list))
	for _, tp := range list {
		asks[tp] = ask
	}
	found, err := c.listOffsets(ctx, op, asks)
	out := make(map[TopicPartition]int64, len(found))
	for tp, o := range found {
		out[tp] = o.Offset
	}
	return out, err
}

// OffsetsForTimes asks the leaders for the first record of each partition with that timestamp or a later one. A
// partition without such a record is missing in the result. Times before 1970 are an error. It waits as BeginningOffsets does.
func (c *Consumer) OffsetsForTimes(ctx context.Context, times map[TopicPartition]time.Time) (map[TopicPartition]OffsetAndTime, error) {
	asks := make(map[TopicPartition]int64, len(times))
	for tp, t := range times {
		if asks[tp] = t.UnixMilli(); asks[tp] < 0 {
			// ListOffsets has names below zero, so nothing before 1970 can be asked for; -1 would mean the end.
			return nil, fmt.Errorf("consumer: OffsetsForTimes: %s is before 1970, which Kafka cannot look up", t.UTC().Format(time.RFC3339))
		}
	}
	found, err := c.listOffsets(ctx, "OffsetsForTimes", asks)
	for tp, o := range found {
		if o.Offset < 0 {
			delete(found, tp)
		}
	}
	return found, err
}

// Lag asks for the end of each partition that is read and returns how far the position is behind it, in offsets; they
// may be fewer records, since control records and compacted ones count. A partition without a position is missing.
// Partitions has the same as of the last fetch, without asking.
func (c *Consumer) Lag(ctx context.Context) (map[TopicPartition]int64, error) {
	ends, err := c.EndOffsets(ctx, c.orAll(nil)...)
	out := make(map[TopicPartition]int64, len(ends))
	for tp, end := range ends {
		if p, ok := c.Position(tp); ok {
			out[tp] = max(end-p.Offset, 0)
		}
	}
	return out, err
}

// listOffsets asks the leaders, each once for all its partitions, and again for those that failed in a way that
// passes. What was found is returned beside an error about the rest.
func (c *Consumer) listOffsets(ctx context.Context, op string, asks map[TopicPartition]int64) (map[TopicPartition]OffsetAndTime, error) {
	if err := c.before(ctx, op); err != nil {
		return nil, err
	}
	if c.driver.Closed() {
		return nil, ErrClosed
	}
	if _, ok := ctx.Deadline(); !ok && c.cfg.APITimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.cfg.APITimeout,
			fmt.Errorf("%w: default.api.timeout.ms is %s", context.DeadlineExceeded, c.cfg.APITimeout))
		defer cancel()
	}
	names := topicsOf(asks)
	c.cl.AddTopics(names...) // so that the client keeps track of them meanwhile
	defer c.cl.RemoveTopics(names...)
	found := make(map[TopicPartition]OffsetAndTime, len(asks))
	begin := time.Now()
	var last error // what the last round that was not cut short ended with
	for attempt := 1; len(found) < len(asks); attempt++ {
		again, err := c.askLeaders(ctx, names, asks, found)
		if err == nil && len(again) > 0 {
			err = firstOf(again)
		}
		if err == nil {
			continue
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if ctx.Err() == nil && client.Retriable(err) {
			c.cl.RefreshMetadata()
			if pause(ctx, c.cl.Config().RetryBackoff) == nil {
				continue
			}
		}
		return found, lookupFailed(ctx, op, last, attempt, time.Since(begin))
	}
	return found, nil
}

// firstOf is the error of the first of some partitions.
func firstOf(again map[TopicPartition]errcode.Code) error {
	var names []TopicPartition
	for tp := range again {
		names = append(names, tp)
	}
	slices.SortFunc(names, func(a, b TopicPartition) int { return strings.Compare(a.String(), b.String()) })
	e := &client.OpError{Op: "ListOffsets", Topic: names[0].Topic, Partition: names[0].Partition, Err: again[names[0]]}
	if len(names) > 1 {
		e.Hint = fmt.Sprintf("%d more partitions failed too", len(names)-1)
	}
	return e
}

// lookupFailed says which operation an error ended, for which partition, after how long.
func lookupFailed(ctx context.Context, op string, err error, attempts int, elapsed time.Duration) error {
	e := &client.OpError{Op: op, Partition: -1, Attempts: attempts, Elapsed: elapsed, Err: err}
	var inner *client.OpError
	if errors.As(err, &inner) {
		e.Topic, e.Partition, e.Broker, e.Hint, e.Err = inner.Topic, inner.Partition, inner.Broker, inner.Hint, inner.Err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(e.Err, cause) {
		e.Err = fmt.Errorf("%w: %w", cause, e.Err)
	}
	return e
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// askLeaders makes one round over the leaders of what is missing in found. again has the partitions that may succeed
// later; err is one that will not.
func (c *Consumer) askLeaders(ctx context.Context, names []string, asks map[TopicPartition]int64, found map[TopicPartition]OffsetAndTime) (again map[TopicPartition]errcode.Code, err error) {
	topology, err := c.cl.AwaitTopics(ctx, names...)
	if err != nil {
		return nil, err
	}
	again = map[TopicPartition]errcode.Code{}
	requests := map[int32]*message.ListOffsetsRequest{}
	for tp, at := range asks {
		if _, done := found[tp]; done {
			continue
		}
		leader, epoch, ok := topology.Leader(tp.Topic, tp.Partition)
		if !ok {
			if t := topology.Topic(tp.Topic); t != nil && t.Err == errcode.None && t.Partition(tp.Partition) == nil {
				return again, &client.OpError{Op: "Metadata", Topic: tp.Topic, Partition: tp.Partition, Err: errcode.UnknownTopicOrPartition,
					Hint: fmt.Sprintf("the topic has %d partitions", len(t.Partitions))}
			}
			again[tp] = errcode.LeaderNotAvailable
			continue
		}
		ask(requests, leader, tp, epoch, at, c.cfg.Isolation)
	}
	var (
		mu    sync.Mutex
		group sync.WaitGroup
	)
	for broker, req := range requests {
		group.Go(func() { // ends with the request, which ctx bounds
			// Not on the consumer's own connection: there it would wait behind a fetch that the broker holds back.
			resp, reqErr := c.cl.Request(ctx, client.Broker(broker).Via(client.Metadata), req)
			mu.Lock()
			defer mu.Unlock()
			if reqErr != nil {
				err = errors.Join(err, reqErr)
				return
			}
			if e := collect(resp.(*message.ListOffsetsResponse), found, again); e != nil {
				err = errors.Join(err, e)
			}
		})
	}
	group.Wait()
	return again, err
}

func topicsOf(asks map[TopicPartition]int64) []string {
	var names []string
	for tp := range asks {
		if !slices.Contains(names, tp.Topic) {
			names = append(names, tp.Topic)
		}
	}
	return names
}

// ask adds a partition to the request for its leader.
func ask(requests map[int32]*message.ListOffsetsRequest, leader int32, tp TopicPartition, epoch int32, at int64, isolation Isolation) {
	req := requests[leader]
	if req == nil {
		req = message.NewListOffsetsRequest()
		req.ReplicaId, req.IsolationLevel = -1, int8(isolation)
		requests[leader] = req
	}
	i := slices.IndexFunc(req.Topics, func(t message.ListOffsetsTopic) bool { return t.Name == tp.Topic })
	if i < 0 {
		i = len(req.Topics)
		req.Topics = append(req.Topics, message.ListOffsetsTopic{Name: tp.Topic})
	}
	req.Topics[i].Partitions = append(req.Topics[i].Partitions,
		message.ListOffsetsPartition{PartitionIndex: tp.Partition, CurrentLeaderEpoch: epoch, Timestamp: at})
}

// collect sorts one answer into what was found, what is to be asked again, and an error that stays.
func collect(resp *message.ListOffsetsResponse, found map[TopicPartition]OffsetAndTime, again map[TopicPartition]errcode.Code) error {
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			tp := TopicPartition{Topic: t.Name, Partition: p.PartitionIndex}
			switch code := errcode.Code(p.ErrorCode); {
			case code == errcode.None:
				found[tp] = OffsetAndTime{Offset: p.Offset, TimestampMs: p.Timestamp, LeaderEpoch: p.LeaderEpoch}
			case code.Retriable() || code == errcode.UnknownServerError:
				again[tp] = code
			default:
				return &client.OpError{Op: "ListOffsets", Topic: tp.Topic, Partition: tp.Partition, Err: code}
			}
		}
	}
	return nil
}
