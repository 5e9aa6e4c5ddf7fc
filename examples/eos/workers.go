package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// perStage is how many workers share a stage.
const perStage = 2

// process is a worker: this program once more.
type process struct {
	job
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer
	ended  chan struct{}
	err    error // with ended
}

func (j job) start() (*process, error) {
	spec, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{job: j, cmd: exec.Command(self), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(spec))
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.ended) }() // ends with the process
	return p, nil
}

// launch starts all workers.
func (p *pipeline) launch() error {
	for stage := 1; stage <= stages; stage++ {
		for i := range perStage {
			j := job{Brokers: p.k.seeds, Stage: stage, Name: fmt.Sprintf("%s-worker-%d%c", p.k.run, stage, 'a'+i), Group: p.k.group(stage),
				In: p.k.topics[stage-1], Out: p.k.topics[stage], Unsafe: p.unsafe}
			w, err := j.start()
			if err != nil {
				p.kill()
				return err
			}
			p.workers = append(p.workers, w)
		}
	}
	return nil
}

// replace kills a worker in the middle of what it does, or takes notice that it ended by itself, and starts its successor.
func (p *pipeline) replace(i int) error {
	w := p.workers[i]
	select {
	case <-w.ended:
		if p.failed++; p.failed > 10 {
			return fmt.Errorf("workers fail again and again, the last one: %w: %s", w.err, strings.TrimSpace(w.stderr.String()))
		}
		p.say("worker %d%c ended by itself: %s", w.Stage, 'a'+i%perStage, strings.TrimSpace(w.stderr.String()))
	default:
		w.cmd.Process.Kill()
		<-w.ended
		p.say("kill -9 worker %d%c", w.Stage, 'a'+i%perStage)
	}
	successor, err := w.job.start()
	if err == nil {
		p.workers[i] = successor
	}
	return err
}

// stop ends the workers in good order: they commit what they have and leave. One that had ended by itself just before had no
// time to be replaced; all lines have come out without it.
func (p *pipeline) stop() (err error) {
	var all sync.WaitGroup
	p.workers = slices.DeleteFunc(p.workers, func(w *process) bool {
		select {
		case <-w.ended:
			return true
		default:
			return false
		}
	})
	for _, w := range p.workers {
		w.stdin.Close()
		all.Go(func() { // ends with the process, which is killed if need be
			select {
			case <-w.ended:
			case <-time.After(2 * closing):
				w.cmd.Process.Kill()
				<-w.ended
			}
		})
	}
	all.Wait()
	for _, w := range p.workers {
		if w.err != nil {
			err = errors.Join(err, fmt.Errorf("worker %s: %w: %s", w.Name, w.err, strings.TrimSpace(w.stderr.String())))
		}
	}
	p.workers = nil
	return err
}

// kill ends what is left.
func (p *pipeline) kill() {
	for _, w := range p.workers {
		w.cmd.Process.Kill()
		<-w.ended
	}
	p.workers = nil
}
