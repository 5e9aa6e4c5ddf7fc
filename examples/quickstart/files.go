package main

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/ottla-kafka/ottla/producer"
)

// longestLine is where a longer line is cut into several records, so that any file fits Kafka's default limit of 1 MiB.
const longestLine = 512 << 10

// input is the files to send, and what is known of them when they are sent.
type input struct {
	files []string
	bytes int64
	lines int64
	sums  map[string][sha256.Size]byte
	err   error // of reading a file; records ends with it
}

// newInput takes the named files and folders; without names, every file of the repository around the working folder.
func newInput(names []string) (*input, error) {
	in := &input{sums: map[string][sha256.Size]byte{}}
	if len(names) == 0 {
		root, err := repository()
		if err != nil {
			return nil, err
		}
		names = []string{root}
	}
	seen := map[string]bool{}
	for _, name := range names {
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == ".git":
				return fs.SkipDir
			case !d.Type().IsRegular() || seen[path]:
				return nil
			}
			info, err := d.Info()
			if err == nil && info.Size() > 0 { // an empty file has no lines to send
				seen[path] = true
				in.files, in.bytes = append(in.files, path), in.bytes+info.Size()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(in.files) == 0 {
		return nil, fmt.Errorf("nothing to send in %v", names)
	}
	return in, nil
}

// repository is the folder at or above the working folder that holds go.mod.
func repository() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("run this inside the repository, or name the files to send")
		}
	}
	return "", err
}

// records yields each line, its end included, as a record keyed by its file: the lines of a file are in one partition,
// so they stay in order.
func (in *input) records(topic string) iter.Seq[producer.Record] {
	return func(yield func(producer.Record) bool) {
		bar := newProgress("sending", in.bytes)
		defer bar.done()
		for _, name := range in.files {
			key, more := []byte(name), true
			in.err = in.eachLine(name, func(line []byte) bool {
				bar.add(len(line))
				more = yield(producer.Record{Topic: topic, Key: key, Value: line}) // the producer copies
				return more
			})
			if in.err != nil || !more {
				return
			}
		}
	}
}

// eachLine reads a file and takes its sum.
func (in *input) eachLine(name string, yield func(line []byte) bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sum, r := sha256.New(), bufio.NewReaderSize(f, longestLine)
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			sum.Write(line)
			in.lines++
			if !yield(line) {
				return nil
			}
		}
		if err == io.EOF {
			in.sums[name] = [sha256.Size]byte(sum.Sum(nil))
			return nil
		}
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
	}
}

// output rebuilds the files in a folder of its own. Files follow each other in a partition, so one is open for each.
type output struct {
	dir   string
	lines int64
	paths map[string]string // of the rebuilt files, by name
	open  map[int32]*rebuilt
	bar   *progress
}

// rebuilt is a file that is being written.
type rebuilt struct {
	name string
	file *os.File
	w    *bufio.Writer
}

func newOutput(bytes int64) (*output, error) {
	dir, err := os.MkdirTemp("", "quickstart-")
	return &output{dir: dir, paths: map[string]string{}, open: map[int32]*rebuilt{}, bar: newProgress("reading", bytes)}, err
}

func (o *output) remove() error { o.bar.done(); return os.RemoveAll(o.dir) }

// write appends one record to its file.
func (o *output) write(partition int32, key, line []byte) error {
	f := o.open[partition]
	if f == nil || f.name != string(key) {
		name := string(key)
		if err := f.close(); err != nil {
			return err
		}
		if o.paths[name] == "" {
			o.paths[name] = filepath.Join(o.dir, fmt.Sprint(len(o.paths)))
		}
		file, err := os.OpenFile(o.paths[name], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		f = &rebuilt{name, file, bufio.NewWriterSize(file, 64<<10)}
		o.open[partition] = f
	}
	o.lines++
	o.bar.add(len(line))
	_, err := f.w.Write(line)
	return err
}

func (f *rebuilt) close() error {
	if f == nil {
		return nil
	}
	return errors.Join(f.w.Flush(), f.file.Close())
}

// identical counts the files whose rebuilt bytes, as they are on disk, have the SHA-256 of what was sent.
func (o *output) identical(in *input) (same int) {
	o.bar.done()
	for _, f := range o.open {
		f.close() // what it could not write shows in the sum
	}
	for _, name := range in.files {
		if sum, err := sumOf(o.paths[name]); err == nil && sum == in.sums[name] {
			same++
		}
	}
	return same
}

func sumOf(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return [sha256.Size]byte(h.Sum(nil)), err
}
