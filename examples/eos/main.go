// Command eos runs lines of files through a pipeline of three stages that is exactly once, and does its worst meanwhile: it
// kills workers (kill -9, in the middle of transactions) and crashes the broker. Then it compares what came out with what went in.
//
//	go run ./examples/eos                            10,000 lines of Go, through an embedded broker
//	go run ./examples/eos -unsafe                    the same without transactions: duplicates appear
//	go run ./examples/eos -bootstrap localhost:9092  on a real cluster of brokers from 2.5 on, which are left alone
//	go run ./examples/eos -n 50000 FILE...           lines of files and folders of yours
//
// It exits with 0 when every line came out exactly once, and with 1 otherwise.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"
)

// options is what the command line says.
type options struct {
	bootstrap string
	unsafe    bool
	n         int
	over      time.Duration
	seed      uint64
	files     []string
}

func main() {
	if spec := os.Getenv(workerEnv); spec != "" {
		os.Exit(worker(spec))
	}
	var o options
	flag.StringVar(&o.bootstrap, "bootstrap", "", "HOST:PORT,... of a Kafka cluster; without it a broker is started in this process, and crashed")
	flag.BoolVar(&o.unsafe, "unsafe", false, "commit offsets after writing, without transactions: at least once")
	flag.IntVar(&o.n, "n", 10_000, "how many lines")
	flag.DurationVar(&o.over, "over", 3*time.Second, "how long the lines take to come in, at least; workers are killed meanwhile")
	flag.Uint64Var(&o.seed, "seed", 0, "decides who is killed when (0: chance does)")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: eos [flags] [FILE...]\n\nLines of files go through three stages, exactly once, while workers are killed and the broker crashes.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.files = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Stderr, o); err != nil {
		fmt.Fprintln(os.Stderr, "eos:", err)
		os.Exit(1)
	}
}

// run does all of it and prints the verdict. An error means that something failed, or that not every line came out once.
func run(ctx context.Context, out, log io.Writer, o options) error {
	lines, err := input(o.files, o.n)
	if err != nil {
		return err
	}
	k, err := start(ctx, o.bootstrap, o.unsafe)
	if err != nil {
		return err
	}
	defer k.close()
	begin := time.Now()
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	p := &pipeline{k: k, lines: lines, log: log, begin: begin, unsafe: o.unsafe, battered: make(chan struct{})}
	if err := p.launch(); err != nil {
		return err
	}
	defer p.kill()
	if err := p.run(ctx, o); err != nil {
		return err
	}
	v, err := judge(ctx, k, lines)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "in %d · out %d · duplicates %d · lost %d · aborted transactions %d · %.1f s\n", len(lines), v.out, v.duplicates, v.lost, v.aborted, time.Since(begin).Seconds())
	return v.err()
}
