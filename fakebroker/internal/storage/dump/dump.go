package dump

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// Options say what File prints.
type Options struct {
	Records bool // every record, not only the batches (--print-data-log)
	Verify  bool // compare indexes with their log instead of printing them
}

// File prints one file, chosen by its name:
//
//	.log .checkpoint   batches, and with Options.Records their records
//	.index .timeindex .txnindex .snapshot   entries
//	…-checkpoint, meta.properties, partition.metadata and so on   as they are, they are text
//
// A file that ends in the middle of a batch is no error, it is said at the
// end. An error names the file.
func File(w io.Writer, fs vfs.FS, name string, o Options) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "Dumping %s\n", name)
	p := printer{out: out, fs: fs, name: name, options: o, last: -1}
	err := p.print()
	if err == nil {
		err = out.Flush()
	} else {
		_ = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("dump %s: %w", name, err)
	}
	return nil
}

// printer prints one file.
type printer struct {
	out     *bufio.Writer
	fs      vfs.FS
	name    string
	options Options

	last int64 // offset of the last record, -1 at the beginning
	gaps []gap
}

func (p *printer) print() error {
	switch filepath.Ext(p.name) {
	case ".log":
		return p.segment()
	case ".checkpoint":
		return p.kraftSnapshot()
	}
	b, err := vfs.ReadFile(p.fs, p.name)
	if err != nil {
		return err
	}
	switch filepath.Ext(p.name) {
	case ".index":
		return p.offsetIndex(b)
	case ".timeindex":
		return p.timeIndex(b)
	case ".txnindex":
		return p.txnIndex(b)
	case ".snapshot":
		return p.snapshot(b)
	}
	if strings.ContainsRune(string(b), 0) {
		return fmt.Errorf("neither one of a segment's files nor text")
	}
	if !strings.HasSuffix(string(b), "\n") { // partition.metadata does not end its last line
		b = append(b, '\n')
	}
	_, err = p.out.Write(b)
	return err
}

// base returns the offset in the file's name.
func (p *printer) base() (int64, error) {
	digits, _, _ := strings.Cut(filepath.Base(p.name), ".")
	base, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the name does not begin with an offset")
	}
	return base, nil
}

// logSize returns the size of the segment's log; a file without one is
// printed all the same.
func (p *printer) logSize() int64 {
	info, err := p.fs.Stat(strings.TrimSuffix(p.name, filepath.Ext(p.name)) + ".log")
	if err != nil {
		return math.MaxInt64
	}
	return info.Size
}

func (p *printer) offsetIndex(b []byte) error {
	base, err := p.base()
	if err != nil {
		return err
	}
	entries, err := storage.ParseOffsetIndex(b, p.logSize())
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		fmt.Fprintf(p.out, "%s is empty.\n", p.name)
		return nil
	}
	if p.options.Verify {
		return p.verifyOffsets(base, entries)
	}
	for _, e := range entries {
		fmt.Fprintf(p.out, "offset: %d position: %d\n", base+int64(e.RelativeOffset), e.Position)
	}
	return nil
}

func (p *printer) timeIndex(b []byte) error {
	base, err := p.base()
	if err != nil {
		return err
	}
	entries, err := storage.ParseTimeIndex(b)
	if err != nil {
		return err
	}
	if p.options.Verify {
		return p.verifyTimes(base, entries)
	}
	for _, e := range entries {
		fmt.Fprintf(p.out, "timestamp: %d offset: %d\n", e.Timestamp, base+int64(e.RelativeOffset))
	}
	return nil
}

func (p *printer) txnIndex(b []byte) error {
	base, err := p.base()
	if err != nil {
		return err
	}
	entries, err := storage.ParseTxnIndex(b, base)
	if err != nil {
		return err
	}
	for _, e := range entries {
		fmt.Fprintf(p.out, "version: 0 producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n",
			e.ProducerID, e.FirstOffset, e.LastOffset, e.LastStableOffset)
	}
	return nil
}

func (p *printer) snapshot(b []byte) error {
	entries, err := storage.ParseProducerSnapshot(b)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		fmt.Fprintf(p.out, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d",
			e.ProducerID, e.ProducerEpoch, e.CoordinatorEpoch, optionalLong(e.CurrentTxnFirstOffset, e.CurrentTxnFirstOffset >= 0), e.Timestamp)
		if e.LastOffset >= 0 {
			fmt.Fprintf(p.out, " firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
				e.FirstSequence(), e.LastSequence, e.LastOffset, e.OffsetDelta, e.Timestamp)
		}
		fmt.Fprintln(p.out)
	}
	return nil
}

// optionalLong prints a number that may be missing as Java does.
func optionalLong(n int64, ok bool) string {
	if !ok {
		return "OptionalLong.empty"
	}
	return fmt.Sprintf("OptionalLong[%d]", n)
}
