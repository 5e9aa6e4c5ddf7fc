package wiretest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// RequestFrame is the whole frame of a request, its length included.
func RequestFrame(tb testing.TB, version int16, correlationID int32, clientID string, req message.Request) []byte {
	tb.Helper()
	frame := wire.AppendRequestHeader(make([]byte, 4), req.Key(), version, correlationID, &clientID)
	frame, err := req.AppendTo(frame, version)
	if err != nil {
		tb.Fatalf("encode %v version %d: %v", req.Key(), version, err)
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// ResponseFrame is the whole frame of an answer, its length included.
func ResponseFrame(tb testing.TB, version int16, correlationID int32, resp message.Response) []byte {
	tb.Helper()
	frame, err := AppendResponse(nil, &Request{Key: resp.Key(), Version: version, CorrelationID: correlationID}, resp)
	if err != nil {
		tb.Fatalf("encode answer to %v version %d: %v", resp.Key(), version, err)
	}
	return frame
}

// Golden compares bytes with a file of hexadecimal digits under testdata, and fails with both dumps when they
// differ. With the environment variable OTTLA_UPDATE set it writes the file instead.
func Golden(tb testing.TB, file string, got []byte) {
	tb.Helper()
	path := filepath.Join("testdata", file)
	if os.Getenv("OTTLA_UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(hexLines(got)), 0o644); err != nil {
			tb.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("%v (OTTLA_UPDATE=1 writes it)", err)
	}
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	if !bytes.Equal(want, got) {
		tb.Fatalf("%s\nwant:\n%sgot:\n%s", path, hex.Dump(want), hex.Dump(got))
	}
}

// hexLines writes 32 bytes a line in groups of four.
func hexLines(b []byte) string {
	var out strings.Builder
	for i := range b {
		switch {
		case i > 0 && i%32 == 0:
			out.WriteByte('\n')
		case i > 0 && i%4 == 0:
			out.WriteByte(' ')
		}
		out.WriteString(hex.EncodeToString(b[i : i+1]))
	}
	out.WriteByte('\n')
	return out.String()
}
