package vfs

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func crashes(t *testing.T, fs *MemFS, check func(after *MemFS)) {
	t.Helper()
	for seed := range uint64(200) {
		check(fs.Crash(rand.New(rand.NewPCG(seed, 7))))
	}
}

func TestPowerCutKeepsWhatWasSyncedAndMaybeMore(t *testing.T) {
	fs := NewCrash()
	f, err := fs.Open("f", Create)
	require.NoError(t, err)
	_, _ = f.Append([]byte(strings.Repeat("a", 700)))
	require.NoError(t, f.Sync())
	require.NoError(t, fs.SyncDir("."))
	_, _ = f.Append([]byte(strings.Repeat("b", 700)))
	sizes := make(map[int]bool)
	garbage := false
	crashes(t, fs, func(after *MemFS) {
		got := content(t, after, "f")
		require.True(t, strings.HasPrefix(got, strings.Repeat("a", 700)))
		sizes[len(got)] = true
		rest := strings.TrimLeft(got[700:], "b")
		garbage = garbage || strings.Trim(rest, "\x00") != ""
		if rest != "" {
			require.Zero(t, len(got)%512)
		}
	})
	require.Greater(t, len(sizes), 50)
	require.True(t, garbage)
	require.Len(t, content(t, fs, "f"), 1400, "the file system itself goes on")
}

func TestPowerCutLosesNamesThatWereNotSynced(t *testing.T) {
	fs := NewCrash()
	require.NoError(t, fs.MkdirAll("d"))
	require.NoError(t, fs.SyncDir("."))
	require.NoError(t, WriteFileAtomic(fs, "d/x", []byte("old"), true))
	require.NoError(t, WriteFile(fs, "d/tmp", []byte("new")))
	f, err := fs.Open("d/tmp", ReadWrite)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, fs.Rename("d/tmp", "d/x"))
	seen := make(map[string]int)
	crashes(t, fs, func(after *MemFS) {
		seen[content(t, after, "d/x")]++
		if content(t, after, "d/x") == "new" {
			_, err := after.Stat("d/tmp")
			require.ErrorIs(t, err, ErrNotExist, "a rename is atomic")
		}
	})
	require.Len(t, seen, 2)
}

func TestPowerCutReplaysFromItsSeed(t *testing.T) {
	fs := NewCrash()
	for _, name := range []string{"a", "b", "c", "d"} {
		require.NoError(t, WriteFile(fs, name, []byte(strings.Repeat(name, 1000))))
	}
	for seed := range uint64(20) {
		one, two := fs.Crash(rand.New(rand.NewPCG(seed, 0))), fs.Crash(rand.New(rand.NewPCG(seed, 0)))
		left, err := one.List(".")
		require.NoError(t, err)
		right, err := two.List(".")
		require.NoError(t, err)
		require.Equal(t, left, right)
		for _, info := range left {
			require.Equal(t, content(t, one, info.Name), content(t, two, info.Name))
		}
	}
}

func TestRewrittenFileIsOldOrNewAfterAPowerCut(t *testing.T) {
	fs := NewCrash()
	f, err := fs.Open("f", Create)
	require.NoError(t, err)
	_, _ = f.Append([]byte("old content"))
	require.NoError(t, f.Sync())
	require.NoError(t, fs.SyncDir("."))
	_, _ = f.WriteAt([]byte("NEW"), 0)
	seen := make(map[string]int)
	crashes(t, fs, func(after *MemFS) { seen[content(t, after, "f")]++ })
	require.Len(t, seen, 2)
}
