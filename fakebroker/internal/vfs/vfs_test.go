package vfs

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// both runs a test against the disk and the memory: they are to be the same.
func both(t *testing.T, test func(t *testing.T, fs FS)) {
	t.Run("os", func(t *testing.T) {
		t.Chdir(t.TempDir())
		test(t, OSFS{})
	})
	t.Run("mem", func(t *testing.T) { test(t, NewMem()) })
	t.Run("crash", func(t *testing.T) { test(t, NewCrash()) })
	t.Run("count", func(t *testing.T) { test(t, NewCount(NewMem())) })
}

func content(t *testing.T, fs FS, name string) string {
	t.Helper()
	b, err := ReadFile(fs, name)
	require.NoError(t, err)
	return string(b)
}

func TestFilesGrowAreCutAndOverwritten(t *testing.T) {
	both(t, func(t *testing.T, fs FS) {
		f, err := fs.Open("a", Create)
		require.NoError(t, err)
		for _, s := range []string{"hello", " ", "world"} {
			n, err := f.Append([]byte(s))
			require.NoError(t, err)
			require.Equal(t, len(s), n)
		}
		require.EqualValues(t, 11, f.Size())
		require.NoError(t, f.Truncate(5))
		_, err = f.Append([]byte("!"))
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("J"), 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("xyz"), 8)
		require.NoError(t, err)
		require.Equal(t, "Jello!\x00\x00xyz", content(t, fs, "a"))
		require.NoError(t, f.Truncate(13))
		require.Equal(t, "Jello!\x00\x00xyz\x00\x00", content(t, fs, "a"))

		p := make([]byte, 4)
		n, err := f.ReadAt(p, 11)
		require.Equal(t, 2, n)
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		_, err = f.Append(p)
		require.ErrorIs(t, err, ErrClosed)
		_, err = f.ReadAt(p, 0)
		require.ErrorIs(t, err, ErrClosed)
	})
}

func TestNamesFollowPosix(t *testing.T) {
	both(t, func(t *testing.T, fs FS) {
		_, err := fs.Open("no/file", Create)
		require.ErrorIs(t, err, ErrNotExist)
		_, err = fs.Open("no", ReadOnly)
		require.ErrorIs(t, err, ErrNotExist)
		require.NoError(t, fs.MkdirAll("d/e"))
		require.NoError(t, fs.MkdirAll("d/e"))
		require.NoError(t, WriteFile(fs, "d/e/f", []byte("1")))
		_, err = fs.Open("d/e/f", Create|Exclusive)
		require.ErrorIs(t, err, ErrExist)
		require.Error(t, fs.Remove("d/e"))
		require.ErrorIs(t, fs.Remove("d/x"), ErrNotExist)
		require.ErrorIs(t, fs.Rename("d/x", "d/y"), ErrNotExist)

		open, err := fs.Open("d/e/f", ReadOnly)
		require.NoError(t, err)
		_, err = open.Append([]byte("x"))
		require.Error(t, err)
		require.NoError(t, WriteFile(fs, "d/e/g", []byte("22")))
		require.NoError(t, fs.Rename("d/e/g", "d/e/f"))
		require.Equal(t, "22", content(t, fs, "d/e/f"))
		require.NoError(t, fs.Rename("d/e", "d/h"))
		require.Equal(t, "22", content(t, fs, "d/h/f"))
		p := make([]byte, 1)
		_, err = open.ReadAt(p, 0)
		require.NoError(t, err)
		require.Equal(t, "1", string(p), "an open file outlives its name")
		require.NoError(t, open.Close())

		infos, err := fs.List("d/h")
		require.NoError(t, err)
		require.Len(t, infos, 1)
		require.Equal(t, []any{"f", int64(2), false}, []any{infos[0].Name, infos[0].Size, infos[0].Dir})
		require.False(t, infos[0].ModTime.IsZero())
		info, err := fs.Stat("d/h")
		require.NoError(t, err)
		require.True(t, info.Dir)
		require.NoError(t, fs.SyncDir("d"))
		require.NoError(t, fs.RemoveAll("d"))
		require.NoError(t, fs.RemoveAll("d"))
		_, err = fs.Stat("d/h/f")
		require.ErrorIs(t, err, ErrNotExist)
	})
}

