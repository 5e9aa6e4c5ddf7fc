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
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/ottla-kafka/ottla/producer"
)

// longestLine is where a longer line is cut into several records, so that any file fits Kafka's default limit of 1 MiB.
const longestLine = 512 << 10

// input is the files to send, and what is known of them while they are sent.
type input struct {
	files  []string
	bytes  int64
	sums   map[string][sha256.Size]byte // written by records, read after the last acknowledgement
	lines  int64
	mu     sync.Mutex
	failed error // the first record that Kafka did not take
}

// newInput takes the named files; without names, every file of the repository around the working folder.
func newInput(names []string) (*input, error) {
	in := &input{sums: map[string][sha256.Size]byte{}}
	roots := names
	if len(roots) == 0 {
		root, err := repository()
		if err != nil {
			return nil, err
		}
		roots = []string{root}
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				if err == nil && d.Name() == ".git" {
					return fs.SkipDir
				}
				return err
			}
			info, err := d.Info()
			if err == nil && info.Size() > 0 { // an empty file has no lines to send
				in.files, in.bytes = append(in.files, path), in.bytes+info.Size()
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if len(in.files) == 0 {
		return nil, fmt.Errorf("no files in %v", roots)
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

// records yields each line, its end included, as a record keyed by its file: one file is one partition, so its lines
// stay in order.
func (in *input) records(topic string) iter.Seq2[producer.Record, error] {
	return func(yield func(producer.Record, error) bool) {
		for _, name := range in.files {
			if err := in.fileRecords(topic, name, yield); err != nil {
				if err != errStopped {
					yield(producer.Record{}, err)
				}
				return
			}
		}
	}
}

var errStopped = errors.New("stopped")

func (in *input) fileRecords(topic, name string, yield func(producer.Record, error) bool) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sum, r := sha256.New(), bufio.NewReaderSize(f, longestLine)
	for key := []byte(name); ; {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			sum.Write(line)
			in.lines++
			if !yield(producer.Record{Topic: topic, Key: key, Value: line}, nil) { // Submit copies; line may change after it
				return errStopped
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

// acknowledged is called once for each record.
func (in *input) acknowledged(_ producer.Ack, err error) {
	if err != nil {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.failed == nil {
			in.failed = err
		}
	}
}

func (in *input) failure() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.failed
}

// output rebuilds the files in a folder of its own.
type output struct {
	dir   string
	lines int64
	files map[string]*rebuilt
}

type rebuilt struct {
	file *os.File
	w    *bufio.Writer
}

func newOutput() (*output, error) {
	dir, err := os.MkdirTemp("", "quickstart-")
	return &output{dir: dir, files: map[string]*rebuilt{}}, err
}

func (o *output) remove() { os.RemoveAll(o.dir) }

// write appends one record to its file.
func (o *output) write(name string, line []byte) error {
	f := o.files[name]
	if f == nil {
		file, err := os.Create(filepath.Join(o.dir, fmt.Sprint(len(o.files))))
		if err != nil {
			return err
		}
		f = &rebuilt{file: file, w: bufio.NewWriter(file)}
		o.files[name] = f
	}
	o.lines++
	_, err := f.w.Write(line)
	return err
}

// identical counts the files whose rebuilt bytes have the SHA-256 of the ones that were sent.
func (o *output) identical(in *input) (same int) {
	for _, name := range in.files {
		if f := o.files[name]; f != nil && f.rehash() == in.sums[name] {
			same++
		}
	}
	return same
}

// rehash reads the rebuilt file again from its start, so that what is compared is what is on disk.
func (f *rebuilt) rehash() (sum [sha256.Size]byte) {
	defer f.file.Close()
	if f.w.Flush() != nil {
		return sum
	}
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return sum
	}
	h := sha256.New()
	if _, err := io.Copy(h, f.file); err != nil {
		return sum
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// progress is a bar on a terminal and silent elsewhere but for a line each 10 seconds.
type progress struct {
	what string
	bar  *progressbar.ProgressBar
	next time.Time
	seen int64
	all  int64
}

func newProgress(what string, total int64) *progress {
	p := &progress{what: what, all: total, next: time.Now().Add(10 * time.Second)}
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowBytes(true),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription(what))
	}
	return p
}

func (p *progress) add(n int) {
	p.seen += int64(n)
	if p.bar != nil {
		p.bar.Add(n)
	} else if now := time.Now(); now.After(p.next) {
		p.next = now.Add(10 * time.Second)
		fmt.Fprintf(os.Stderr, "%s %d of %d MB\n", p.what, p.seen>>20, p.all>>20)
	}
}

func (p *progress) done() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
