package interop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a single thing may take before it counts as an accident: no test depends on it, and a machine that is
// busy with much else does not reach it.
const patience = 4 * time.Minute

// eventually asks again and again until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		require.Less(t, time.Now(), deadline, "it does not come about within %v: %s", patience, what)
	}
}

// process is a child that is stopped at the end, whatever happens.
type process struct {
	cmd  *exec.Cmd
	data string // its folder, if the test has to know
	addr string
	log  *lockedBuffer
	over chan struct{} // closed when it has ended
	err  error         // how it has ended, then
}

// starting has functions that start children. They run on a thread that lives as long as this process: the kernel kills a
// child when the thread that started it ends, so that none is left behind by a run that was killed.
var starting = make(chan func())

func init() {
	go func() { // for good
		runtime.LockOSThread()
		for start := range starting {
			start()
		}
	}()
}

// begin starts a child.
func begin(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 10 * time.Second // for what a killed child's children would hold open
	started := make(chan error)
	starting <- func() { started <- cmd.Start() }
	return <-started
}

// launch starts a child that runs until it is stopped.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, log: &lockedBuffer{}, over: make(chan struct{})}
	cmd.Stderr = p.log
	if cmd.Stdout == nil {
		cmd.Stdout = p.log
	}
	if err := begin(cmd); err != nil {
		return nil, err
	}
	go func() { // ends with the child
		p.err = cmd.Wait()
		close(p.over)
	}()
	return p, nil
}

// stop ends the process with SIGTERM and, if it does not listen, kills it; it returns how the process ended.
func (p *process) stop() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.over:
		return p.err
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("it did not end within %v: %w", patience, p.err)
	}
}

// kill ends the process as a crash does.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.over
}

func (p *process) alive() bool {
	select {
	case <-p.over:
		return false
	default:
		return true
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// lineWriter is the stdout of a child whose lines are told to a function, in order and all of them before the child is over.
type lineWriter struct {
	tell func(line string)
	rest []byte
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.tell(string(line))
		l.rest = rest
	}
}

// takenPorts holds a socket for each port that this run uses, by which other runs on this machine see that it does.
var takenPorts struct {
	mu    sync.Mutex
	locks []io.Closer
}

// freePorts returns the first of n adjacent ports that nobody listens on. They are below those from which the system takes
// the ports of connections, so that nobody gets one while its broker is away for a moment, and they stay with this run.
func freePorts(n int) (int, error) {
	const lowest, highest = 12000, 32000
	takenPorts.mu.Lock()
	defer takenPorts.mu.Unlock()
	for range 1000 {
		first := lowest + rand.IntN(highest-lowest-n)
		if locks, ok := takePorts(first, n); ok {
			takenPorts.locks = append(takenPorts.locks, locks...)
			return first, nil
		}
	}
	return 0, fmt.Errorf("no %d adjacent ports between %d and %d are free", n, lowest, highest)
}

func takePorts(first, n int) (locks []io.Closer, ok bool) {
	for port := first; port < first+n; port++ {
		lock, err := net.Listen("unix", fmt.Sprintf("@ottla-interop-port-%d", port)) // a name without a file: it goes with the process
		if err == nil {
			locks = append(locks, lock)
			var l net.Listener
			if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				l.Close()
			}
		}
		if err != nil {
			for _, lock := range locks {
				lock.Close()
			}
			return nil, false
		}
	}
	return locks, true
}

// reserve is freePorts for tests.
func reserve(t testing.TB, n int) int {
	t.Helper()
	first, err := freePorts(n)
	require.NoError(t, err)
	return first
}

// result is what a command did.
type result struct {
	stdout, stderr string
	code           int
}

// run executes a command to its end.
func run(t testing.TB, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	r, err := execute(cmd, stdin)
	require.NoError(t, err)
	return r
}

// execute is run for any goroutine.
func execute(cmd *exec.Cmd, stdin string) (result, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	err := begin(cmd)
	if err == nil {
		late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		err = cmd.Wait()
		if !late.Stop() {
			return result{}, fmt.Errorf("%v did not end within %v\nstdout: %s\nstderr: %s", cmd.Args, patience, &out, &errs)
		}
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return result{}, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}, nil
}
