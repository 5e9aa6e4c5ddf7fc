package dump

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// untar returns the files of an archive that Apache Kafka's folder, or what
// its DumpLogSegments said about it, is kept in.
func untar(t *testing.T, name string) map[string][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", "segments", name))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := make(map[string][]byte)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		require.NoError(t, err)
		if h.Typeflag == tar.TypeReg {
			files[h.Name], err = io.ReadAll(r)
			require.NoError(t, err)
		}
	}
}

func TestOutputEqualsThatOfDumpLogSegments(t *testing.T) {
	fs := vfs.NewMem()
	for name, b := range untar(t, "data.tar.gz") {
		name = strings.TrimPrefix(name, "data/")
		require.NoError(t, fs.MkdirAll(filepath.Dir(name)))
		require.NoError(t, vfs.WriteFile(fs, name, b))
	}
	n := 0
	for name, want := range untar(t, "dump.tar.gz") {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "dump/"), ".txt")
		var got bytes.Buffer
		require.NoError(t, File(&got, fs, name, Options{Records: true}))
		want = usual(want)
		lines := strings.Split(floats(got.Bytes()), "\n")
		for i, line := range strings.Split(floats(want), "\n") {
			require.Less(t, i, len(lines), "%s ends before %q", name, line)
			require.Equal(t, line, lines[i], "%s:%d", name, i+1)
		}
		n++
		if strings.HasSuffix(name, "index") {
			require.NoError(t, File(io.Discard, fs, name, Options{Verify: true}), name)
		}
	}
	require.Greater(t, n, 100)
}

// folder is where the dumped files lay.
var folder = regexp.MustCompile(`/\S*/data/`)

// usual leaves out what Kafka says about every file that does not begin at
// offset 0, and the folder that its files lay in.
func usual(dumped []byte) []byte {
	s := folder.ReplaceAllString(string(dumped), "")
	lines := strings.SplitAfter(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  -1 is followed by") {
			lines[i] = ""
			if i+1 == len(lines) || !strings.Contains(lines[i+1], "is followed by") {
				lines[i-1] = ""
			}
		}
	}
	return []byte(strings.Join(lines, ""))
}

var floatField = regexp.MustCompile(`"value":[0-9.eE+-]+`)

// floats evens out how Java and Go write the only floating point field.
func floats(b []byte) string {
	return floatField.ReplaceAllStringFunc(string(b), func(field string) string {
		f, err := strconv.ParseFloat(strings.TrimPrefix(field, `"value":`), 64)
		if err != nil {
			return field
		}
		return fmt.Sprintf(`"value":%f`, f)
	})
}

func dumped(t *testing.T, name string, b []byte, o Options) (string, error) {
	t.Helper()
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll(filepath.Dir(name)))
	require.NoError(t, vfs.WriteFile(fs, name, b))
	var out bytes.Buffer
	err := File(&out, fs, name, o)
	return out.String(), err
}

func TestDamageIsSaidAndEverythingBeforeItPrinted(t *testing.T) {
	log := untar(t, "data.tar.gz")["data/plain-0/00000000000000000000.log"]
	out, err := dumped(t, "plain-0/00000000000000000000.log", log[:2000], Options{})
	require.NoError(t, err)
	require.Contains(t, out, "baseOffset: 0 lastOffset: 9")
	require.Contains(t, out, "Found 776 invalid bytes at the end of 00000000000000000000.log\n")

	flipped := bytes.Clone(log)
	flipped[100] ^= 1
	out, err = dumped(t, "plain-0/00000000000000000000.log", flipped, Options{})
	require.NoError(t, err)
	require.Contains(t, out, "isvalid: false")
	require.Contains(t, out, "isvalid: true")
}

func TestFilesThatAreTextAreShownAsTheyAre(t *testing.T) {
	out, err := dumped(t, "data/recovery-point-offset-checkpoint", []byte("0\n1\norders 0 7\n"), Options{})
	require.NoError(t, err)
	require.Equal(t, "Dumping data/recovery-point-offset-checkpoint\n0\n1\norders 0 7\n", out)
	_, err = dumped(t, "data/picture.png", []byte("\x89PNG\x00"), Options{})
	require.EqualError(t, err, "dump data/picture.png: neither one of a segment's files nor text")
	require.ErrorIs(t, File(io.Discard, vfs.NewMem(), "00000000000000000000.log", Options{}), vfs.ErrNotExist)
}

func TestIndexThatDoesNotFitItsLogIsFound(t *testing.T) {
	fs := vfs.NewMem()
	data := untar(t, "data.tar.gz")
	for _, suffix := range []string{".log", ".index", ".timeindex"} {
		require.NoError(t, vfs.WriteFile(fs, "00000000000000000000"+suffix, data["data/plain-0/00000000000000000000"+suffix]))
	}
	for _, suffix := range []string{".index", ".timeindex"} {
		name := "00000000000000000000" + suffix
		f, err := fs.Open(name, vfs.ReadWrite)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte{0x7}, 7)
		require.NoError(t, err)
		require.ErrorContains(t, File(io.Discard, fs, name, Options{Verify: true}), "does not fit its log")
	}
}

// Nothing that a file may hold makes the printer fail in another way than with an error.
func FuzzFile(f *testing.F) {
	f.Add("plain-0/00000000000000000000.log", []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x31"))
	f.Add("__consumer_offsets-0/00000000000000000000.log", []byte{})
	f.Add("x/00000000000000000071-0000000001.checkpoint", []byte{})
	f.Add("x/00000000000000000007.snapshot", []byte{0, 1})
	f.Fuzz(func(t *testing.T, name string, b []byte) {
		if name = filepath.Clean(name); name == "." || strings.HasPrefix(name, "..") || name == "/" {
			return
		}
		_, _ = dumped(t, name, b, Options{Records: true})
		_, _ = dumped(t, name, b, Options{Verify: true})
	})
}