func TestLockIsExclusive(t *testing.T) {
	both(t, func(t *testing.T, fs FS) {
		l, err := fs.Lock(".lock")
		require.NoError(t, err)
		_, err = fs.Lock(".lock")
		require.ErrorIs(t, err, ErrLocked)
		require.NoError(t, l.Close())
		l, err = fs.Lock(".lock")
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
}

func TestAtomicReplacementLeavesNoTemporary(t *testing.T) {
	both(t, func(t *testing.T, fs FS) {
		require.NoError(t, fs.MkdirAll("d"))
		require.NoError(t, WriteFileAtomic(fs, "d/x", []byte("old"), true))
		require.NoError(t, WriteFileAtomic(fs, "d/x", []byte("new"), false))
		require.Equal(t, "new", content(t, fs, "d/x"))
		infos, err := fs.List("d")
		require.NoError(t, err)
		require.Len(t, infos, 1)
	})
}

// A long random life of one file, beside a plain byte slice.
func TestMemFileEqualsAByteSlice(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		fs := NewMem()
		f, err := fs.Open("f", Create)
		require.NoError(t, err)
		var plain []byte
		var views [][]byte  // handed out earlier,
		var copies [][]byte // and what they held then
		for range 300 {
			p := make([]byte, rnd.IntN(3000))
			for i := range p {
				p[i] = byte(rnd.Uint32())
			}
			switch rnd.IntN(8) {
			case 0:
				n := rnd.IntN(len(plain) + 10)
				require.NoError(t, f.Truncate(int64(n)))
				plain = append(plain, make([]byte, max(0, n-len(plain)))...)[:n]
			case 1:
				at := rnd.IntN(len(plain) + 10)
				_, err := f.WriteAt(p, int64(at))
				require.NoError(t, err)
				plain = append(plain, make([]byte, max(0, at+len(p)-len(plain)))...)
				copy(plain[at:], p)
			default:
				_, err := f.Append(p)
				require.NoError(t, err)
				plain = append(plain, p...)
			}
			require.EqualValues(t, len(plain), f.Size())
			at, n := rnd.IntN(len(plain)+1), rnd.IntN(5000)
			want := plain[at:min(len(plain), at+n)]
			s, ok := AsSlicer(f)
			require.True(t, ok)
			var got []byte
			for _, b := range s.Slices(nil, int64(at), n) {
				got = append(got, b...)
				views, copies = append(views, b), append(copies, bytes.Clone(b))
			}
			require.Equal(t, string(want), string(got))
		}
		require.Equal(t, string(plain), content(t, fs, "f"))
		for i := range views {
			require.Equal(t, copies[i], views[i], "bytes that were handed out have changed")
		}
	}
}

func TestSlicesAreNoCopies(t *testing.T) {
	f, err := NewMem().Open("f", Create)
	require.NoError(t, err)
	_, err = f.Append([]byte("abc"))
	require.NoError(t, err)
	s, _ := AsSlicer(f)
	require.Same(t, &s.Slices(nil, 1, 1)[0][0], &s.Slices(nil, 1, 2)[0][0])
}

func TestFaultsReplaceCalls(t *testing.T) {
	full := errors.New("no space left")
	fs := NewFault(NewMem())
	f, err := fs.Open("f", Create)
	require.NoError(t, err)
	_, ok := AsSlicer(f)
	require.True(t, ok)
	fs.Set(func(op Op) error {
		switch op.Kind {
		case OpAppend:
			return &Torn{Kept: 2, Err: full}
		case OpSync, OpRead, OpRename, OpSyncDir:
			return full
		}
		return nil
	})
	_, ok = AsSlicer(f)
	require.False(t, ok, "reads have to come through the fault")
	n, err := f.Append([]byte("abc"))
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, full)
	require.ErrorIs(t, f.Sync(), full)
	require.ErrorIs(t, fs.Rename("f", "g"), full)
	require.ErrorIs(t, fs.SyncDir("."), full)
	_, err = f.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, full)
	fs.Set(nil)
	require.Equal(t, "ab", content(t, fs, "f"))
}

func TestCallsAreCounted(t *testing.T) {
	fs := NewCount(NewMem())
	f, err := fs.Open("x.log", Create)
	require.NoError(t, err)
	for range 3 {
		_, err = f.Append([]byte("abcd"))
		require.NoError(t, err)
	}
	require.NoError(t, f.Sync())
	require.Equal(t, Count{Calls: 3, Bytes: 12}, fs.Count(OpAppend, ".log"))
	require.Equal(t, 1, fs.Count(OpSync, ".log").Calls)
	require.Zero(t, fs.Count(OpAppend, ".index"))
	fs.Reset()
	require.Zero(t, fs.Count(OpAppend, ".log"))
	require.Equal(t, "append", OpAppend.String())
}
