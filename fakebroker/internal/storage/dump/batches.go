package dump

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

func (p *printer) segment() error {
	base, err := p.base()
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "Log starting offset: %d\n", base)
	return p.batches()
}

// kraftSnapshot prints a snapshot of the metadata log: end offset and epoch
// are in its name, the rest is batches.
func (p *printer) kraftSnapshot() error {
	id, epochDigits, ok := strings.Cut(strings.TrimSuffix(filepath.Base(p.name), ".checkpoint"), "-")
	offset, err1 := strconv.ParseInt(id, 10, 64)
	epoch, err2 := strconv.ParseInt(epochDigits, 10, 32)
	if !ok || err1 != nil || err2 != nil {
		return errors.New("the name is not that of a KRaft snapshot, offset-epoch.checkpoint")
	}
	fmt.Fprintf(p.out, "Snapshot end offset: %d, epoch: %d\n", offset, epoch)
	return p.batches()
}

// batches prints all batches of the file.
func (p *printer) batches() error {
	f, err := p.fs.Open(p.name, vfs.ReadOnly)
	if err != nil {
		return err
	}
	defer f.Close()
	d := compress.NewDecompressor()
	decode := decoderFor(p.name)
	defer p.printGaps()
	for pos, end := int64(0), f.Size(); pos < end; {
		batch, err := readBatch(f, pos, end)
		if errors.Is(err, record.ErrPartial) || errors.Is(err, record.ErrCorrupt) {
			fmt.Fprintf(p.out, "Found %d invalid bytes at the end of %s\n", end-pos, filepath.Base(p.name))
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.batch(batch, pos, d, decode); err != nil {
			return fmt.Errorf("batch at position %d: %w", pos, err)
		}
		pos += int64(len(batch))
	}
	return nil
}

// readBatch reads the batch at pos. The size in its header is believed only
// as far as the file reaches.
func readBatch(f vfs.File, pos, end int64) ([]byte, error) {
	head := make([]byte, min(record.PeekSize, end-pos))
	if err := readFull(f, head, pos); err != nil {
		return nil, err
	}
	size, _, err := record.Peek(head)
	if err != nil {
		return nil, err
	}
	if int64(size) > end-pos {
		return nil, record.ErrPartial
	}
	batch := make([]byte, size)
	return batch, readFull(f, batch, pos)
}

func readFull(f vfs.File, p []byte, pos int64) error {
	n, err := f.ReadAt(p, pos)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// batch prints one batch and, if wanted, its records.
func (p *printer) batch(batch []byte, pos int64, d *compress.Decompressor, decode decoder) error {
	valid := record.Validate(batch) == nil
	it, err := record.Open(batch, record.ReadOptions{Decompressor: d, Limit: compress.BrokerLimit, SkipCRC: true})
	h := it.Header()
	if h.Magic == 2 || err == nil {
		horizon, ok := h.DeleteHorizon()
		fmt.Fprintf(p.out, "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d "+
			"partitionLeaderEpoch: %d isTransactional: %t isControl: %t deleteHorizonMs: %s position: %d %s: %d size: %d magic: %d "+
			"compresscodec: %s crc: %d isvalid: %t\n",
			h.BaseOffset, h.LastOffset(), h.Count, h.BaseSequence, h.LastSequence(), h.ProducerID, h.ProducerEpoch,
			h.PartitionLeaderEpoch, h.Transactional(), h.Control(), optionalLong(horizon, ok), pos, timestampType(&h), h.MaxTimestamp,
			len(batch), h.Magic, h.Codec(), h.CRC, valid)
	}
	if err != nil || !p.options.Records {
		return err
	}
	for {
		r, ok := it.Next()
		if !ok {
			return it.Err()
		}
		if p.last >= 0 && r.Offset != p.last+1 {
			p.gaps = append(p.gaps, gap{p.last, r.Offset})
		}
		p.last = r.Offset
		p.record(&h, &r, decode)
	}
}

// gap is a pair of offsets that follow each other in a file though others are
// missing between them: compaction removed them, or something is wrong.
type gap struct{ last, next int64 }

// printGaps says where offsets are missing. Apache Kafka also says that -1 is
// followed by the first offset of each file that does not begin at 0; we do not.
func (p *printer) printGaps() {
	if len(p.gaps) == 0 {
		return
	}
	fmt.Fprintf(p.out, "Non-consecutive offsets in %s\n", p.name)
	for _, g := range p.gaps {
		fmt.Fprintf(p.out, "  %d is followed by %d\n", g.last, g.next)
	}
}

func timestampType(h *record.BatchHeader) string {
	if h.LogAppendTime() {
		return "LogAppendTime"
	}
	return "CreateTime"
}

// record prints one record in one line.
func (p *printer) record(h *record.BatchHeader, r *record.Record, decode decoder) {
	fmt.Fprintf(p.out, "| offset: %d %s: %d keySize: %d valueSize: %d", r.Offset, timestampType(h), r.Timestamp, size(r.Key), size(r.Value))
	var keys []string
	for k := range r.Headers.All() {
		keys = append(keys, k)
	}
	sequence := h.BaseSequence
	if sequence >= 0 {
		sequence = record.AddSequence(sequence, int32(r.Offset-h.BaseOffset)) // compaction leaves gaps in both
	}
	fmt.Fprintf(p.out, " sequence: %d headerKeys: [%s]", sequence, strings.Join(keys, ","))
	switch {
	case h.Control():
		fmt.Fprintf(p.out, " %s", controlText(r))
	default:
		key, value := decode(r.Key, r.Value)
		if r.Key != nil {
			fmt.Fprintf(p.out, " key: %s", key)
		}
		if value != "" || r.Value != nil {
			fmt.Fprintf(p.out, " payload: %s", value)
		}
	}
	fmt.Fprintln(p.out)
}

func size(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}
