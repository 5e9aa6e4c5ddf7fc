package vfs

import (
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKilledProcessWritesNothingMore(t *testing.T) {
	for name, under := range map[string]FS{"memory": NewMem(), "disk": OSFS{}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, under.MkdirAll(dir))
			in := func(name string) string { return filepath.Join(dir, name) }
			p := NewProcess(under)
			lock, err := p.Lock(in(".lock"))
			require.NoError(t, err)
			f, err := p.Open(in("log"), Create)
			require.NoError(t, err)
			_, err = f.Append([]byte("written"))
			require.NoError(t, err)

			p.Kill(func() {})
			p.Kill(func() { t.Error("killed twice") })
			_, err = f.Append([]byte(" late"))
			require.ErrorIs(t, err, ErrKilled)
			_, err = f.WriteAt([]byte("x"), 0)
			require.ErrorIs(t, err, ErrKilled)
			for _, err := range []error{f.Truncate(0), f.Sync(), p.Rename(in("log"), in("gone")), p.Remove(in("log")), p.RemoveAll(dir),
				p.MkdirAll(in("new")), p.SyncDir(dir), WriteFile(p, in("other"), nil)} {
				require.ErrorIs(t, err, ErrKilled)
			}
			require.NoError(t, f.Close())
			require.NoError(t, lock.Close())

			next := NewProcess(under)
			_, err = next.Lock(in(".lock"))
			require.NoError(t, err, "the lock went with the process")
			got, err := ReadFile(next, in("log"))
			require.NoError(t, err)
			require.Equal(t, "written", string(got))
			next.Kill(func() {})
		})
	}
}

func TestKillWaitsForWritesUnderWay(t *testing.T) {
	under := NewMem()
	p := NewProcess(under)
	f, err := p.Open("log", Create)
	require.NoError(t, err)
	var wg sync.WaitGroup
	written := 0
	wg.Go(func() {
		for {
			if _, err := f.Append([]byte("0123456789")); err != nil {
				return
			}
			written++
		}
	})
	for f.Size() < 1000 {
		runtime.Gosched()
	}
	p.Kill(func() {})
	after, err := under.Stat("log")
	require.NoError(t, err)
	wg.Wait()
	require.EqualValues(t, written*10, after.Size)
}
