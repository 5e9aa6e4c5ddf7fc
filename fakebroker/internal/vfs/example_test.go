package vfs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// Files in memory can be handed out without copying.
func ExampleNewMem() {
	fs := vfs.NewMem()
	f, _ := fs.Open("orders.log", vfs.Create)
	_, _ = f.Append([]byte("hello "))
	_, _ = f.Append([]byte("world"))
	s, _ := vfs.AsSlicer(f)
	for _, b := range s.Slices(nil, 4, 5) {
		fmt.Printf("%q ", b)
	}
	// Output: "o " "wor"
}

// What was synced is there after a power cut, under a name that was synced.
func ExampleMemFS_Crash() {
	fs := vfs.NewCrash()
	f, _ := fs.Open("orders.log", vfs.Create)
	_, _ = f.Append([]byte("kept"))
	_ = f.Sync()
	_ = fs.SyncDir(".")
	_, _ = f.Append([]byte(" perhaps"))

	after := fs.Crash(rand.New(rand.NewPCG(1, 1)))
	b, _ := vfs.ReadFile(after, "orders.log")
	fmt.Printf("%s\n", b[:4])
	// Output: kept
}

// A full disk, after the first ten bytes.
func ExampleFaultFS_Set() {
	fs := vfs.NewFault(vfs.NewMem())
	fs.Set(func(op vfs.Op) error {
		if op.Kind == vfs.OpAppend && op.Off+int64(op.Len) > 10 {
			return &vfs.Torn{Kept: int(10 - op.Off), Err: errors.New("no space left on device")}
		}
		return nil
	})
	f, _ := fs.Open("orders.log", vfs.Create)
	n, err := f.Append([]byte("0123456789abc"))
	fmt.Println(n, err)
	// Output: 10 no space left on device
}

// Counting what a change costs on the disk.
func ExampleCountFS() {
	fs := vfs.NewCount(vfs.NewMem())
	_ = vfs.WriteFileAtomic(fs, "meta.properties", []byte("node.id=1\n"), true)
	fmt.Println(fs.Count(vfs.OpAppend, ".tmp"), fs.Count(vfs.OpSync, ".tmp").Calls, fs.Count(vfs.OpRename, ".tmp").Calls)
	// Output: {1 10} 1 1
}
