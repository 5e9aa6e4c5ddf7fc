package client_test

import (
	"context"
	"net"
	"runtime"
	"sync"

	"github.com/ottla-kafka/ottla/client"
)

// events is an observer that remembers.
type events struct {
	client.NopObserver
	mu           sync.Mutex
	connected    []client.ConnectEvent
	disconnected []client.DisconnectEvent
	requested    []client.RequestEvent
	topologies   []client.MetadataEvent
}

func (e *events) Connected(ev client.ConnectEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.connected = append(e.connected, ev)
}

func (e *events) Disconnected(ev client.DisconnectEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disconnected = append(e.disconnected, ev)
}

func (e *events) Requested(ev client.RequestEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requested = append(e.requested, ev)
}

func (e *events) MetadataChanged(ev client.MetadataEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.topologies = append(e.topologies, ev)
}

func (e *events) disconnects() []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []error
	for _, d := range e.disconnected {
		out = append(out, d.Err)
	}
	return out
}

// blackHole never connects, as a firewall that drops packets.
func blackHole(ctx context.Context, network, addr string) (net.Conn, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// heapBytes is how many bytes have been allocated so far.
func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
