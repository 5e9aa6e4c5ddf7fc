package vfs

import (
	"io"
	"os"
	"syscall"
)

// ofdSetLock is F_OFD_SETLK: a record lock that belongs to the open file and
// not to the process, so that it also keeps a second holder in this process
// out and does not end when that one closes its file. Against the locks of
// other processes, Java's too, it is a record lock like theirs.
const ofdSetLock = 37

// lockFile locks the whole file without waiting.
func lockFile(f *os.File) error {
	whole := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	return syscall.FcntlFlock(f.Fd(), ofdSetLock, &whole)
}
