package network

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"syscall"
	"time"
)

// A FileRegion is N stored bytes of an open file, from Pos.
type FileRegion struct {
	File io.ReaderAt
	Pos  int64
	N    int
	// Descriptor, when set, is the same file for the kernel: sendfile is used where the connection is plain TCP.
	Descriptor syscall.Conn
}

// A Releaser is an Answer that holds something, an open file for instance. Release runs once when the answer was written or
// could not be: on the connection's goroutine, or on that of whoever answers a connection that has ended.
type Releaser interface{ Release() }

// keepOutput is how large an encoding buffer a connection keeps between answers.
const keepOutput = 64 << 10

// writeStep is how much is written under one write deadline: a peer that reads slowly is served, one that does not read
// is not.
const writeStep = 1 << 20

// A sender writes answers to one connection. Only the connection's goroutine uses it.
type sender struct {
	conn    net.Conn
	tcp     *net.TCPConn // set when conn is plain TCP
	memory  *MemoryConn  // set when conn is in memory
	timeout time.Duration
	writeBy time.Time
	now     time.Time // of the answer that is being sent; moved on when sending takes long
	buf     []byte
	vector  [][]byte
	copyBuf []byte
}

func newSender(conn net.Conn, timeout time.Duration) sender {
	s := sender{conn: conn, timeout: timeout}
	s.tcp, _ = conn.(*net.TCPConn)
	s.memory, _ = conn.(*MemoryConn)
	return s
}

// send encodes and writes one answer as a frame and returns its size.
func (s *sender) send(a Answer, now time.Time) (int, error) {
	s.now = now
	if held, ok := a.(Releaser); ok {
		defer held.Release()
	}
	buf, splices, err := a.AppendTo(append(s.buf[:0], 0, 0, 0, 0))
	if err != nil {
		return 0, fmt.Errorf("encode answer: %w", err)
	}
	total := len(buf)
	for _, sp := range splices {
		total += sp.File.N
		for _, b := range sp.Bytes {
			total += len(b)
		}
	}
	if total-4 > math.MaxInt32 {
		return 0, fmt.Errorf("answer of %d bytes does not fit a frame", total)
	}
	binary.BigEndian.PutUint32(buf, uint32(total-4))
	err = s.write(buf, splices)
	clear(s.vector)
	s.vector = s.vector[:0]
	if s.buf = buf; cap(buf) > keepOutput {
		s.buf = nil
	}
	return total, err
}

// write gathers buf and the spliced bytes into vectored writes; a file region ends one.
func (s *sender) write(buf []byte, splices []Splice) error {
	at := 0
	s.vector = s.vector[:0]
	for _, sp := range splices {
		if sp.At > at {
			s.vector = append(s.vector, buf[at:sp.At])
			at = sp.At
		}
		s.vector = append(s.vector, sp.Bytes...)
		if sp.File.N > 0 {
			if err := s.flush(); err != nil {
				return err
			}
			if err := s.sendFile(sp.File); err != nil {
				return err
			}
		}
	}
	if at < len(buf) {
		s.vector = append(s.vector, buf[at:])
	}
	return s.flush()
}

// flush writes the vector, at most about writeStep bytes under one deadline.
func (s *sender) flush() error {
	rest := s.vector
	for len(rest) > 0 {
		n, size := 0, 0
		for n < len(rest) && (n == 0 || size+len(rest[n]) <= writeStep) {
			size += len(rest[n])
			n++
		}
		if err := s.writeVector(rest[:n]); err != nil {
			return err
		}
		if rest = rest[n:]; len(rest) > 0 {
			s.now = time.Now()
		}
	}
	s.vector = s.vector[:0]
	return nil
}

func (s *sender) writeVector(v [][]byte) error {
	s.deadline()
	var err error
	switch {
	case s.memory != nil:
		_, err = s.memory.WriteBuffers(v)
	case len(v) == 1:
		_, err = s.conn.Write(v[0])
	case s.tcp != nil:
		bufs := net.Buffers(v)
		_, err = bufs.WriteTo(s.tcp)
	default:
		for i := 0; i < len(v) && err == nil; i++ {
			_, err = s.conn.Write(v[i])
		}
	}
	return err
}

// deadline renews the write deadline when half of it has gone.
func (s *sender) deadline() {
	if s.writeBy.Sub(s.now) < s.timeout {
		s.writeBy = s.now.Add(2 * s.timeout)
		_ = s.conn.SetWriteDeadline(s.writeBy)
	}
}

// sendFile sends a file region: from the page cache to the socket where the kernel can, by copying otherwise.
func (s *sender) sendFile(r FileRegion) error {
	if s.tcp != nil && r.Descriptor != nil {
		done, err := s.kernelSend(r)
		if done || err != nil {
			return err
		}
	}
	if s.copyBuf == nil {
		s.copyBuf = make([]byte, keepOutput)
	}
	for r.N > 0 {
		n, err := r.File.ReadAt(s.copyBuf[:min(len(s.copyBuf), r.N)], r.Pos)
		if n == 0 {
			return fmt.Errorf("read stored bytes at %d for an answer: %w", r.Pos, err)
		}
		if err := s.writeVector([][]byte{s.copyBuf[:n]}); err != nil {
			return err
		}
		r.Pos += int64(n)
		r.N -= n
		s.now = time.Now()
	}
	return nil
}
