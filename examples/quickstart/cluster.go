package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
)

// inMemory is how much input the embedded broker takes into memory; more than that it keeps on disk, in a folder that goes
// when it stops.
const inMemory = 64 << 20

// cluster is the client's way to its brokers: those named, or one that starts in this process.
func cluster(bootstrap string, bytes int64) (brokers client.Option, stop func(), err error) {
	if bootstrap != "" {
		return client.Seeds(strings.Split(bootstrap, ",")...), func() {}, nil
	}
	var opts []fakebroker.Option
	dir := ""
	if bytes > inMemory {
		if dir, err = os.MkdirTemp("", "quickstart-broker-"); err != nil {
			return nil, nil, err
		}
		opts = append(opts, fakebroker.Dir(dir))
	}
	k, err := fakebroker.New(opts...)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return client.Cluster(k), func() { k.Close(context.Background()); os.RemoveAll(dir) }, nil
}

// stored is how many records the partitions hold.
func stored(ctx context.Context, c *consumer.Consumer) (n int64, err error) {
	for _, p := range c.Partitions() {
		end, err := c.EndOffsets(ctx, p.TopicPartition)
		if err != nil {
			return 0, err
		}
		n += end[p.TopicPartition]
	}
	if n == 0 {
		return 0, errors.New("the topic is empty")
	}
	return n, nil
}

// progress is a bar on a terminal, and elsewhere a line each ten seconds.
type progress struct {
	what      string
	bar       *progressbar.ProgressBar
	next      time.Time // of the next line
	seen, all int64
	shown     int64
}

func newProgress(what string, all int64) *progress {
	p := &progress{what: what, all: all, next: time.Now().Add(10 * time.Second)}
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		p.bar = progressbar.NewOptions64(all, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowBytes(true),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription(what))
	}
	return p
}

// add counts bytes. It looks at clock and terminal once a mebibyte, because it is called for every line.
func (p *progress) add(n int) {
	if p.seen += int64(n); p.seen-p.shown < 1<<20 {
		return
	}
	p.shown = p.seen
	if p.bar != nil {
		p.bar.Set64(p.seen)
	} else if now := time.Now(); now.After(p.next) {
		p.next = now.Add(10 * time.Second)
		fmt.Fprintf(os.Stderr, "%s: %d of %d MB\n", p.what, p.seen/1e6, p.all/1e6)
	}
}

// done takes the bar away.
func (p *progress) done() {
	if p.bar != nil {
		p.bar.Finish()
	}
}

// rate is megabytes a second.
func rate(bytes int64, took time.Duration) string {
	r := float64(bytes) / 1e6 / took.Seconds()
	if r < 10 {
		return fmt.Sprintf("%.1f MB/s", r)
	}
	return fmt.Sprintf("%.0f MB/s", r)
}
