package raft

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// Suffixes of checkpoint files: a finished one, and one being written.
const (
	checkpointSuffix = ".checkpoint"
	partSuffix       = ".checkpoint.part"
)

// CheckpointFile is one finished checkpoint in the folder.
type CheckpointFile struct {
	ID      CheckpointID
	Size    int64 // bytes
	ModTime time.Time
}

// parseCheckpointName reads <20 digits>-<10 digits>.checkpoint.
func parseCheckpointName(name string) (id CheckpointID, ok bool) {
	stem, ok := strings.CutSuffix(name, checkpointSuffix)
	offset, epoch, cut := strings.Cut(stem, "-")
	if !ok || !cut || len(offset) != 20 || len(epoch) != 10 {
		return id, false
	}
	o, err1 := strconv.ParseInt(offset, 10, 64)
	e, err2 := strconv.ParseInt(epoch, 10, 32)
	if err1 != nil || err2 != nil || o < 0 || e < 0 {
		return id, false
	}
	return CheckpointID{o, int32(e)}, true
}

// ListCheckpoints returns the finished checkpoints of a folder, oldest first, and removes what a crash left half written.
func ListCheckpoints(fsys vfs.FS, dir string) ([]CheckpointFile, error) {
	infos, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	var files []CheckpointFile
	for _, info := range infos {
		if strings.HasSuffix(info.Name, partSuffix) {
			if err := fsys.Remove(dir + "/" + info.Name); err != nil {
				return nil, err
			}
			continue
		}
		if id, ok := parseCheckpointName(info.Name); ok {
			files = append(files, CheckpointFile{id, info.Size, info.ModTime})
		}
	}
	slices.SortFunc(files, func(a, b CheckpointFile) int { return a.ID.Compare(b.ID) })
	return files, nil
}

// Retention is how much of the past is kept: metadata.max.retention.bytes and metadata.max.retention.ms, -1 for no
// limit.
type Retention struct {
	Bytes int64
	Age   time.Duration
}

// expired returns how many of the oldest checkpoints may go, given the size of the log. The newest always stays.
func (r Retention) expired(files []CheckpointFile, logSize int64, now time.Time) int {
	total := logSize
	for _, f := range files {
		total += f.Size
	}
	n := 0
	for n < len(files)-1 {
		f := files[n]
		tooMuch := r.Bytes >= 0 && total > r.Bytes
		tooOld := r.Age >= 0 && now.Sub(f.ModTime) > r.Age
		if !tooMuch && !tooOld {
			break
		}
		total -= f.Size
		n++
	}
	return n
}
