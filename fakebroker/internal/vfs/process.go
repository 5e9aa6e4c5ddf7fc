package vfs

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrKilled is what a Process answers after Kill.
var ErrKilled = errors.New("vfs: the process was killed")

// Process is the hold that one process has on an FS, so that a process can be
// killed without a process of its own: from Kill on nothing that was asked
// through it changes the FS any more, and its files and locks are given back,
// as the operating system does after kill -9. What was written stays. All
// methods may be called from any goroutine.
//
// Writers hold gate for reading during a call, Kill holds it for writing: a
// call is either done when Kill returns or never happens.
type Process struct {
	under FS

	gate   sync.RWMutex
	killed bool

	mu   sync.Mutex // guards open; taken inside gate
	open map[*handle]struct{}
}

// NewProcess returns a hold on an FS. Several may be had, one after the other.
func NewProcess(under FS) *Process {
	return &Process{under: under, open: make(map[*handle]struct{})}
}

// Kill ends the process. atThatMoment runs when the calls under way are done
// and no other can begin; it must not use the FS. A second Kill does nothing.
func (p *Process) Kill(atThatMoment func()) {
	p.gate.Lock()
	defer p.gate.Unlock()
	if p.killed {
		return
	}
	atThatMoment()
	p.killed = true
	p.mu.Lock()
	defer p.mu.Unlock()
	for h := range p.open {
		_ = h.under.Close()
	}
	clear(p.open)
}

// do makes one call, unless the process is dead.
func (p *Process) do(op, name string, call func() error) error {
	p.gate.RLock()
	defer p.gate.RUnlock()
	if p.killed {
		return fmt.Errorf("%s %s: %w", op, name, ErrKilled)
	}
	return call()
}

// handle is something the process holds open: a file or a lock.
type handle struct {
	process *Process
	under   io.Closer
}

func (p *Process) hold(c io.Closer) *handle {
	h := &handle{process: p, under: c}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[h] = struct{}{}
	return h
}

// Close gives it back; Kill may have done so already.
func (h *handle) Close() error {
	h.process.gate.RLock()
	defer h.process.gate.RUnlock()
	h.process.mu.Lock()
	delete(h.process.open, h)
	h.process.mu.Unlock()
	if h.process.killed {
		return nil
	}
	return h.under.Close()
}

// Open implements FS.
func (p *Process) Open(name string, flag Flag) (file File, err error) {
	err = p.do("open", name, func() error {
		f, err := p.under.Open(name, flag)
		if err == nil {
			file = &processFile{File: f, held: p.hold(f), name: name}
		}
		return err
	})
	return file, err
}

// Lock implements FS.
func (p *Process) Lock(name string) (lock io.Closer, err error) {
	err = p.do("lock", name, func() error {
		l, err := p.under.Lock(name)
		if err == nil {
			lock = p.hold(l)
		}
		return err
	})
	return lock, err
}

// List implements FS.
func (p *Process) List(dir string) (entries []Info, err error) {
	err = p.do("list", dir, func() error {
		entries, err = p.under.List(dir)
		return err
	})
	return entries, err
}

// Stat implements FS.
func (p *Process) Stat(name string) (info Info, err error) {
	err = p.do("stat", name, func() error {
		info, err = p.under.Stat(name)
		return err
	})
	return info, err
}

// Rename implements FS.
func (p *Process) Rename(oldName, newName string) error {
	return p.do("rename", oldName, func() error { return p.under.Rename(oldName, newName) })
}

// Remove implements FS.
func (p *Process) Remove(name string) error {
	return p.do("remove", name, func() error { return p.under.Remove(name) })
}

// RemoveAll implements FS.
func (p *Process) RemoveAll(name string) error {
	return p.do("remove", name, func() error { return p.under.RemoveAll(name) })
}

// MkdirAll implements FS.
func (p *Process) MkdirAll(dir string) error {
	return p.do("mkdir", dir, func() error { return p.under.MkdirAll(dir) })
}

// SyncDir implements FS.
func (p *Process) SyncDir(dir string) error {
	return p.do("sync", dir, func() error { return p.under.SyncDir(dir) })
}

// processFile writes through the process. Reads, and the zero-copy ways, do
// not ask: they change nothing.
type processFile struct {
	File
	held *handle
	name string
}

func (f *processFile) passThrough() File { return f.File }

func (f *processFile) write(op string, call func() (int, error)) (n int, err error) {
	err = f.held.process.do(op, f.name, func() error {
		n, err = call()
		return err
	})
	return n, err
}

// Append implements File.
func (f *processFile) Append(b []byte) (int, error) {
	return f.write("append", func() (int, error) { return f.File.Append(b) })
}

// WriteAt implements File.
func (f *processFile) WriteAt(b []byte, off int64) (int, error) {
	return f.write("write", func() (int, error) { return f.File.WriteAt(b, off) })
}

// Truncate implements File.
func (f *processFile) Truncate(size int64) error {
	return f.held.process.do("truncate", f.name, func() error { return f.File.Truncate(size) })
}

// Sync implements File.
func (f *processFile) Sync() error {
	return f.held.process.do("sync", f.name, f.File.Sync)
}

// Close implements File.
func (f *processFile) Close() error { return f.held.Close() }
