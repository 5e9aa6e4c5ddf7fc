package storage

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Checkpoint files are text: the version of the form, the number of entries,
// one entry a line.
//
//	offsets (recovery-point-, replication-,     epochs (leader-epoch-checkpoint,
//	log-start-, cleaner-offset-checkpoint)      one per log)
//
//	0                                           0
//	2                                           2
//	orders 0 120                                0 0
//	orders 1 98                                 3 57
//	topic, partition, offset                    epoch, its start offset

// ErrCorruptCheckpoint marks a checkpoint file that cannot be used.
var ErrCorruptCheckpoint = errors.New("storage: corrupt checkpoint")

const checkpointVersion = 0

// AppendOffsetCheckpoint appends offsets per partition in the file's form,
// sorted by topic and partition.
func AppendOffsetCheckpoint(dst []byte, offsets map[TopicPartition]int64) []byte {
	partitions := make([]TopicPartition, 0, len(offsets))
	for p := range offsets {
		partitions = append(partitions, p)
	}
	slices.SortFunc(partitions, comparePartitions)
	dst = fmt.Appendf(dst, "%d\n%d\n", checkpointVersion, len(partitions))
	for _, p := range partitions {
		dst = fmt.Appendf(dst, "%s %d %d\n", p.Topic, p.Partition, offsets[p])
	}
	return dst
}

func comparePartitions(a, b TopicPartition) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	return int(a.Partition) - int(b.Partition)
}

// ParseOffsetCheckpoint reads offsets per partition.
func ParseOffsetCheckpoint(b []byte) (map[TopicPartition]int64, error) {
	lines, err := checkpointLines(b, 3)
	if err != nil {
		return nil, err
	}
	offsets := make(map[TopicPartition]int64, len(lines))
	for _, f := range lines {
		partition, err1 := strconv.ParseInt(f[1], 10, 32)
		offset, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 != nil || err2 != nil || partition < 0 || offset < 0 {
			return nil, fmt.Errorf("%w: %q is no topic, partition and offset", ErrCorruptCheckpoint, strings.Join(f, " "))
		}
		offsets[TopicPartition{Topic: f[0], Partition: int32(partition)}] = offset
	}
	return offsets, nil
}

// EpochEntry says at which offset a leader epoch began.
type EpochEntry struct {
	Epoch       int32
	StartOffset int64
}

// AppendEpochCheckpoint appends leader epochs in the file's form.
func AppendEpochCheckpoint(dst []byte, entries []EpochEntry) []byte {
	dst = fmt.Appendf(dst, "%d\n%d\n", checkpointVersion, len(entries))
	for _, e := range entries {
		dst = fmt.Appendf(dst, "%d %d\n", e.Epoch, e.StartOffset)
	}
	return dst
}

// ParseEpochCheckpoint reads leader epochs. Epochs and offsets must rise.
func ParseEpochCheckpoint(b []byte) ([]EpochEntry, error) {
	lines, err := checkpointLines(b, 2)
	if err != nil {
		return nil, err
	}
	entries := make([]EpochEntry, 0, len(lines))
	last := EpochEntry{Epoch: -1, StartOffset: -1}
	for _, f := range lines {
		epoch, err1 := strconv.ParseInt(f[0], 10, 32)
		offset, err2 := strconv.ParseInt(f[1], 10, 64)
		e := EpochEntry{Epoch: int32(epoch), StartOffset: offset}
		if err1 != nil || err2 != nil || e.Epoch <= last.Epoch || e.StartOffset <= last.StartOffset {
			return nil, fmt.Errorf("%w: epoch line %q after (%d %d)", ErrCorruptCheckpoint, strings.Join(f, " "), last.Epoch, last.StartOffset)
		}
		entries, last = append(entries, e), e
	}
	return entries, nil
}

// checkpointLines checks version and count and splits each entry into fields.
func checkpointLines(b []byte, fields int) ([][]string, error) {
	if len(b) == 0 {
		return nil, nil // Kafka takes an empty file for one without entries
	}
	text, whole := bytes.CutSuffix(b, []byte("\n"))
	lines := strings.Split(string(text), "\n")
	if !whole || len(lines) < 2 {
		return nil, fmt.Errorf("%w: cut off after %d bytes", ErrCorruptCheckpoint, len(b))
	}
	if lines[0] != strconv.Itoa(checkpointVersion) {
		return nil, fmt.Errorf("%w: version %q, only %d is known", ErrCorruptCheckpoint, lines[0], checkpointVersion)
	}
	entries := lines[2:]
	if n, err := strconv.Atoi(lines[1]); err != nil || n != len(entries) {
		return nil, fmt.Errorf("%w: %q entries announced, %d found", ErrCorruptCheckpoint, lines[1], len(entries))
	}
	split := make([][]string, len(entries))
	for i, line := range entries {
		if split[i] = strings.Fields(line); len(split[i]) != fields {
			return nil, fmt.Errorf("%w: line %q has %d fields, %d are expected", ErrCorruptCheckpoint, line, len(split[i]), fields)
		}
	}
	return split, nil
}
