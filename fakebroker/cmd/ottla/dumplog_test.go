package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unpack puts Apache Kafka's own data folder on the disk and returns where.
func unpack(t *testing.T) string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "internal", "storage", "testdata", "segments", "data.tar.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return filepath.Join(dir, "data")
		}
		require.NoError(t, err)
		if h.Typeflag != tar.TypeReg {
			continue
		}
		name := filepath.Join(dir, filepath.Clean(h.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, b, 0o644))
	}
}

func TestDumpLogReadsAWholeFolderOfApacheKafka(t *testing.T) {
	dir := unpack(t)
	files, err := expandFolders([]string{dir})
	require.NoError(t, err)
	for _, args := range [][]string{{"dump-log", dir}, {"dump-log", "--print-data-log", dir}} {
		code, out, errs := command(t, args...)
		require.Zero(t, code, errs)
		require.Empty(t, errs)
		require.Equal(t, len(files), strings.Count("\n"+out, "\nDumping "))
		for _, ext := range []string{".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"} {
			require.Contains(t, out, ext+"\n")
		}
		require.NotContains(t, out, "isvalid: false")
	}
}

func TestDumpLogPrintsRecordsWhenAsked(t *testing.T) {
	log := filepath.Join(unpack(t), "plain-0", "00000000000000000000.log")
	_, batches, _ := command(t, "dump-log", log)
	_, records, _ := command(t, "dump-log", "--print-data-log", log)
	require.Contains(t, batches, "baseOffset: 0 ")
	require.NotContains(t, batches, "| offset: 0 ")
	require.Contains(t, records, "| offset: 0 ")
}

func TestDumpLogDecodesMetadataByItsFolder(t *testing.T) {
	log := filepath.Join(unpack(t), "__cluster_metadata-0", "00000000000000000000.log")
	_, out, _ := command(t, "dump-log", "-r", log)
	require.Contains(t, out, `"type":"TOPIC_RECORD"`)
	require.Contains(t, out, `"type":"PARTITION_RECORD"`)
}

func TestDumpLogVerifiesIndexes(t *testing.T) {
	dir := unpack(t)
	indexes, err := filepath.Glob(filepath.Join(dir, "*", "*.index"))
	require.NoError(t, err)
	code, _, errs := command(t, append([]string{"dump-log", "--verify-index-only"}, indexes...)...)
	require.Zero(t, code, errs)

	broken := ""
	for _, name := range indexes {
		if b, err := os.ReadFile(name); err == nil && len(b) > 8 && b[7] != 0 {
			b[7]++ // position of the first entry
			require.NoError(t, os.WriteFile(name, b, 0o644))
			broken = name
			break
		}
	}
	require.NotEmpty(t, broken)
	code, out, errs := command(t, "dump-log", "--verify-index-only", broken)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "Mismatches in :"+broken)
	require.Contains(t, errs, "does not fit its log")
}

func TestDumpLogGoesOnBehindAFileThatItCannotRead(t *testing.T) {
	dir := unpack(t)
	bad := filepath.Join(dir, "noise.index")
	require.NoError(t, os.WriteFile(bad, []byte("x"), 0o644))
	good := filepath.Join(dir, "plain-0", "00000000000000000000.log")
	code, out, errs := command(t, "dump-log", bad, good)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, bad)
	require.Contains(t, out, "Dumping "+good)

	code, _, errs = command(t, "dump-log", filepath.Join(dir, "nothing"))
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "there is no such file")
}
