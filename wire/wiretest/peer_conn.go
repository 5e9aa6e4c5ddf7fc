package wiretest

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// verdict is an answer that is none of Kafka's.
type verdict struct {
	message.Response
	hangUp bool
	bytes  []byte
}

var (
	// NoAnswer leaves the request without an answer; the connection stays, and goes on to the next request.
	NoAnswer message.Response = &verdict{}
	// HangUp closes the connection instead of an answer.
	HangUp message.Response = &verdict{hangUp: true}
)

// Bytes writes bytes as they are instead of an answer; no length is put in front of them.
func Bytes(b []byte) message.Response { return &verdict{bytes: b} }

// maxRequest is the largest request a peer takes.
const maxRequest = 128 << 20

func (p *Peer) read(c *peerConn, requests chan<- *Request) {
	defer p.done.Done()
	defer close(requests)
	br := bufio.NewReader(c.server)
	for {
		frame, err := ReadFrame(br)
		if err != nil {
			return
		}
		r, err := parseRequest(frame)
		if err != nil {
			return // as a broker does with what it cannot read
		}
		r.Broker, r.Conn = c.broker, c.n
		requests <- r
	}
}

// ReadFrame reads one frame and gives it without its length.
func ReadFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || n > maxRequest {
		return nil, io.ErrUnexpectedEOF
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(r, frame)
	return frame, err
}

func parseRequest(frame []byte) (*Request, error) {
	rd := wire.NewReader(frame)
	h, err := wire.ReadRequestHeader(rd)
	if err != nil {
		return nil, err
	}
	r := &Request{Key: h.Key, Version: h.Version, CorrelationID: h.CorrelationID, Raw: frame}
	if h.ClientID != nil {
		r.ClientID = *h.ClientID
	}
	if r.Body = message.NewRequest(r.Key); r.Body == nil {
		return nil, wire.ErrMalformed
	}
	return r, r.Body.ReadFrom(rd, r.Version)
}

func (p *Peer) answer(c *peerConn, requests <-chan *Request) {
	defer p.done.Done()
	defer p.gone(c)
	for r := range requests {
		p.mu.Lock()
		p.log = append(p.log, *r)
		p.mu.Unlock()
		var resp message.Response
		if p.script != nil {
			resp = p.script(r)
		}
		if resp == nil {
			resp = p.byDefault(r)
		}
		if resp == nil {
			continue
		}
		if !p.send(c, r, resp) {
			break
		}
	}
	c.server.Close()
	for range requests { // let the reader end
	}
}

func (p *Peer) gone(c *peerConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c.server)
}

// send writes an answer; false ends the connection.
func (p *Peer) send(c *peerConn, r *Request, resp message.Response) bool {
	if v, ok := resp.(*verdict); ok {
		if len(v.bytes) > 0 {
			if _, err := c.server.Write(v.bytes); err != nil {
				return false
			}
		}
		return !v.hangUp
	}
	frame, err := AppendResponse(nil, r, resp)
	if err != nil {
		panic("wiretest: the script's answer cannot be encoded: " + err.Error())
	}
	_, err = c.server.Write(frame)
	return err == nil
}

// AppendResponse appends the whole frame of an answer to a request.
func AppendResponse(dst []byte, r *Request, resp message.Response) ([]byte, error) {
	start := len(dst)
	version := r.Version
	if v, ok := resp.(*message.ApiVersionsResponse); ok && errcode.Code(v.ErrorCode) == errcode.UnsupportedVersion {
		version = 0 // KIP-511
	}
	dst = append(dst, 0, 0, 0, 0)
	dst = wire.AppendResponseHeader(dst, r.Key, r.Version, r.CorrelationID)
	dst, err := resp.AppendTo(dst, version)
	if err != nil {
		return dst[:start], err
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, nil
}

// byDefault answers what a client needs before anything else; nil for everything else.
func (p *Peer) byDefault(r *Request) message.Response {
	switch req := r.Body.(type) {
	case *message.ApiVersionsRequest:
		p.mu.Lock()
		defer p.mu.Unlock()
		resp := new(message.ApiVersionsResponse)
		resp.SetDefaults()
		resp.ApiKeys = p.versions
		return resp
	case *message.MetadataRequest:
		return p.Metadata(req)
	}
	return nil
}

// Metadata is the answer the peer gives by itself; a script may take it and change it.
func (p *Peer) Metadata(req *message.MetadataRequest) *message.MetadataResponse {
	p.mu.Lock()
	defer p.mu.Unlock()
	resp := new(message.MetadataResponse)
	resp.SetDefaults()
	id := p.clusterID
	resp.ClusterId = &id
	for _, id := range p.ids() {
		b := p.brokers[id]
		if b.stopped {
			continue
		}
		host, port := splitAddr(b.addr)
		resp.Brokers = append(resp.Brokers, message.MetadataResponseBroker{NodeId: id, Host: host, Port: port})
		if resp.ControllerId < 0 {
			resp.ControllerId = id
		}
	}
	if req.Topics == nil {
		resp.Topics = p.topics
		return resp
	}
	for _, want := range req.Topics {
		resp.Topics = append(resp.Topics, p.topicFor(want))
	}
	return resp
}

func (p *Peer) topicFor(want message.MetadataRequestTopic) message.MetadataResponseTopic {
	for _, t := range p.topics {
		if want.Name != nil && *t.Name == *want.Name || want.Name == nil && t.TopicId == want.TopicId {
			return t
		}
	}
	name := ""
	if want.Name != nil {
		name = *want.Name
	}
	t := metadataTopic(name)
	t.ErrorCode = int16(errcode.UnknownTopicOrPartition)
	return t
}
