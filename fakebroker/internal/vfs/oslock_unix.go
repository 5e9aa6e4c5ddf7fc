//go:build unix && !linux && !solaris && !aix

package vfs

import (
	"io"
	"os"
	"syscall"
)

// lockFile takes a record lock, for Apache Kafka, and a BSD lock, for another
// holder in this process, without waiting. A weakness: an attempt to take a
// lock that this process has makes it lose the record lock when it is closed.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	whole := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &whole)
}
