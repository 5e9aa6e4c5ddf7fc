package harness_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/client"
)

// life is a process of a trial, from its start to its end or death. Its network is its own: cut off, nothing that it still
// does is heard of, as after kill -9.
type life struct {
	tr   *trial
	name string // of the role; id numbers its lives
	id   string
	ctx  context.Context // ends when the trial is done or the process is killed
	end  context.CancelCauseFunc
	over bool // its work is done

	lag time.Duration // how long answers are on their way

	mu    sync.Mutex
	cut   bool
	conns []*lagging
}

// lagging is a connection whose bytes take their time to get to the process. Those on their way when it is closed are lost.
type lagging struct {
	net.Conn
	lag    time.Duration
	closed chan struct{}
	once   sync.Once
}

// Read implements net.Conn.
func (c *lagging) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.lag == 0 {
		return n, err
	}
	t := time.NewTimer(c.lag)
	defer t.Stop()
	select {
	case <-t.C:
		return n, err
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

// Close implements net.Conn.
func (c *lagging) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

var errKilled = errors.New("killed")

// keep has a process of a role live; when it ends with an error or is killed, the next one does, until one is done.
func (tr *trial) keep(name string, live func(*life) error) { tr.spawn(name, 1, live) }

func (tr *trial) spawn(name string, n int, live func(*life) error) {
	if tr.load.Err() != nil {
		return
	}
	l := &life{tr: tr, name: name, id: fmt.Sprintf("%s.%d", name, n)}
	l.lag = []time.Duration{0, 0, 2 * time.Millisecond, 40 * time.Millisecond}[tr.random("lag of "+l.id).IntN(4)]
	l.ctx, l.end = context.WithCancelCause(tr.load)
	tr.mu.Lock()
	tr.lives[name] = l
	tr.mu.Unlock()
	var once sync.Once
	next := func() { once.Do(func() { tr.spawn(name, n+1, live) }) }
	context.AfterFunc(l.ctx, func() {
		if errors.Is(context.Cause(l.ctx), errKilled) {
			next() // beside what is left of the dead
		}
	})
	tr.running.Go(func() {
		err := live(l)
		if err == nil && context.Cause(l.ctx) == nil {
			tr.mu.Lock()
			l.over = true
			tr.mu.Unlock()
			tr.tell("%s is done", l.id)
		} else if context.Cause(l.ctx) == nil {
			tr.tell("%s ended: %v", l.id, err)
			time.Sleep(100 * time.Millisecond) // what a supervisor would do
			next()
		}
		l.end(nil)
	})
}

// isOver reports whether a role's work is done.
func (tr *trial) isOver(name string) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.lives[name].over
}

// kill kills the process that has a role.
func (tr *trial) kill(name string) {
	tr.mu.Lock()
	l := tr.lives[name]
	tr.mu.Unlock()
	tr.tell("kill %s", l.id)
	tr.log.Process(l.id).Crashed()
	l.cutOff(true)
	l.end(errKilled)
}

// cutOff takes the network away, for a while or for ever.
func (l *life) cutOff(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.conns = nil
}

// Addrs implements client.ClusterSource.
func (l *life) Addrs() []string { return l.tr.k.Addrs() }

// DialContext implements client.ClusterSource.
func (l *life) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := l.tr.k.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		_ = conn.Close()
		return nil, errors.New("the network is cut")
	}
	lc := &lagging{Conn: conn, lag: l.lag, closed: make(chan struct{})}
	l.conns = append(l.conns, lc)
	return lc, nil
}

// client makes the process's client; the second result closes it.
func (l *life) client() (*client.Client, func(), error) {
	cl, err := client.New(client.Cluster(l), client.ClientID(l.name), client.RequestTimeout(5*time.Second))
	if err != nil {
		return nil, nil, err
	}
	return cl, func() { _ = cl.Close(context.Background()) }, nil
}

// closes ends something in good order, or in a hurry when the process was killed.
func (l *life) closes(f func(context.Context) error) {
	limit := 10 * time.Second
	if errors.Is(context.Cause(l.ctx), errKilled) {
		limit = 100 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = f(ctx) // it complains of what the faults prevented
}

// sleep sleeps until the process dies.
func (l *life) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ctx.Done():
	}
}
