package fetch

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/record"
)

// scan finds how much of b is whole batches and the position behind them, without looking at records. An
// incomplete batch at the end is no error. err says why b cannot be cut further.
func scan(b []byte) (whole []byte, next machine.Position, err error) {
	rest := b
	next = machine.Position{Offset: -1, Epoch: -1}
	for len(rest) > 0 {
		size, magic, err := record.Peek(rest)
		if errors.Is(err, record.ErrPartial) || err == nil && size > len(rest) {
			break
		}
		if err != nil {
			return b[:len(b)-len(rest)], next, err
		}
		behind, epoch, err := behind(rest[:size], magic)
		if err == nil && behind <= next.Offset {
			err = fmt.Errorf("%w: offset %d behind offset %d", record.ErrCorrupt, behind-1, next.Offset-1)
		}
		if err != nil {
			return b[:len(b)-len(rest)], next, err
		}
		next = machine.Position{Offset: behind, Epoch: epoch}
		rest = rest[size:]
	}
	return b[:len(b)-len(rest)], next, nil
}

// behind is the offset behind a batch and its leader epoch. What counts is the last offset that the batch ever
// had, not how many records are left in it.
func behind(batch []byte, magic int8) (int64, int32, error) {
	if magic < 2 {
		// The outer message of a compressed set has the offset of the last one inside.
		offset := int64(binary.BigEndian.Uint64(batch))
		if offset < 0 {
			return 0, -1, fmt.Errorf("%w: offset %d", record.ErrCorrupt, offset)
		}
		return offset + 1, -1, nil
	}
	h, err := record.ParseHeader(batch)
	if err != nil {
		if errors.Is(err, record.ErrPartial) {
			err = fmt.Errorf("%w: %d bytes are less than a header", record.ErrCorrupt, len(batch))
		}
		return 0, -1, err
	}
	if h.BaseOffset < 0 || h.LastOffsetDelta < 0 || h.NextOffset() < 0 {
		return 0, -1, fmt.Errorf("%w: base offset %d, last offset delta %d", record.ErrCorrupt, h.BaseOffset, h.LastOffsetDelta)
	}
	return h.NextOffset(), h.PartitionLeaderEpoch, nil
}
