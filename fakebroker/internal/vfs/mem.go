package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"
)

var (
	errReadOnly = errors.New("vfs: file is opened read-only")
	errNotDir   = errors.New("not a folder")
	errIsDir    = errors.New("is a folder")
	errNotEmpty = errors.New("folder not empty")
)

// MemFS is a file system in memory with the semantics of OSFS. It also keeps
// apart, when made by NewCrash, what was made durable and what was not. The
// zero value is an empty file system; all methods may be called from any
// goroutine.
type MemFS struct {
	mu     sync.Mutex // guards the tree and the locks; never held while waiting
	root   *folder
	locks  map[string]bool
	layers bool // remember the durable layer (costs memory: only for Crash)
}

// folder is a directory: entries are *folder or *inode.
type folder struct {
	entries map[string]any

	layers  bool           // as MemFS.layers
	durable map[string]any // entries at the last SyncDir
	journal []change       // what changed since
}

// change is one change of names in a folder: what each name meant after it
// (nil: nothing). A rename within the folder is one change of two names.
type change struct {
	names  [2]string
	values [2]any
}

// NewMem returns an empty file system in memory.
func NewMem() *MemFS { return &MemFS{} }

func (m *MemFS) newFolder() *folder { return &folder{layers: m.layers} }

func (d *folder) set(name string, v any) {
	d.apply(change{names: [2]string{name}, values: [2]any{v}})
}

func (d *folder) apply(c change) {
	if d.entries == nil {
		d.entries = make(map[string]any)
	}
	if d.layers {
		d.journal = append(d.journal, c)
	}
	c.on(d.entries)
}

// on plays the change on a set of entries.
func (c change) on(entries map[string]any) {
	for i, name := range c.names {
		switch {
		case name == "":
		case c.values[i] == nil:
			delete(entries, name)
		default:
			entries[name] = c.values[i]
		}
	}
}

// walk returns the folder that holds name, and name's last element. mu is held.
func (m *MemFS) walk(op, name string) (*folder, string, error) {
	if m.root == nil {
		m.root = m.newFolder()
	}
	dir := m.root
	name = clean(name)
	for {
		i := strings.IndexByte(name, '/')
		if i < 0 {
			return dir, name, nil
		}
		next, ok := dir.entries[name[:i]].(*folder)
		if !ok {
			return nil, "", pathError(op, name, ErrNotExist)
		}
		dir, name = next, name[i+1:]
	}
}

// clean turns any spelling of a path into a/b/c; the root is ".".
func clean(name string) string {
	if tidy(name) {
		return name
	}
	name = filepath.ToSlash(filepath.Clean(name))
	if name = strings.TrimPrefix(name, "/"); name == "" {
		return "."
	}
	return name
}

// tidy tells, cheaply, that a path is clean already.
func tidy(name string) bool {
	last := byte('/')
	for i := range len(name) {
		c := name[i]
		if c == '\\' || last == '/' && (c == '/' || c == '.') {
			return false
		}
		last = c
	}
	return last != '/'
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// dir returns the folder called name. mu is held.
func (m *MemFS) dir(op, name string) (*folder, error) {
	d, last, err := m.walk(op, name)
	if err != nil {
		return nil, err
	}
	if last == "." {
		return d, nil
	}
	switch v := d.entries[last].(type) {
	case *folder:
		return v, nil
	case *inode:
		return nil, pathError(op, name, errNotDir)
	default:
		return nil, pathError(op, name, ErrNotExist)
	}
}

// Open implements FS.
func (m *MemFS) Open(name string, flag Flag) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, last, err := m.walk("open", name)
	if err != nil {
		return nil, err
	}
	file := &memFile{writable: flag&(ReadWrite|Create) != 0}
	switch v := d.entries[last].(type) {
	case *folder:
		return nil, pathError("open", name, errIsDir)
	case *inode:
		if flag&Exclusive != 0 {
			return nil, pathError("open", name, ErrExist)
		}
		file.n = v
		if flag&Truncated != 0 {
			v.truncate(0)
		}
	default:
		if flag&Create == 0 || last == "." {
			return nil, pathError("open", name, ErrNotExist)
		}
		file.n = &inode{modTime: time.Now(), layers: m.layers}
		d.set(last, file.n)
	}
	return file, nil
}

