//go:build unix && !solaris && !aix

package vfs

import (
	"io"
	"os"
	"syscall"
)

// lockFile takes both locks of OSFS.Lock without waiting.
func lockFile(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	whole := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &whole)
}
