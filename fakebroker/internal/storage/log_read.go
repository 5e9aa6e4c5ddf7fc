package storage

import (
	"errors"
	"io"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

// readRetries is how often Read starts over when segments vanish under it.
const readRetries = 3

// Read returns what is stored from the batch on that holds offset from: at
// most maxBytes, nothing of a batch that reaches bound. As in Kafka the first
// batch is whole, or there is nothing: with minOne it is returned even if it is
// larger than maxBytes. It may begin below from: the client skips what it has
// (trap 10). The last one may be cut off by maxBytes: the client drops the rest
// and asks for it again. What is returned lies in one segment, so there may be
// more. The bytes are not copied: see Records, whose Release has to be called.
//
// An offset outside [log start, log end] is OffsetOutOfRange; at or behind
// the bound there is nothing to return, which is no error.
func (l *Log) Read(from int64, maxBytes int, bound Bound, minOne bool) (FetchData, error) {
	for try := 1; ; try++ {
		p := l.view()
		d, err := l.read(&p, from, maxBytes, bound, minOne)
		if err == nil || CodeOf(err) == errcode.OffsetOutOfRange || p.ended != nil {
			return d, err
		}
		// A segment may have been truncated or deleted meanwhile: look again.
		if try == readRetries {
			return d, l.readFailed("read", err)
		}
	}
}

// readFailed decides what an error of a reader means. A batch that is damaged
// on the disk is told to whoever wants it; the rest of the log can be read. An
// error of the disk itself ends the log.
func (l *Log) readFailed(op string, err error) error {
	if ended := l.usable(); ended != nil {
		return ended
	}
	code := errcode.CorruptMessage
	switch {
	case errors.Is(err, errVanished), errors.Is(err, vfs.ErrClosed):
		code = errcode.KafkaStorageError // three times in a row: retriable for the client
	case errors.Is(err, errBadBatch), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, record.ErrCorrupt),
		errors.Is(err, record.ErrInvalid), errors.Is(err, compress.ErrCorrupt), errors.Is(err, compress.ErrTooLarge):
	default:
		return l.fail(op, err)
	}
	return &Error{Code: code, Message: op + " of " + l.partition.String(), Err: err}
}

func (l *Log) read(p *published, from int64, maxBytes int, bound Bound, minOne bool) (FetchData, error) {
	limit := l.mistakenLimit(p, bound)
	d := FetchData{NextOffset: from, LogStartOffset: p.start, HighWatermark: p.highWatermark,
		LastStableOffset: p.lastStable(), LogEndOffset: p.end}
	if p.ended != nil {
		return d, p.ended
	}
	if from < p.start || from > p.end {
		return d, refuse(errcode.OffsetOutOfRange, "offset %d of %s is outside of the log, which holds %d to %d",
			from, l.partition, p.start, p.end)
	}
	if from >= limit {
		return d, nil
	}
	for i := p.find(from); i < len(p.segments); i++ {
		err := p.segments[i].read(&d, region{from: from, limit: limit, end: p.after(i), size: p.size(i), maxBytes: maxBytes, minOne: minOne})
		if err == io.EOF {
			continue // compaction left nothing at or behind from in this segment
		}
		if err == nil && bound == BoundStable && d.Records.Len > 0 {
			d.Aborted, err = p.aborted(i, from, d.NextOffset)
			d.Aborted = l.mistakenAborted(d.Aborted, from)
		}
		if err != nil {
			d.Records.Release()
			d.Records = Records{}
		}
		return d, err
	}
	return d, nil
}

// limit is the offset that a reader may not reach.
func (p *published) limit(bound Bound) int64 {
	switch bound {
	case BoundHighWatermark:
		return p.highWatermark
	case BoundStable:
		return p.lastStable()
	default:
		return p.end
	}
}

// after returns the offset behind segment i.
func (p *published) after(i int) int64 {
	if i+1 < len(p.segments) {
		return p.segments[i+1].base
	}
	return p.end
}

