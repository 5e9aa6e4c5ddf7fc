package harness_test

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/ottla-kafka/ottla/fakebroker"
)

// plug is a process's hold on the network: pulled, nothing that the process still does is heard of, as after kill -9.
type plug struct {
	k *fakebroker.Cluster

	mu     sync.Mutex
	pulled bool
	conns  []net.Conn
}

var errPulled = errors.New("the process was killed")

// Addrs implements client.ClusterSource.
func (p *plug) Addrs() []string { return p.k.Addrs() }

// DialContext implements client.ClusterSource.
func (p *plug) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := p.k.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pulled {
		_ = conn.Close()
		return nil, errPulled
	}
	p.conns = append(p.conns, conn)
	return conn, nil
}

func (p *plug) pull() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pulled = true
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}
