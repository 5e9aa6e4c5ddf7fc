package storage

import (
	"io"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// nothingFound answers a search by time that has no result.
var nothingFound = TimestampOffset{Timestamp: noTimestamp, Offset: noOffset, LeaderEpoch: noEpoch}

// OffsetForTimestamp finds the first record whose timestamp is at or after ts.
// If it is not below bound the answer is that there is none (-1, -1): trap 4.
// The epoch is that of the record.
//
// As in Kafka only the first segment is searched whose largest timestamp is
// not below ts. When all its records from ts on lie below the log start
// offset, or it is empty and counts as young as its file, the answer is that
// there is none, although a later segment may hold one; that lasts until
// retention deletes the segment.
func (l *Log) OffsetForTimestamp(ts int64, bound Bound) (TimestampOffset, error) {
	p := l.view()
	if p.ended != nil {
		return nothingFound, p.ended
	}
	limit := p.limit(bound)
	for _, s := range p.segments {
		largest, err := s.largestTimestamp()
		if err != nil {
			return nothingFound, l.readFailed("search", err)
		}
		if largest < ts {
			continue
		}
		found, err := l.searchSegment(s, ts, p.start)
		if err != nil {
			return nothingFound, l.readFailed("search", err)
		}
		if found.Offset >= limit {
			return nothingFound, nil
		}
		return found, nil
	}
	return nothingFound, nil
}

// searchSegment looks for the first record at or behind start whose timestamp
// is at or after ts.
func (l *Log) searchSegment(s *segment, ts, start int64) (TimestampOffset, error) {
	x, err := s.index()
	if err != nil {
		return nothingFound, err
	}
	offsets, times, _ := x.view()
	from := max(floorTimestamp(times, ts), start-s.base)
	c := newCursor(s.log.file, floorOffset(offsets, from), s.size.Load())
	defer c.release()
	var h record.BatchHeader
	for {
		err := c.peek(&h)
		if err == io.EOF {
			return nothingFound, nil
		}
		if err != nil {
			return nothingFound, err
		}
		if h.MaxTimestamp >= ts && h.LastOffset() >= start {
			found, err := l.searchBatch(c, &h, ts, start)
			if err != nil || found.Offset != noOffset {
				return found, err
			}
		}
		c.skip(&h)
	}
}

// searchBatch reads the batch at the cursor for the record wanted.
func (l *Log) searchBatch(c *cursor, h *record.BatchHeader, ts, start int64) (TimestampOffset, error) {
	batch := make([]byte, h.Size())
	if n, err := c.f.ReadAt(batch, c.pos); n < len(batch) {
		return nothingFound, unexpectedEOF(err)
	}
	it, err := record.Open(batch, record.ReadOptions{Decompressor: l.codecs.decompressor, Limit: compress.BrokerLimit})
	if err != nil {
		return nothingFound, err
	}
	for r := range it.All() {
		if r.Timestamp >= ts && r.Offset >= start {
			return TimestampOffset{Timestamp: r.Timestamp, Offset: r.Offset, LeaderEpoch: h.PartitionLeaderEpoch}, nil
		}
	}
	return nothingFound, it.Err()
}

// MaxTimestampOffset finds the first record that has the largest timestamp of
// the log (ListOffsets -3, KIP-734). Whether it is below the bound of the
// request is for the caller to see.
func (l *Log) MaxTimestampOffset() (TimestampOffset, error) {
	p := l.view()
	if p.ended != nil {
		return nothingFound, p.ended
	}
	largest, in := noTimestamp, -1
	for i, s := range p.segments {
		x, err := s.index()
		if err != nil {
			return nothingFound, l.readFailed("search", err)
		}
		if ts, _ := x.largest(); ts > largest {
			largest, in = ts, i
		}
	}
	if in < 0 {
		return nothingFound, nil
	}
	found, err := l.searchSegment(p.segments[in], largest, p.start)
	if err != nil {
		return nothingFound, l.readFailed("search", err)
	}
	return found, nil
}