// size returns how many bytes of segment i belong to this view: appends that came later are behind limit, even where limit
// is the log end.
func (p *published) size(i int) int64 {
	if i == len(p.segments)-1 {
		return p.activeSize
	}
	return p.segments[i].size.Load()
}

// aborted collects the aborted transactions that overlap [from, to), from the
// transaction index of segment i and, until one says that it is enough, of
// those behind it: in the order of their markers, as Kafka lists them. Those of
// one producer are by first offset then.
func (p *published) aborted(i int, from, to int64) ([]AbortedTxn, error) {
	found := []AbortedTxn{}
	for ; i < len(p.segments); i++ {
		x, err := p.segments[i].index()
		if err != nil {
			return nil, err
		}
		_, _, txns := x.view()
		var complete bool
		if found, complete = collectAborted(found, txns, from, to); complete {
			break
		}
	}
	return found, nil
}

// region is what a reader wants of a segment.
type region struct {
	from, limit int64 // offsets
	end         int64 // offset behind the segment
	size        int64 // bytes of the segment up to end
	maxBytes    int
	minOne      bool
}

// read puts the batches of the region into d; io.EOF if the segment has
// nothing at or behind from.
func (s *segment) read(d *FetchData, r region) error {
	var h record.BatchHeader
	pos, err := s.position(r.from, r.size, &h)
	if err != nil {
		return err
	}
	if h.BaseOffset >= r.limit {
		return nil
	}
	if h.Size() > r.maxBytes {
		if !r.minOne {
			d.TooLarge = true
			return nil
		}
		d.NextOffset = h.NextOffset()
		return s.take(&d.Records, pos, h.Size())
	}
	end, next, err := s.regionEnd(pos, h, r)
	if err != nil {
		return err
	}
	d.NextOffset = next
	return s.take(&d.Records, pos, int(end-pos))
}

// regionEnd finds where a read that begins at pos, with batch first, has to
// end: at maxBytes, or before the first batch that reaches limit. next is the
// offset behind the last batch that is in there whole.
func (s *segment) regionEnd(pos int64, first record.BatchHeader, r region) (end, next int64, err error) {
	target := pos + int64(r.maxBytes)
	if target >= r.size && r.limit >= r.end {
		return r.size, r.end, nil // all there is
	}
	x, err := s.index()
	if err != nil {
		return 0, 0, err
	}
	offsets, _, _ := x.view()
	start := min(floorPosition(offsets, target), floorOffset(offsets, r.limit-s.base))
	next = first.NextOffset()
	if behind := pos + int64(first.Size()); start < behind {
		start = behind
	} else {
		next = noOffset
	}
	c := newCursor(s.log.file, start, r.size)
	defer c.release()
	var h record.BatchHeader
	for {
		err := c.peek(&h)
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, 0, err
		}
		if h.BaseOffset >= r.limit || c.pos+int64(h.Size()) > target {
			if next == noOffset {
				next = h.BaseOffset // the batches before were not looked at
			}
			if h.BaseOffset < r.limit {
				return target, next, nil
			}
			break
		}
		next = h.NextOffset()
		c.skip(&h)
	}
	return c.pos, next, nil
}

// take fills in the bytes [pos, pos+n) of the log: slices if they are in
// memory, else the file, kept open until Release.
func (s *segment) take(r *Records, pos int64, n int) error {
	if m, ok := vfs.AsSlicer(s.log.file); ok {
		r.Mem = m.Slices(nil, pos, n)
		for _, b := range r.Mem {
			r.Len += len(b)
		}
		if r.Len < n {
			*r = Records{}
			return errVanished
		}
		return nil
	}
	if !s.log.acquire() {
		return errVanished
	}
	r.File, r.Pos, r.Len, r.handle = s.log.file, pos, n, s.log
	return nil
}

// errVanished says that a segment was deleted or truncated during a read.
var errVanished = errors.New("storage: the segment was deleted or truncated during the read")
