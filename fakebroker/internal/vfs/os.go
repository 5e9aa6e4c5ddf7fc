package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
)

// OSFS is the real disk. The zero value is ready.
type OSFS struct{}

// parent returns the folder that holds name.
func parent(name string) string { return filepath.Dir(name) }

// Open implements FS.
func (OSFS) Open(name string, flag Flag) (File, error) {
	mode := os.O_RDONLY
	if flag&(ReadWrite|Create) != 0 {
		mode = os.O_RDWR
	}
	if flag&Create != 0 {
		mode |= os.O_CREATE
	}
	if flag&Exclusive != 0 {
		mode |= os.O_EXCL
	}
	if flag&Truncated != 0 {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(name, mode, 0o644)
	if err != nil {
		return nil, err
	}
	file := &osFile{f: f}
	if flag&(Truncated|Exclusive) == 0 {
		st, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		file.size.Store(st.Size())
	}
	return file, nil
}

// Rename implements FS.
func (OSFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

// Remove implements FS.
func (OSFS) Remove(name string) error { return os.Remove(name) }

// RemoveAll implements FS.
func (OSFS) RemoveAll(name string) error { return os.RemoveAll(name) }

// List implements FS.
func (OSFS) List(dir string) ([]Info, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		st, err := e.Info()
		if errors.Is(err, ErrNotExist) {
			continue // removed while we were listing
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, infoOf(st))
	}
	return infos, nil
}

// Stat implements FS.
func (OSFS) Stat(name string) (Info, error) {
	st, err := os.Stat(name)
	if err != nil {
		return Info{}, err
	}
	return infoOf(st), nil
}

func infoOf(st os.FileInfo) Info {
	info := Info{Name: st.Name(), Dir: st.IsDir(), ModTime: st.ModTime()}
	if !info.Dir {
		info.Size = st.Size()
	}
	return info
}

// MkdirAll implements FS.
func (OSFS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) }

// SyncDir implements FS.
func (OSFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock implements FS. The lock is one that Java's FileChannel.tryLock meets (a
// POSIX record lock), so that a running Apache Kafka and we keep each other out
// of a folder.
func (OSFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
			err = ErrLocked
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}

// osFile keeps its size, so that Append needs one system call (pwrite) and
// Size none.
type osFile struct {
	f    *os.File
	size atomic.Int64
}

func (o *osFile) ReadAt(p []byte, off int64) (int, error) { return o.f.ReadAt(p, off) }

func (o *osFile) Append(p []byte) (int, error) {
	n, err := o.f.WriteAt(p, o.size.Load())
	o.size.Add(int64(n))
	return n, err
}

func (o *osFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := o.f.WriteAt(p, off)
	if end := off + int64(n); end > o.size.Load() {
		o.size.Store(end)
	}
	return n, err
}

func (o *osFile) Truncate(size int64) error {
	if err := o.f.Truncate(size); err != nil {
		return err
	}
	o.size.Store(size)
	return nil
}

func (o *osFile) Sync() error  { return o.f.Sync() }
func (o *osFile) Size() int64  { return o.size.Load() }
func (o *osFile) Close() error { return o.f.Close() }

// SyscallConn implements Descriptor.
func (o *osFile) SyscallConn() (syscall.RawConn, error) { return o.f.SyscallConn() }
