package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// pipeline is a run: workers, what goes in, and what has come out.
type pipeline struct {
	k       *cluster
	lines   []string
	log     io.Writer
	begin   time.Time
	unsafe  bool
	workers []*process
	failed  int          // workers that ended by themselves
	seen    atomic.Int64 // lines that have come out

	broken   int           // times that a worker was killed or the broker crashed
	battered chan struct{} // closed when that was enough for the second half of the lines to go in

	saying sync.Mutex
}

// enough is how often something is broken at least, among it the broker once where it is ours.
const enough = 3

func (p *pipeline) say(format string, args ...any) {
	p.saying.Lock()
	defer p.saying.Unlock()
	fmt.Fprintf(p.log, "%5.1f s  %6d of %d  %s\n", time.Since(p.begin).Seconds(), p.seen.Load(), len(p.lines), fmt.Sprintf(format, args...))
}

// run feeds the lines in, breaks things until all are in, and waits until all have come out.
func (p *pipeline) run(ctx context.Context, o options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := make(chan error, 1)
	go func() { out <- p.watch(ctx) }() // ends with ctx, or when all is out
	in := make(chan error, 1)
	go func() { in <- p.feed(ctx, o.over) }() // ends with ctx, or when all is in
	rng := rand.New(rand.NewPCG(o.seed, 0))
	pause := time.NewTimer(500 * time.Millisecond)
	defer pause.Stop()
	for fed := false; ; {
		select {
		case err := <-out:
			if err == nil {
				err = p.stop()
			}
			return err
		case err := <-in:
			if fed = true; err != nil {
				return err
			}
			p.say("all lines are in")
		case <-pause.C:
			pause.Reset(time.Duration(150+rng.IntN(200)) * time.Millisecond)
			if err := p.breakSomething(ctx, rng, fed); err != nil {
				return err
			}
		}
	}
}

// breakSomething kills a worker, or crashes the broker every fifth time, while lines come in and go out; a worker that has
// ended is replaced in any case.
func (p *pipeline) breakSomething(ctx context.Context, rng *rand.Rand, fed bool) error {
	for i, w := range p.workers {
		select {
		case <-w.ended:
			return p.replace(i)
		default:
		}
	}
	if fed || p.seen.Load() == 0 {
		return nil
	}
	var err error
	if p.broken++; p.broken%5 == 3 && p.k.broker != nil {
		var what string
		if what, err = p.k.crash(ctx); err == nil {
			p.say("%s", what)
		}
	} else {
		err = p.replace(rng.IntN(len(p.workers)))
	}
	if p.broken == enough {
		close(p.battered)
	}
	return err
}
