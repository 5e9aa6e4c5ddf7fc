// Package oracle hands Apache Kafka's own expected values to the tests of wire.
//
// The data lies in testdata, in the folders wire, batches, hashing and tables: bytes, results and facts that Apache
// Kafka 4.4.0's classes produced. It is the project's own copy, so that go test needs nothing else. With the
// environment variable OTTLA_ORACLE=DIR the same tests read DIR instead, any folder of the same form:
//
//	OTTLA_ORACLE=DIR go test -run Oracle ./wire/...
//
// A relative DIR is looked for in the folder of the test and then in those above it: go test runs each package in its own
// folder, and the folder that the command was given in is one of them.
//
// Only test files import this package: it embeds three megabytes.
package oracle

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed testdata
var embedded embed.FS

// maxLine bounds one line of a data file; the longest of the project's copy is about 2 MiB.
const maxLine = 64 << 20

// FS returns the folder that holds wire, batches, hashing and tables: OTTLA_ORACLE, or the embedded copy.
func FS() fs.FS {
	if dir := os.Getenv("OTTLA_ORACLE"); dir != "" {
		return os.DirFS(locate(dir))
	}
	sub, err := fs.Sub(embedded, "testdata")
	if err != nil {
		panic(err) // the embedded folder is part of this package
	}
	return sub
}

// locate makes a relative folder absolute; one that is nowhere stays as it is, and opening a file in it says so.
func locate(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	at, err := os.Getwd()
	for err == nil {
		if info, err := os.Stat(filepath.Join(at, dir)); err == nil && info.IsDir() {
			return filepath.Join(at, dir)
		}
		if filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	return dir
}

// Open opens one file by its name below the oracle folder, such as "batches/good.jsonl.gz", and takes off gzip where
// the name ends in .gz. The test fails when the file is missing: no vector is skipped. The file is closed when the
// test ends.
func Open(tb testing.TB, name string) io.Reader {
	tb.Helper()
	f, err := FS().Open(filepath.ToSlash(name))
	if err != nil {
		tb.Fatalf("oracle file: %v", err)
	}
	tb.Cleanup(func() { _ = f.Close() })
	if !strings.HasSuffix(name, ".gz") {
		return f
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatalf("oracle file %s: %v", name, err)
	}
	return z
}

// Lines calls fn with each line of a file, without its end, and with its number from 1. The bytes are valid during the
// call only.
func Lines(tb testing.TB, name string, fn func(n int, line []byte)) {
	tb.Helper()
	sc := bufio.NewScanner(Open(tb, name))
	sc.Buffer(make([]byte, 1<<16), maxLine)
	n := 0
	for sc.Scan() {
		n++
		fn(n, sc.Bytes())
	}
	if err := sc.Err(); err != nil {
		tb.Fatalf("oracle file %s after line %d: %v", name, n, err)
	}
	if n == 0 {
		tb.Fatalf("oracle file %s is empty", name)
	}
}

// JSONLines decodes each line of a .jsonl or .jsonl.gz file into a new T and calls fn with it. Numbers that land in an
// any stay json.Number, since int64 values go beyond what a float64 holds.
func JSONLines[T any](tb testing.TB, name string, fn func(n int, v T)) {
	tb.Helper()
	Lines(tb, name, func(n int, line []byte) {
		var v T
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			tb.Fatalf("oracle file %s line %d: %v", name, n, err)
		}
		fn(n, v)
	})
}

// Table reads a .tsv file whose first line names the columns, and calls fn with each row as column -> value; the
// escapes \t \n \r \\ are undone.
func Table(tb testing.TB, name string, fn func(n int, row map[string]string)) {
	tb.Helper()
	var cols []string
	Lines(tb, name, func(n int, line []byte) {
		cells := strings.Split(string(line), "\t")
		if n == 1 {
			cols = cells
			return
		}
		row := make(map[string]string, len(cols))
		for i, c := range cols {
			if i < len(cells) {
				row[c] = unescape.Replace(cells[i])
			}
		}
		fn(n, row)
	})
}

var unescape = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r")
