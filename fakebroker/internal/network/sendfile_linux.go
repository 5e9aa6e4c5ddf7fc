package network

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// kernelSend sends r by sendfile(2) with an explicit offset, so that the file's own position is never used and many
// connections can send from one file. done is false when the kernel cannot do it and nothing was sent.
//
// The file's descriptor is held by Control for one call at a time: a segment that is closed meanwhile gives an error,
// never another file's bytes.
func (s *sender) kernelSend(r FileRegion) (done bool, err error) {
	from, err := r.Descriptor.SyscallConn()
	if err != nil {
		return false, nil
	}
	to, err := s.tcp.SyscallConn()
	if err != nil {
		return false, err
	}
	sent := false
	for r.N > 0 {
		s.deadline()
		var n int
		var failed, control error
		err := to.Write(func(socket uintptr) bool {
			pos := r.Pos
			control = from.Control(func(fd uintptr) {
				n, failed = syscall.Sendfile(int(socket), int(fd), &pos, min(r.N, writeStep))
			})
			return failed != syscall.EAGAIN
		})
		switch {
		case err != nil:
			return true, err
		case control != nil:
			return true, fmt.Errorf("send stored bytes: %w", control)
		case failed == syscall.EINTR:
			continue
		case failed != nil && !sent && (errors.Is(failed, syscall.EINVAL) || errors.Is(failed, syscall.ENOSYS)):
			return false, nil
		case failed != nil:
			return true, fmt.Errorf("sendfile: %w", failed)
		case n == 0:
			return true, fmt.Errorf("send stored bytes at %d: %w", r.Pos, io.ErrUnexpectedEOF)
		}
		sent = true
		r.Pos += int64(n)
		if r.N -= n; r.N > 0 {
			s.now = time.Now()
		}
	}
	return true, nil
}
