package fakebroker

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/fakebroker/internal/server"
)

// memoryPort is the port of in-memory listeners: a number for clients that insist on one.
const memoryPort = 9092

// A bound listener keeps its address over restarts.
type bound struct {
	spec       Listener
	name       string
	addr       string // host:port to bind again
	host       string // as advertised
	port       int32
	tls        *tls.Config
	sasl       bool
	memory     *network.MemoryListener // nil for TCP
	advertised string
}

// protocol is the listener's security protocol by its Kafka name.
func (l *bound) protocol() string {
	switch {
	case l.tls != nil && l.sasl:
		return "SASL_SSL"
	case l.tls != nil:
		return "SSL"
	case l.sasl:
		return "SASL_PLAINTEXT"
	}
	return "PLAINTEXT"
}

// plan names the listeners and decides how each is secured.
func plan(s *Settings, node int32) []*bound {
	specs := s.Listeners
	if len(specs) == 0 {
		specs = []Listener{{}}
	}
	taken := make(map[string]bool)
	for i := range specs {
		taken[specs[i].Name] = true
	}
	var all []*bound
	for i, spec := range specs {
		l := &bound{spec: spec, name: spec.Name, addr: spec.Addr, tls: spec.TLS}
		if !spec.Plain {
			if l.tls == nil {
				l.tls = s.TLS
			}
			l.sasl = len(s.Users) > 0
		}
		if l.addr == "" {
			l.addr = fmt.Sprintf("ottla-%d:%d", node, memoryPort+i)
		}
		for n := 1; l.name == ""; n++ {
			name := l.protocol()
			if n > 1 {
				name += "_" + strconv.Itoa(n)
			}
			if !taken[name] {
				l.name, taken[name] = name, true
			}
		}
		all = append(all, l)
	}
	return all
}

// bind opens the listener, at the address it had before if it was open before.
func (l *bound) bind() (server.Listener, error) {
	out := server.Listener{Name: l.name, TLS: l.tls, SASL: l.sasl}
	if l.spec.Addr == "" {
		l.memory = network.NewMemoryListener(l.addr)
		out.Listener = l.memory
	} else {
		tcp, err := net.Listen("tcp", l.addr)
		if err != nil {
			return out, fmt.Errorf("listener %s: %w", l.name, err)
		}
		l.addr = tcp.Addr().String()
		out.Listener = tcp
	}
	l.advertised = l.spec.Advertised
	if l.advertised == "" {
		l.advertised = l.addr
	}
	host, port, err := net.SplitHostPort(l.advertised)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	if err != nil || notNumber != nil {
		_ = out.Listener.Close()
		return out, fmt.Errorf("listener %s: advertised address %q: want HOST:PORT, with a port up to 65535", l.name, l.advertised)
	}
	l.host, l.port = host, int32(n)
	if ip := net.ParseIP(l.host); ip != nil && ip.IsUnspecified() {
		_ = out.Listener.Close()
		return out, fmt.Errorf("listener %s: clients cannot be told to connect to %s; bind to an address, or set Advertised", l.name, l.host)
	}
	out.Host, out.Port = l.host, l.port
	return out, nil
}

// Addrs returns where clients start: the address of the first listener.
func (k *Cluster) Addrs() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return []string{k.listeners[0].advertised}
}

// ListenerAddr returns the address of a listener by its name, empty when there is none.
func (k *Cluster) ListenerAddr(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.listeners {
		if l.name == name {
			return l.advertised
		}
	}
	return ""
}

// DialContext connects to an address of the cluster, as net.Dialer.DialContext would: in memory where the listener is,
// over TCP otherwise. TLS and SASL are the caller's. A stopped cluster refuses.
func (k *Cluster) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := begun(ctx); err != nil {
		return nil, err
	}
	k.mu.Lock()
	var memory interface {
		Dial(context.Context) (net.Conn, error)
	}
	for _, l := range k.listeners {
		if l.memory != nil && (l.advertised == addr || l.addr == addr) {
			memory = l.memory
		}
	}
	k.mu.Unlock()
	if memory != nil {
		return memory.Dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// listenerProperties are the server properties that say what the listeners are.
func listenerProperties(all []*bound) map[string]string {
	var listeners, protocols []string
	for _, l := range all {
		listeners = append(listeners, l.name+"://"+l.advertised)
		protocols = append(protocols, l.name+":"+l.protocol())
	}
	protocols = append(protocols, "CONTROLLER:PLAINTEXT")
	return map[string]string{
		"listeners":                      strings.Join(listeners, ","),
		"advertised.listeners":           strings.Join(listeners, ","),
		"listener.security.protocol.map": strings.Join(protocols, ","),
	}
}
