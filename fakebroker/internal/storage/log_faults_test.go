package storage

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/record"
)

func TestFailedFsyncEndsTheLog(t *testing.T) {
	fs := vfs.NewFault(vfs.NewMem())
	l := openTest(t, fs, DefaultLogConfig())
	appendOK(t, l, batchOf("a"))
	fs.Set(func(op vfs.Op) error {
		if op.Kind == vfs.OpSync {
			return vfs.ErrClosed
		}
		return nil
	})
	require.ErrorIs(t, l.Flush(t0), errcode.KafkaStorageError)
	fs.Set(nil)
	require.ErrorIs(t, l.Flush(t0), errcode.KafkaStorageError, "never as if a second try had helped")
	require.Zero(t, l.RecoveryPoint())
}

func TestReadErrorOfTheDiskEndsTheLog(t *testing.T) {
	broken := errors.New("input/output error")
	for _, ended := range []bool{true, false} {
		fs := vfs.NewFault(vfs.NewMem())
		l := openTest(t, fs, DefaultLogConfig())
		appendOK(t, l, batchOf("a"))
		fs.Set(func(op vfs.Op) error {
			if op.Kind == vfs.OpRead && ended {
				return broken
			}
			return nil
		})
		_, err := l.Read(0, 100, BoundLogEnd, true)
		require.Equal(t, ended, errors.Is(err, broken))
		require.Equal(t, ended, errors.Is(l.usable(), errcode.KafkaStorageError))
	}
}

func TestDamagedBatchIsToldAndTheRestCanBeRead(t *testing.T) {
	fs := vfs.NewMem()
	cfg := DefaultLogConfig()
	cfg.SegmentBytes = 100
	l := openTest(t, fs, cfg)
	for range 3 {
		appendOK(t, l, batchOf("a"))
	}
	f, err := fs.Open(segmentFile("logs/orders-0", 1, logSuffix), vfs.ReadWrite)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{9}, 16) // the magic
	require.NoError(t, err)
	_, err = l.Read(1, 100, BoundLogEnd, true)
	require.ErrorIs(t, err, errcode.CorruptMessage)
	for _, from := range []int64{0, 2} {
		_, err = l.Read(from, 100, BoundLogEnd, true)
		require.NoError(t, err)
	}
	appendOK(t, l, batchOf("b"))
}

// A slow disk holds up the writer of its partition, nobody else, and nothing
// that holds a mutex: in a synctest bubble the clock can move.
func TestSlowDiskHoldsUpWritersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewFault(vfs.NewMem())
		l := openTest(t, fs, DefaultLogConfig())
		appendOK(t, l, batchOf("a"))
		fs.Set(func(op vfs.Op) error {
			if op.Kind == vfs.OpAppend || op.Kind == vfs.OpSync {
				time.Sleep(30 * time.Second)
			}
			return nil
		})
		began := time.Now()
		var done sync.WaitGroup
		for range 2 {
			done.Go(func() { appendOK(t, l, batchOf("b")) })
		}
		synctest.Wait()
		d, err := l.Read(0, 1000, BoundLogEnd, true)
		require.NoError(t, err)
		require.EqualValues(t, 1, d.NextOffset)
		l.SetHighWatermark(1)
		l.ActiveProducers()
		require.Zero(t, time.Since(began))
		done.Wait()
		require.Equal(t, time.Minute, time.Since(began))

		go func() { _ = l.Flush(t0) }()
		synctest.Wait()
		fs.Set(nil)
		appendOK(t, l, batchOf("c"))
		require.Equal(t, time.Minute, time.Since(began), "an append does not wait for a flush")
		time.Sleep(10 * time.Minute)
	})
}

// Readers, a writer, retention, truncation of the log start and flushes at once.
func TestReadersSeeWholeBatchesWhileTheLogChanges(t *testing.T) {
	fileSystems(t, func(t *testing.T, fs vfs.FS) {
		cfg := sampleConfig()
		cfg.SegmentBytes, cfg.RetentionBytes, cfg.FileDeleteDelayMs = 2000, 6000, 0
		l := openTest(t, fs, cfg)
		stop := make(chan struct{})
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				at := int64(0)
				for {
					select {
					case <-stop:
						return
					default:
					}
					d, err := l.Read(at, 700, BoundHighWatermark, true)
					if CodeOf(err) == errcode.OffsetOutOfRange {
						at = l.LogStartOffset()
						continue
					}
					if !checkConcurrent(t, &d, err) {
						return
					}
					at = d.NextOffset
				}
			})
		}
		for i := range 600 {
			appendOK(t, l, batchOf(fmt.Sprint(i), strings.Repeat("x", i%100)))
			l.SetHighWatermark(l.LogEndOffset())
			if i%20 == 0 {
				require.NoError(t, l.tick(t0, true, true, true))
			}
		}
		close(stop)
		readers.Wait()
		require.Greater(t, l.LogStartOffset(), int64(500))
		require.NoError(t, l.Close(t0))
	})
}

func checkConcurrent(t *testing.T, d *FetchData, err error) bool {
	if err != nil {
		t.Error(err)
		return false
	}
	b, err := d.Records.AppendTo(nil)
	d.Records.Release()
	for err == nil && len(b) > 0 {
		var batch []byte
		if batch, b, err = record.Next(b); err == nil {
			err = record.Validate(batch)
		} else if errors.Is(err, record.ErrPartial) {
			return true
		}
	}
	if err != nil {
		t.Error(err)
	}
	return err == nil
}
