package raft

import (
	"errors"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// maxCheckpointBatch bounds the data batches of a checkpoint.
const maxCheckpointBatch = 1 << 20

// writeCheckpoint writes a checkpoint durably. voters is nil under kraft.version 0. timestamp is when it is written,
// lastTimestamp that of the last record it covers, both in ms. next returns the values one by one; they are not kept.
func writeCheckpoint(fsys vfs.FS, dir string, id CheckpointID, voters []Voter, timestamp, lastTimestamp int64,
	next func() (value []byte, ok bool, err error)) error {
	name := dir + "/" + id.String()
	f, err := fsys.Open(name+partSuffix, vfs.Create|vfs.Truncated)
	if err != nil {
		return err
	}
	w := checkpointWriter{f: f, epoch: id.Epoch, timestamp: timestamp}
	err = w.write(voters, lastTimestamp, next)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, fsys.Remove(name+partSuffix))
	}
	if err := fsys.Rename(name+partSuffix, name+checkpointSuffix); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

type checkpointWriter struct {
	f         vfs.File
	epoch     int32
	timestamp int64
	offset    int64 // of the next record in the file
	buf       []byte
}

func (w *checkpointWriter) write(voters []Voter, lastTimestamp int64, next func() ([]byte, bool, error)) error {
	header := []control{{record.ControlSnapshotHeader, &message.SnapshotHeaderRecord{LastContainedLogTimestamp: lastTimestamp}}}
	if voters != nil {
		header = append(header, votersControls(voters)...)
	}
	if err := w.control(header...); err != nil {
		return err
	}
	var b record.Builder
	b.Reset(w.buf[:0])
	for {
		value, ok, err := next()
		if err != nil {
			return err
		}
		if !ok || b.Count() > 0 && !b.TryAppend(maxCheckpointBatch, w.timestamp, nil, value, nil) {
			if err := w.data(&b); err != nil {
				return err
			}
			if !ok {
				break
			}
			b.Append(w.timestamp, nil, value, nil)
		} else if b.Count() == 0 {
			b.Append(w.timestamp, nil, value, nil) // the first of a batch, however large
		}
	}
	return w.control(control{record.ControlSnapshotFooter, &message.SnapshotFooterRecord{}})
}

// data writes the batch that b holds and starts the next one.
func (w *checkpointWriter) data(b *record.Builder) error {
	if b.Count() == 0 {
		return nil
	}
	n := int64(b.Count())
	batch := b.Seal(record.NoProducer())
	record.PatchBase(batch, w.offset, w.epoch)
	w.offset += n
	_, err := w.f.Append(batch)
	b.Reset(b.Release()[:0])
	return err
}

func (w *checkpointWriter) control(controls ...control) error {
	batch, err := appendControl(nil, w.offset, w.epoch, w.timestamp, controls...)
	if err != nil {
		return err
	}
	w.offset += int64(len(controls))
	_, err = w.f.Append(batch)
	return err
}
