package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/wire"
)

// lateRequests are requests that fault rules hold back while their connections are gone already.
type lateRequests struct {
	waiting atomic.Int64 // those of them that wait for answers to their client

	mu   sync.Mutex
	list []*lateRequest
}

type lateRequest struct {
	client string
	more   int           // further requests of the client to be answered first
	due    chan struct{} // closed then
}

// detach makes r independent of its connection, which the caller closes then, and has it handled when its rule says. The
// goroutine that waits for that ends when the broker does.
func (l *lateRequests) detach(b *Broker, r *Request, h handler) {
	late, ok := b.copyOf(r)
	if !ok {
		return // it was readable once; nothing is lost but a fault
	}
	var due <-chan struct{}
	var timer *time.Timer
	var when <-chan time.Time
	if n := r.outcome.LateAfter; n > 0 {
		due = l.await(clientOf(r), n)
	} else {
		timer = time.NewTimer(r.outcome.LateBy)
		when = timer.C
	}
	b.background.Add(1)
	go func() {
		defer b.background.Done()
		if timer != nil {
			defer timer.Stop()
		}
		select {
		case <-b.stop:
			return
		case <-due:
		case <-when:
		}
		late.Received = time.Now()
		b.log.Info("a fault rule's request arrives late", "api", late.Key, "peer", late.RemoteAddr)
		h(b, late)
	}()
}

// copyOf returns a request of its own with what r has, whose answer goes nowhere.
func (b *Broker) copyOf(r *Request) (*Request, bool) {
	frame := slices.Clone(r.x.Frame)
	rd := wire.NewReader(frame)
	if _, err := wire.ReadRequestHeader(rd); err != nil {
		return nil, false
	}
	c := *r
	c.session = &session{auth: r.session.auth, principal: r.session.principal}
	c.Body = c.session.body(r.Key)
	if err := c.Body.ReadFrom(rd, r.Version); err != nil {
		return nil, false
	}
	c.x = network.Orphan(r.x.Conn, frame)
	c.outcome.Late, c.outcome.Lose, c.outcome.Answered, c.late = false, false, nil, nil
	return &c, true
}

// await returns a channel that closes once n further requests of a client have been answered.
func (l *lateRequests) await(client string, n int) <-chan struct{} {
	w := &lateRequest{client: client, more: n, due: make(chan struct{})}
	l.mu.Lock()
	l.list = append(l.list, w)
	l.mu.Unlock()
	l.waiting.Add(1)
	return w.due
}

// served counts an answered request.
func (l *lateRequests) served(r *Request) {
	switch r.Key {
	case wire.KeyApiVersions, wire.KeySaslHandshake, wire.KeySaslAuthenticate:
		return // a new connection is not yet going on
	}
	client := clientOf(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(w *lateRequest) bool {
		if w.client != client {
			return false
		}
		if w.more--; w.more > 0 {
			return false
		}
		close(w.due)
		l.waiting.Add(-1)
		return true
	})
}

func clientOf(r *Request) string {
	if r.ClientID == nil {
		return ""
	}
	return *r.ClientID
}
