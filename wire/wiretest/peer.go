package wiretest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Request is what a script gets to see of a request.
type Request struct {
	Broker        int32 // which of the peer's brokers got it
	Conn          int   // number of the connection, over all brokers, from 1
	Key           wire.Key
	Version       int16
	CorrelationID int32
	ClientID      string
	Body          message.Request
	Raw           []byte // the whole frame without its length
}

// Script answers requests. It is called for one request of a connection at a time, as a broker does, but for
// several connections at once. nil leaves the answer to the peer, which answers ApiVersions and Metadata and
// nothing else; see also NoAnswer, HangUp and Bytes. It may block to be slow.
type Script func(*Request) message.Response

// Peer stands for a cluster whose answers a script gives. Its methods may be called from any goroutine.
type Peer struct {
	script Script

	mu        sync.Mutex
	closed    bool
	clusterID string
	brokers   map[int32]*peerBroker
	topics    []message.MetadataResponseTopic
	versions  []message.ApiVersion
	conns     map[net.Conn]*peerConn
	nextConn  int
	log       []Request
	done      sync.WaitGroup
}

type peerBroker struct {
	id      int32
	addr    string
	stopped bool
}

type peerConn struct {
	n      int
	broker int32
	server net.Conn
}

// New is a peer of one broker, id 1.
func New(script func(req message.Request, version int16) message.Response) *Peer {
	return NewCluster(1, func(r *Request) message.Response {
		if script == nil {
			return nil
		}
		return script(r.Body, r.Version)
	})
}

// NewCluster is a peer of brokers 1 to n at "broker-1:9092" and so on.
func NewCluster(n int, script Script) *Peer {
	p := &Peer{script: script, clusterID: "wiretest-cluster-000000", brokers: make(map[int32]*peerBroker), conns: make(map[net.Conn]*peerConn)}
	for id := int32(1); id <= int32(n); id++ {
		p.brokers[id] = &peerBroker{id: id, addr: fmt.Sprintf("broker-%d:9092", id)}
	}
	for k := wire.Key(0); k < wire.Keys; k++ {
		if least, most, ok := wire.BrokerVersions(k); ok {
			p.versions = append(p.versions, message.ApiVersion{ApiKey: int16(k), MinVersion: least, MaxVersion: most})
		}
	}
	return p
}

// Addrs are the addresses of the brokers, by id.
func (p *Peer) Addrs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, id := range p.ids() {
		out = append(out, p.brokers[id].addr)
	}
	return out
}

func (p *Peer) ids() []int32 {
	var ids []int32
	for id := range p.brokers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// DialContext connects to a broker by its address. A stopped broker, and an address nobody has, refuse.
func (p *Peer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.ids() {
		if b := p.brokers[id]; b.addr == addr && !b.stopped && !p.closed {
			client, server := net.Pipe()
			p.serve(b.id, server)
			return client, nil
		}
	}
	return nil, &net.OpError{Op: "dial", Net: network, Addr: nameAddr(addr), Err: syscall.ECONNREFUSED}
}

// Serve answers requests on a connection that came from elsewhere (a real listener, a TLS server) as the broker
// would. It returns at once.
func (p *Peer) Serve(broker int32, nc net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serve(broker, nc)
}

func (p *Peer) serve(broker int32, nc net.Conn) {
	p.nextConn++
	c := &peerConn{n: p.nextConn, broker: broker, server: nc}
	p.conns[nc] = c
	requests := make(chan *Request, 128)
	p.done.Add(2)
	go p.read(c, requests)   // ends with the connection
	go p.answer(c, requests) // ends when the reader has
}

type nameAddr string

func (nameAddr) Network() string  { return "tcp" }
func (a nameAddr) String() string { return string(a) }

// SetCluster changes the id that metadata tells.
func (p *Peer) SetCluster(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clusterID = id
}

// SetVersions changes what ApiVersions tells of one request; most below least takes it away.
func (p *Peer) SetVersions(k wire.Key, least, most int16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versions = slices.DeleteFunc(slices.Clone(p.versions), func(v message.ApiVersion) bool { return v.ApiKey == int16(k) })
	if most >= least {
		p.versions = append(p.versions, message.ApiVersion{ApiKey: int16(k), MinVersion: least, MaxVersion: most})
	}
}

// SetTopic makes metadata tell of a topic whose partitions 0, 1, ... have the given leaders (-1 for none) in the
// given epoch. Its id follows from its name.
func (p *Peer) SetTopic(name string, epoch int32, leaders ...int32) {
	t := metadataTopic(name)
	t.TopicId = TopicID(name)
	for i, leader := range leaders {
		var mp message.MetadataResponsePartition
		mp.SetDefaults()
		mp.PartitionIndex, mp.LeaderId, mp.LeaderEpoch = int32(i), leader, epoch
		mp.ReplicaNodes, mp.IsrNodes = []int32{leader}, []int32{leader}
		if leader < 0 {
			mp.ErrorCode, mp.ReplicaNodes, mp.IsrNodes = 5, nil, nil // LEADER_NOT_AVAILABLE
		}
		t.Partitions = append(t.Partitions, mp)
	}
	p.RemoveTopic(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.topics = append(slices.Clone(p.topics), t)
}

// metadataTopic begins with the defaults: versions before 8 have no authorized operations and cannot say any other.
func metadataTopic(name string) (t message.MetadataResponseTopic) {
	t.SetDefaults()
	t.Name = &name
	return t
}

// RemoveTopic makes metadata forget a topic.
func (p *Peer) RemoveTopic(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.topics = slices.DeleteFunc(slices.Clone(p.topics), func(t message.MetadataResponseTopic) bool { return *t.Name == name })
}

// TopicID is the id SetTopic gives to a topic.
func TopicID(name string) (id wire.UUID) {
	copy(id[:], name)
	id[15] ^= byte(len(name)) | 0x40
	return id
}

// Stop ends a broker's connections and refuses new ones.
func (p *Peer) Stop(broker int32) {
	p.mu.Lock()
	if b := p.brokers[broker]; b != nil {
		b.stopped = true
	}
	p.mu.Unlock()
	p.Drop(broker)
}

// Start undoes Stop.
func (p *Peer) Start(broker int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.brokers[broker]; b != nil {
		b.stopped = false
	}
}

// Move gives a broker another address; connections it has stay.
func (p *Peer) Move(broker int32, addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.brokers[broker]; b != nil {
		b.addr = addr
	}
}

// Drop ends a broker's connections.
func (p *Peer) Drop(broker int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for nc, c := range p.conns {
		if c.broker == broker {
			nc.Close()
		}
	}
}

// Connections is how many connections are open to a broker, or to all with 0.
func (p *Peer) Connections(broker int32) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, c := range p.conns {
		if broker == 0 || c.broker == broker {
			n++
		}
	}
	return n
}

// Dialled is how many connections there have been.
func (p *Peer) Dialled() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nextConn
}

// Requests are the requests so far, in the order in which they were taken up. With keys, only those of these kinds.
func (p *Peer) Requests(keys ...wire.Key) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Request
	for _, r := range p.log {
		if len(keys) == 0 || slices.Contains(keys, r.Key) {
			out = append(out, r)
		}
	}
	return out
}

// Close ends all connections and waits for the peer's goroutines. A script that blocks has to be released before.
func (p *Peer) Close() {
	p.mu.Lock()
	p.closed = true
	for nc := range p.conns {
		nc.Close()
	}
	p.mu.Unlock()
	p.done.Wait()
}

func splitAddr(addr string) (host string, port int32) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, 0
	}
	n, _ := strconv.Atoi(text)
	return host, int32(n)
}
