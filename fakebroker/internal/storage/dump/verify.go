package dump

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/record"
)

// openLog opens the log that an index belongs to.
func (p *printer) openLog() (vfs.File, error) {
	return p.fs.Open(strings.TrimSuffix(p.name, filepath.Ext(p.name))+".log", vfs.ReadOnly)
}

// verifyOffsets looks whether each entry points to the batch that it names.
func (p *printer) verifyOffsets(base int64, entries []storage.OffsetEntry) error {
	f, err := p.openLog()
	if err != nil {
		return err
	}
	defer f.Close()
	found := false
	for _, e := range entries {
		last := int64(-1)
		if h, err := headerAt(f, int64(e.Position)); err == nil {
			last = h.LastOffset()
		}
		if want := base + int64(e.RelativeOffset); last != want {
			if !found {
				fmt.Fprintf(p.out, "Mismatches in :%s\n", p.name)
			}
			found = true
			fmt.Fprintf(p.out, "  Index offset: %d, log offset: %d\n", want, last)
		}
	}
	if found {
		return errors.New("the index does not fit its log: start the broker without it, it is built anew")
	}
	return nil
}

// verifyTimes looks whether no record up to an entry's offset is younger than
// its timestamp says.
func (p *printer) verifyTimes(base int64, entries []storage.TimeEntry) error {
	f, err := p.openLog()
	if err != nil {
		return err
	}
	defer f.Close()
	next, largest := 0, int64(-1)
	found := false
	for pos := int64(0); pos < f.Size() && next < len(entries); {
		h, err := headerAt(f, pos)
		if err != nil {
			return err
		}
		largest = max(largest, h.MaxTimestamp)
		if e := entries[next]; base+int64(e.RelativeOffset) <= h.LastOffset() {
			if e.Timestamp != largest {
				if !found {
					fmt.Fprintf(p.out, "Found timestamp mismatch in :%s\n", p.name)
				}
				found = true
				fmt.Fprintf(p.out, "  Index timestamp: %d, log timestamp: %d\n", e.Timestamp, largest)
			}
			next++
		}
		pos += int64(h.Size())
	}
	if found {
		return errors.New("the index does not fit its log: start the broker without it, it is built anew")
	}
	return nil
}

func headerAt(f vfs.File, pos int64) (record.BatchHeader, error) {
	b := make([]byte, record.HeaderSize)
	if err := readFull(f, b, pos); err != nil {
		return record.BatchHeader{}, err
	}
	return record.ParseHeader(b)
}
