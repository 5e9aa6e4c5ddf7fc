package vfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"
)

// Errors that every FS returns (wrapped; use errors.Is).
var (
	ErrNotExist = fs.ErrNotExist // no such file or folder
	ErrExist    = fs.ErrExist    // Exclusive, and the name is taken
	ErrClosed   = fs.ErrClosed   // the File was closed
	ErrLocked   = errors.New("vfs: locked by another process")
)

// Flag says how Open opens.
type Flag uint8

// Flags of Open; they may be or-ed together.
const (
	ReadOnly  Flag = 0
	ReadWrite Flag = 1 << iota
	Create         // implies ReadWrite: make the file when it is not there
	Exclusive      // with Create: fail with ErrExist when it is there
	Truncated      // with ReadWrite: drop the old content
)

// Info describes one entry of a folder.
type Info struct {
	Name    string // last element of the path
	Size    int64  // bytes; 0 for a folder
	Dir     bool
	ModTime time.Time // of the last write; MemFS keeps none for folders
}

// FS is a file system. Names are slash or OS separated paths, absolute or
// relative to the process (OSFS) or the root (MemFS). All methods may be
// called from several goroutines at once. None of them is durable before
// SyncDir of the folder concerned.
type FS interface {
	// Open opens a file. Its folder must exist.
	Open(name string, flag Flag) (File, error)
	// Rename moves a file or a folder, atomically; an existing file at the
	// new name is replaced, an existing folder is an error. Open Files follow.
	Rename(oldName, newName string) error
	// Remove deletes a file or an empty folder. Open Files stay readable.
	Remove(name string) error
	// RemoveAll deletes a file, or a folder with all that is in it. A name
	// that is not there is no error.
	RemoveAll(name string) error
	// List returns what is in a folder, sorted by name.
	List(dir string) ([]Info, error)
	// Stat describes one file or folder.
	Stat(name string) (Info, error)
	// MkdirAll makes a folder and its parents; existing ones are no error.
	MkdirAll(dir string) error
	// SyncDir makes the names in a folder durable: files created in it,
	// renamed within, into or out of it, and removed from it.
	SyncDir(dir string) error
	// Lock takes an exclusive lock named by a file, which it makes if need
	// be; ErrLocked when somebody has it. It ends with Close or the process.
	Lock(name string) (io.Closer, error)
}

// File is an open file. ReadAt, Size and the zero-copy interfaces may be used
// from any goroutine at any time; the writing methods belong to one writer.
type File interface {
	// ReadAt is io.ReaderAt: io.EOF when fewer than len(p) bytes are there.
	ReadAt(p []byte, off int64) (int, error)
	// Append writes p at the end of the file: not durable before Sync. After
	// an error any prefix of p may have been written, and the writer should
	// Truncate back to the size it knows or give the file up.
	Append(p []byte) (int, error)
	// WriteAt overwrites, and extends when it ends behind the end of the file.
	WriteAt(p []byte, off int64) (int, error)
	// Truncate cuts, or extends with zeros. Slices handed out stay as they are.
	Truncate(size int64) error
	// Sync makes content and size durable. After an error what was written
	// since the last good Sync may be gone for good, also when a later Sync
	// succeeds: give the folder up.
	Sync() error
	// Size returns the present length in bytes; no system call.
	Size() int64
	// Close releases the handle. It does not sync.
	Close() error
}

// Slicer is a File whose bytes are in memory.
type Slicer interface {
	// Slices appends to dst slices that together are the bytes [off, off+n),
	// fewer when the file ends before. They never change and may be kept for
	// ever; nobody may write to them.
	Slices(dst [][]byte, off int64, n int) [][]byte
}

// Descriptor is a File behind an operating system's descriptor.
type Descriptor interface {
	// SyscallConn gives access to the descriptor for sendfile with an explicit
	// offset. The caller must not move the file's position or write.
	SyscallConn() (syscall.RawConn, error)
}

// AsSlicer returns f as a Slicer if its bytes are in memory, looking through
// wrappers that permit it.
func AsSlicer(f File) (Slicer, bool) {
	for {
		if s, ok := f.(Slicer); ok {
			return s, true
		}
		u, ok := f.(interface{ passThrough() File })
		if !ok {
			return nil, false
		}
		if f = u.passThrough(); f == nil {
			return nil, false
		}
	}
}

// AsDescriptor returns f as a Descriptor if there is one behind it, looking
// through wrappers that permit it.
func AsDescriptor(f File) (Descriptor, bool) {
	for {
		if d, ok := f.(Descriptor); ok {
			return d, true
		}
		u, ok := f.(interface{ passThrough() File })
		if !ok {
			return nil, false
		}
		if f = u.passThrough(); f == nil {
			return nil, false
		}
	}
}

// ReadFile returns the whole content of a file.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name, ReadOnly)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, f.Size())
	n, err := f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// WriteFile makes or replaces a file with the given content. It is neither
// atomic nor durable; see WriteFileAtomic.
func WriteFile(fsys FS, name string, data []byte) error {
	f, err := fsys.Open(name, Create|Truncated)
	if err != nil {
		return err
	}
	_, err = f.Append(data)
	return errors.Join(err, f.Close())
}

// WriteFileAtomic replaces a file so that after a crash at any point either
// the old content or the new one is there: write name.tmp, sync it, rename it,
// sync the folder. With durable false both syncs are left out: a killed
// process still sees one or the other, a power cut may see neither.
func WriteFileAtomic(fsys FS, name string, data []byte, durable bool) error {
	tmp := name + ".tmp"
	f, err := fsys.Open(tmp, Create|Truncated)
	if err != nil {
		return err
	}
	_, err = f.Append(data)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	if durable {
		return fsys.SyncDir(parent(name))
	}
	return nil
}