// Rename implements FS.
func (m *MemFS) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldLast, err := m.walk("rename", oldName)
	if err != nil {
		return err
	}
	to, newLast, err := m.walk("rename", newName)
	if err != nil {
		return err
	}
	v := from.entries[oldLast]
	if v == nil {
		return pathError("rename", oldName, ErrNotExist)
	}
	if old := to.entries[newLast]; old == v {
		return nil
	} else if _, isDir := old.(*folder); isDir {
		return pathError("rename", newName, ErrExist)
	}
	if from == to {
		from.apply(change{names: [2]string{oldLast, newLast}, values: [2]any{nil, v}})
		return nil
	}
	to.set(newLast, v)
	from.set(oldLast, nil)
	return nil
}

// Remove implements FS.
func (m *MemFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, last, err := m.walk("remove", name)
	if err != nil {
		return err
	}
	v := d.entries[last]
	if v == nil {
		return pathError("remove", name, ErrNotExist)
	}
	if sub, ok := v.(*folder); ok && len(sub.entries) > 0 {
		return pathError("remove", name, errNotEmpty)
	}
	d.set(last, nil)
	return nil
}

// RemoveAll implements FS.
func (m *MemFS) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, last, err := m.walk("remove", name)
	if errors.Is(err, ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if d.entries[last] != nil {
		d.set(last, nil)
	}
	return nil
}

// List implements FS.
func (m *MemFS) List(dir string) ([]Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir("list", dir)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(d.entries))
	for name, v := range d.entries {
		infos = append(infos, describe(name, v))
	}
	sort.Slice(infos, func(i, j int) bool { return infos[i].Name < infos[j].Name })
	return infos, nil
}

func describe(name string, v any) Info {
	if _, ok := v.(*folder); ok {
		return Info{Name: name, Dir: true}
	}
	n := v.(*inode)
	n.mu.RLock()
	defer n.mu.RUnlock()
	return Info{Name: name, Size: n.size, ModTime: n.modTime}
}

// Stat implements FS.
func (m *MemFS) Stat(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, last, err := m.walk("stat", name)
	if err != nil {
		return Info{}, err
	}
	if last == "." {
		return describe(".", d), nil
	}
	v := d.entries[last]
	if v == nil {
		return Info{}, pathError("stat", name, ErrNotExist)
	}
	return describe(last, v), nil
}

// MkdirAll implements FS.
func (m *MemFS) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.root == nil {
		m.root = m.newFolder()
	}
	d := m.root
	for part := range strings.SplitSeq(clean(dir), "/") {
		if part == "." {
			continue
		}
		switch v := d.entries[part].(type) {
		case *folder:
			d = v
		case *inode:
			return pathError("mkdir", dir, errNotDir)
		default:
			sub := m.newFolder()
			d.set(part, sub)
			d = sub
		}
	}
	return nil
}

// SyncDir implements FS.
func (m *MemFS) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir("sync", dir)
	if err != nil {
		return err
	}
	if d.layers && d.durable == nil {
		d.durable = make(map[string]any, len(d.entries))
	}
	for _, c := range d.journal {
		c.on(d.durable)
	}
	d.journal = d.journal[:0]
	return nil
}

// Lock implements FS.
func (m *MemFS) Lock(name string) (io.Closer, error) {
	f, err := m.Open(name, Create)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locks == nil {
		m.locks = make(map[string]bool)
	}
	key := clean(name)
	if m.locks[key] {
		return nil, fmt.Errorf("lock %s: %w", name, ErrLocked)
	}
	m.locks[key] = true
	return &memLock{fs: m, key: key, f: f}, nil
}

type memLock struct {
	fs  *MemFS
	key string
	f   File
}

func (l *memLock) Close() error {
	l.fs.mu.Lock()
	delete(l.fs.locks, l.key)
	l.fs.mu.Unlock()
	return l.f.Close()
}
