package storage

import (
	"path/filepath"
	"strconv"
	"strings"
)

// Suffixes of the files of a segment. The name before the suffix is the
// segment's base offset in 20 digits.
const (
	logSuffix       = ".log"       // record batches
	indexSuffix     = ".index"     // offset -> position
	timeIndexSuffix = ".timeindex" // timestamp -> offset
	txnIndexSuffix  = ".txnindex"  // aborted transactions
	snapshotSuffix  = ".snapshot"  // producer state at the base offset

	deletedSuffix = ".deleted" // appended: waits to be removed
	cleanedSuffix = ".cleaned" // appended: half-written result of a compaction
	swapSuffix    = ".swap"    // appended: finished result, about to replace its sources
)

// Files beside the segments.
const (
	epochCheckpointFile   = "leader-epoch-checkpoint"
	partitionMetadataFile = "partition.metadata"
)

// segmentSuffixes are the files that belong to one segment, in the order in
// which they are deleted: without its .log a segment does not exist.
var segmentSuffixes = [...]string{logSuffix, indexSuffix, timeIndexSuffix, txnIndexSuffix}

func offsetName(offset int64) string {
	var digits [20]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + offset%10)
		offset /= 10
	}
	return string(digits[:])
}

func segmentFile(dir string, base int64, suffix string) string {
	return dir + string(filepath.Separator) + offsetName(base) + suffix
}

// parseFileName splits a file name into its offset and its suffix. The names
// of KRaft snapshots (offset-epoch.checkpoint) are not of this form.
func parseFileName(name string) (offset int64, suffix string, ok bool) {
	i := strings.IndexByte(name, '.')
	if i != 20 {
		return 0, "", false
	}
	offset, err := strconv.ParseInt(name[:i], 10, 64)
	return offset, name[i:], err == nil && offset >= 0
}
