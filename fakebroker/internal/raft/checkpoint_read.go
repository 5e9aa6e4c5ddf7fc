package raft

import (
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire/record"
)

// ReadCheckpoint reads a whole checkpoint: its data batches go to yield, its voters (nil under kraft.version 0) are
// returned. One without header or footer is damaged.
func ReadCheckpoint(fsys vfs.FS, dir string, id CheckpointID, yield func(Batch) error) (voters []Voter, err error) {
	name := id.String() + checkpointSuffix
	b, err := vfs.ReadFile(fsys, dir+"/"+name)
	if err != nil {
		return nil, err
	}
	var header, footer bool
	controls := func(kind record.ControlType, value []byte) (err error) {
		switch kind {
		case record.ControlSnapshotHeader:
			header = true
		case record.ControlSnapshotFooter:
			footer = true
		case record.ControlKRaftVoters:
			voters, err = parseVoters(value)
		}
		return err
	}
	data := func(batch Batch) error {
		if !header {
			return errors.New("data before the snapshot header")
		}
		return yield(batch)
	}
	if err := readBatches(b, data, controls); err != nil {
		return nil, fmt.Errorf("raft: checkpoint %s: %w", name, err)
	}
	if !header || !footer {
		return nil, fmt.Errorf("raft: checkpoint %s is not complete: header %t, footer %t", name, header, footer)
	}
	return voters, nil
}
