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

// enter lets one call begin, unless the process is dead; leave ends it. No
// closures: Append is on the way of every produced batch.
func (p *Process) enter(op, name string) error {
	p.gate.RLock()
	if p.killed {
		p.gate.RUnlock()
		return fmt.Errorf("%s %s: %w", op, name, ErrKilled)
	}
	return nil
}

func (p *Process) leave() { p.gate.RUnlock() }

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
func (p *Process) Open(name string, flag Flag) (File, error) {
	if err := p.enter("open", name); err != nil {
		return nil, err
	}
	defer p.leave()
	f, err := p.under.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return &processFile{File: f, held: p.hold(f), name: name}, nil
}

// Lock implements FS.
func (p *Process) Lock(name string) (io.Closer, error) {
	if err := p.enter("lock", name); err != nil {
		return nil, err
	}
	defer p.leave()
	l, err := p.under.Lock(name)
	if err != nil {
		return nil, err
	}
	return p.hold(l), nil
}

// List implements FS.
func (p *Process) List(dir string) ([]Info, error) {
	if err := p.enter("list", dir); err != nil {
		return nil, err
	}
	defer p.leave()
	return p.under.List(dir)
}

// Stat implements FS.
func (p *Process) Stat(name string) (Info, error) {
	if err := p.enter("stat", name); err != nil {
		return Info{}, err
	}
	defer p.leave()
	return p.under.Stat(name)
}

// Rename implements FS.
func (p *Process) Rename(oldName, newName string) error {
	if err := p.enter("rename", oldName); err != nil {
		return err
	}
	defer p.leave()
	return p.under.Rename(oldName, newName)
}

// Remove implements FS.
func (p *Process) Remove(name string) error {
	if err := p.enter("remove", name); err != nil {
		return err
	}
	defer p.leave()
	return p.under.Remove(name)
}

// RemoveAll implements FS.
func (p *Process) RemoveAll(name string) error {
	if err := p.enter("remove", name); err != nil {
		return err
	}
	defer p.leave()
	return p.under.RemoveAll(name)
}

// MkdirAll implements FS.
func (p *Process) MkdirAll(dir string) error {
	if err := p.enter("mkdir", dir); err != nil {
		return err
	}
	defer p.leave()
	return p.under.MkdirAll(dir)
}

// SyncDir implements FS.
func (p *Process) SyncDir(dir string) error {
	if err := p.enter("sync", dir); err != nil {
		return err
	}
	defer p.leave()
	return p.under.SyncDir(dir)
}

// processFile writes through the process. Reads, and the zero-copy ways, do
// not ask: they change nothing.
type processFile struct {
	File
	held *handle
	name string
}

func (f *processFile) passThrough() File { return f.File }

// Append implements File.
func (f *processFile) Append(b []byte) (int, error) {
	p := f.held.process
	if err := p.enter("append", f.name); err != nil {
		return 0, err
	}
	defer p.leave()
	return f.File.Append(b)
}

// WriteAt implements File.
func (f *processFile) WriteAt(b []byte, off int64) (int, error) {
	p := f.held.process
	if err := p.enter("write", f.name); err != nil {
		return 0, err
	}
	defer p.leave()
	return f.File.WriteAt(b, off)
}

// Truncate implements File.
func (f *processFile) Truncate(size int64) error {
	p := f.held.process
	if err := p.enter("truncate", f.name); err != nil {
		return err
	}
	defer p.leave()
	return f.File.Truncate(size)
}

// Sync implements File.
func (f *processFile) Sync() error {
	p := f.held.process
	if err := p.enter("sync", f.name); err != nil {
		return err
	}
	defer p.leave()
	return f.File.Sync()
}

// Close implements File.
func (f *processFile) Close() error { return f.held.Close() }
