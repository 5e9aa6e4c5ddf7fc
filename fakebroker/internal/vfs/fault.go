package vfs

import (
	"io"
	"sync/atomic"
)

// OpKind names a call of FS or File.
type OpKind uint8

// The calls that FaultFS asks about and CountFS counts.
const (
	OpOpen OpKind = iota
	OpRename
	OpRemove // Remove and RemoveAll
	OpList   // List and Stat
	OpMkdir
	OpSyncDir
	OpLock
	OpRead
	OpAppend
	OpWriteAt
	OpTruncate
	OpSync
	numOps
)

var opNames = [numOps]string{"open", "rename", "remove", "list", "mkdir", "syncdir", "lock", "read", "append", "writeat", "truncate", "sync"}

// String returns the name of the call, in lower case.
func (k OpKind) String() string { return opNames[k] }

// Op is one call about to be made.
type Op struct {
	Kind OpKind
	Name string // of the file; for a rename the old name
	Off  int64  // of reads and writes; the present size for an append
	Len  int    // bytes to read or write
}

// Fault decides about a call before it is made. It may sleep (a slow disk);
// returning nil lets the call happen, an error replaces it. See Torn.
type Fault func(Op) error

// Torn is an error a Fault may return for an append: the first Kept bytes are
// written, then Err is returned.
type Torn struct {
	Kept int
	Err  error
}

// Error implements error.
func (t *Torn) Error() string { return t.Err.Error() }

// Unwrap gives Err to errors.Is.
func (t *Torn) Unwrap() error { return t.Err }

// FaultFS asks a Fault before each call on another FS. All methods may be
// called from any goroutine.
type FaultFS struct {
	under FS
	fault atomic.Pointer[Fault]
}

// NewFault wraps an FS; no fault is set.
func NewFault(under FS) *FaultFS { return &FaultFS{under: under} }

// Set replaces the fault; nil lets everything pass. It takes effect on the
// next call, also on files that are open.
func (f *FaultFS) Set(fault Fault) {
	if fault == nil {
		f.fault.Store(nil)
		return
	}
	f.fault.Store(&fault)
}

func (f *FaultFS) ask(op Op) error {
	if p := f.fault.Load(); p != nil {
		return (*p)(op)
	}
	return nil
}

// Open implements FS.
func (f *FaultFS) Open(name string, flag Flag) (File, error) {
	if err := f.ask(Op{Kind: OpOpen, Name: name}); err != nil {
		return nil, err
	}
	file, err := f.under.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, fs: f, name: name}, nil
}

// Rename implements FS.
func (f *FaultFS) Rename(oldName, newName string) error {
	if err := f.ask(Op{Kind: OpRename, Name: oldName}); err != nil {
		return err
	}
	return f.under.Rename(oldName, newName)
}

// Remove implements FS.
func (f *FaultFS) Remove(name string) error {
	if err := f.ask(Op{Kind: OpRemove, Name: name}); err != nil {
		return err
	}
	return f.under.Remove(name)
}

// RemoveAll implements FS.
func (f *FaultFS) RemoveAll(name string) error {
	if err := f.ask(Op{Kind: OpRemove, Name: name}); err != nil {
		return err
	}
	return f.under.RemoveAll(name)
}

// List implements FS.
func (f *FaultFS) List(dir string) ([]Info, error) {
	if err := f.ask(Op{Kind: OpList, Name: dir}); err != nil {
		return nil, err
	}
	return f.under.List(dir)
}

// Stat implements FS.
func (f *FaultFS) Stat(name string) (Info, error) {
	if err := f.ask(Op{Kind: OpList, Name: name}); err != nil {
		return Info{}, err
	}
	return f.under.Stat(name)
}

// MkdirAll implements FS.
func (f *FaultFS) MkdirAll(dir string) error {
	if err := f.ask(Op{Kind: OpMkdir, Name: dir}); err != nil {
		return err
	}
	return f.under.MkdirAll(dir)
}

// SyncDir implements FS.
func (f *FaultFS) SyncDir(dir string) error {
	if err := f.ask(Op{Kind: OpSyncDir, Name: dir}); err != nil {
		return err
	}
	return f.under.SyncDir(dir)
}

// Lock implements FS.
func (f *FaultFS) Lock(name string) (io.Closer, error) {
	if err := f.ask(Op{Kind: OpLock, Name: name}); err != nil {
		return nil, err
	}
	return f.under.Lock(name)
}

// faultFile keeps the name under which it was opened; a rename does not
// change what the Fault is told.
type faultFile struct {
	File
	fs   *FaultFS
	name string
}

// passThrough lets a reader reach the bytes without asking while no fault is
// set; with one, reads must come through ReadAt, where it is asked.
func (f *faultFile) passThrough() File {
	if f.fs.fault.Load() != nil {
		return nil
	}
	return f.File
}

func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.ask(Op{Kind: OpRead, Name: f.name, Off: off, Len: len(p)}); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *faultFile) Append(p []byte) (int, error) {
	err := f.fs.ask(Op{Kind: OpAppend, Name: f.name, Off: f.File.Size(), Len: len(p)})
	if torn, ok := err.(*Torn); ok {
		n, _ := f.File.Append(p[:min(torn.Kept, len(p))])
		return n, torn
	}
	if err != nil {
		return 0, err
	}
	return f.File.Append(p)
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.fs.ask(Op{Kind: OpWriteAt, Name: f.name, Off: off, Len: len(p)}); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *faultFile) Truncate(size int64) error {
	if err := f.fs.ask(Op{Kind: OpTruncate, Name: f.name, Off: size}); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultFile) Sync() error {
	if err := f.fs.ask(Op{Kind: OpSync, Name: f.name}); err != nil {
		return err
	}
	return f.File.Sync()
}
