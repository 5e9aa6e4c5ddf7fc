package fakebroker_test

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wirejson"
)

// An exchange is one request that a fresh Apache Kafka 4.4.0 broker was sent, and what it answered.
type exchange struct {
	N           int
	Conn        int
	Part        string
	Case        string
	RequestHex  string
	ResponseHex string
	Closed      bool // the broker closed the connection
	Timeout     bool // no answer within 6 s
	NoAnswer    bool // acks=0
}

// replayed are the parts that this broker has all APIs of; of the others the cases that follow.
var replayed = map[string]bool{
	"apiversions": true, "topics": true, "metadata": true, "produce": true, "idempotent": true, "listoffsets": true,
	"fetch": true, "coordinators": true, "classic-group": true, "offsets": true,
	"consumer-group": true, "configs": true, "malformed": true, "transactions": true,
}

var replayedCases = map[string]bool{
	"handshake on plaintext": true, "authenticate on plaintext": true, "reassignments": true,
}

// notYet are cases of the replayed parts that need a coordinator which this broker does not have, and one where Apache
// Kafka asked the client to come back while it made the topic: we answer when it is made.
func notYet(e *exchange) bool {
	return e.Part == "coordinators" && e.Case == "transaction" || strings.HasPrefix(e.Case, "share ") && e.Part == "consumer-group"
}

// recordedAt is when the recording was made: the batches in it have timestamps of that time, and brokers refuse
// timestamps that are too far from theirs.
var recordedAt = time.UnixMilli(1_795_996_760_000)

// TestExchangesOfApacheKafka replays recorded exchanges against this broker and requires the same answers, but for the
// made-up values that mapping.go lists. The recording's clock rules, in a synctest bubble.
func TestExchangesOfApacheKafka(t *testing.T) {
	all := readExchanges(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(recordedAt))
		k := fakebroker.Start(t)
		r := &replay{t: t, k: k, conns: make(map[int]net.Conn), m: newMapping()}
		for i := range all {
			e := &all[i]
			if !replayed[e.Part] && !replayedCases[e.Case] || notYet(e) {
				continue
			}
			r.one(e)
			synctest.Wait() // what goes on after the answer: Apache Kafka was given time, too
		}
		t.Logf("%d exchanges replayed, %d differ", r.count, r.failed)
		for _, c := range r.conns {
			_ = c.Close()
		}
	})
}

func readExchanges(t *testing.T) []exchange {
	f, err := os.Open("testdata/exchanges.jsonl.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var all []exchange
	for lines := bufio.NewReader(z); ; {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			require.Greater(t, len(all), 500)
			return all
		}
		require.NoError(t, err)
		var e exchange
		require.NoError(t, json.Unmarshal(line, &e))
		all = append(all, e)
	}
}

type replay struct {
	t             *testing.T
	k             *fakebroker.Cluster
	conns         map[int]net.Conn
	m             *mapping
	count, failed int
}

func (r *replay) one(e *exchange) {
	r.count++
	raw, err := hex.DecodeString(e.RequestHex)
	require.NoError(r.t, err)
	conn := r.conns[e.Conn]
	if conn == nil {
		conn, err = r.k.DialContext(r.t.Context(), "tcp", r.k.Addrs()[0])
		require.NoError(r.t, err)
		r.conns[e.Conn] = conn
	}
	key, version, request := parseRequest(raw)
	if request != nil {
		raw = r.m.request(r.t, raw, key, version, request)
	}
	_, err = conn.Write(raw)
	require.NoError(r.t, err)
	if e.NoAnswer {
		synctest.Wait()
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(6 * time.Second))
	answer, err := readAnswer(conn)
	var timeout net.Error
	switch {
	case e.Closed && err == nil:
		r.differs(e, "Kafka closed the connection, we answered %x", answer)
	case e.Closed:
		if err != io.EOF {
			r.differs(e, "Kafka closed the connection, we: %v", err)
		}
	case e.Timeout:
		if !asNet(err, &timeout) {
			r.differs(e, "Kafka did not answer, we: %x %v", answer, err)
		}
	case err != nil:
		r.differs(e, "Kafka answered, we: %v", err)
		delete(r.conns, e.Conn)
	default:
		r.compare(e, key, version, answer)
	}
}

func asNet(err error, to *net.Error) bool {
	ne, ok := err.(net.Error)
	*to = ne
	return ok && ne.Timeout()
}

func readAnswer(c net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, int(size[0])<<24|int(size[1])<<16|int(size[2])<<8|int(size[3]))
	_, err := io.ReadFull(c, b)
	return b, err
}

// parseRequest returns nil for what is no request of an API that exists.
func parseRequest(raw []byte) (wire.Key, int16, message.Request) {
	if len(raw) < 8 {
		return -1, 0, nil
	}
	rd := wire.NewReader(raw[4:])
	h, err := wire.ReadRequestHeader(rd)
	if err != nil || !h.Key.Valid() {
		return -1, 0, nil
	}
	req := message.NewRequest(h.Key)
	if req.ReadFrom(rd, h.Version) != nil || rd.Remaining() != 0 {
		return h.Key, h.Version, nil
	}
	return h.Key, h.Version, req
}

func (r *replay) compare(e *exchange, key wire.Key, version int16, answer []byte) {
	recorded, err := hex.DecodeString(e.ResponseHex)
	require.NoError(r.t, err)
	if low, high, _ := wire.Versions(key); version < low || version > high {
		version = 0 // ApiVersions from the future
	}
	want := r.tree(e, key, version, recorded[4:])
	got := r.tree(e, key, version, answer)
	if want == nil || got == nil {
		return
	}
	if diffs := r.m.compare(key, want, got); len(diffs) > 0 {
		r.differs(e, "%s", strings.Join(diffs, "\n    "))
	}
}

// tree is a response as JSON values.
func (r *replay) tree(e *exchange, key wire.Key, version int16, frame []byte) map[string]any {
	rd := wire.NewReader(frame)
	_, err := wire.ReadResponseHeader(rd, key, version)
	resp := message.NewResponse(key)
	if err == nil {
		err = resp.ReadFrom(rd, version)
	}
	if err != nil || rd.Remaining() != 0 {
		r.differs(e, "response cannot be read: %v, %d bytes left: %x", err, rd.Remaining(), frame)
		return nil
	}
	return asTree(r.t, resp, version)
}

func asTree(t *testing.T, m any, version int16) map[string]any {
	text, err := wirejson.Append(nil, m, version)
	require.NoError(t, err)
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var tree map[string]any
	require.NoError(t, d.Decode(&tree))
	return tree
}

func (r *replay) differs(e *exchange, format string, args ...any) {
	r.failed++
	r.t.Errorf("exchange %d, %s, %q:\n    "+format, append([]any{e.N, e.Part, e.Case}, args...)...)
}
