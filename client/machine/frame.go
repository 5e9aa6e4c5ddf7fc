package machine

import (
	"encoding/binary"
	"fmt"
)

// Stranger is what speaks on a connection when the first bytes are not a Kafka frame's.
type Stranger uint8

// What the first four bytes can give away.
const (
	Unknown      Stranger = iota
	TLSAlert              // 0x15 0x03: a TLS alert, as length 352,518,912 and up (KIP-498)
	TLSHandshake          // 0x16 0x03
	HTTP                  // "HTTP", as length 1,213,486,160
	SSH                   // "SSH-"
)

// FrameError is a length in front of a frame that cannot be one.
type FrameError struct {
	Length   int32
	Limit    int
	Stranger Stranger
}

// Error says what came instead of an answer.
func (e *FrameError) Error() string {
	switch e.Stranger {
	case TLSAlert:
		return fmt.Sprintf("a TLS alert came instead of a Kafka answer (read as length %d)", e.Length)
	case TLSHandshake:
		return fmt.Sprintf("a TLS handshake came instead of a Kafka answer (read as length %d)", e.Length)
	case HTTP:
		return fmt.Sprintf("an HTTP answer came instead of a Kafka answer (read as length %d)", e.Length)
	case SSH:
		return fmt.Sprintf("an SSH greeting came instead of a Kafka answer (read as length %d)", e.Length)
	}
	if e.Length < 4 {
		return fmt.Sprintf("answer announces %d bytes, the least possible is 4", e.Length)
	}
	return fmt.Sprintf("answer announces %d bytes, the limit is %d (Config.MaxResponseBytes)", e.Length, e.Limit)
}

// FrameLength reads the four bytes in front of a frame. It looks for strangers first, so that a limit of more
// than 352 MB does not hide a TLS alert.
func FrameLength(b []byte, limit int) (int, error) {
	n := int32(binary.BigEndian.Uint32(b))
	stranger := Unknown
	switch {
	case b[0] == 0x15 && b[1] == 3:
		stranger = TLSAlert
	case b[0] == 0x16 && b[1] == 3:
		stranger = TLSHandshake
	case string(b[:4]) == "HTTP":
		stranger = HTTP
	case string(b[:4]) == "SSH-":
		stranger = SSH
	}
	if stranger != Unknown || n < 4 || int64(n) > int64(limit) {
		return 0, &FrameError{Length: n, Limit: limit, Stranger: stranger}
	}
	return int(n), nil
}

// FirstChunk is the most that is read of a frame before its buffer grows beyond what has arrived.
const FirstChunk = 64 << 10

// NextSize says how large the buffer of a frame may become, so that memory follows bytes that have come and not
// bytes that were announced: up to FirstChunk at once, and then four times what has arrived. trusted is a size
// the caller has reason to expect (it asked for as much, or has had as much on this connection): up to it the
// buffer is made in one piece as soon as the first chunk is there.
func NextSize(arrived, total, trusted int) int {
	switch {
	case total <= FirstChunk:
		return total
	case arrived < FirstChunk:
		return FirstChunk
	case total <= trusted:
		return total
	}
	return min(total, max(4*arrived, FirstChunk))
}
