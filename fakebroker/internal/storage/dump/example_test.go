package dump_test

import (
	"os"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage/dump"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

func ExampleFile() {
	fs := vfs.NewMem()
	index := storage.AppendOffsetIndex(nil, []storage.OffsetEntry{{RelativeOffset: 9, Position: 1310}, {RelativeOffset: 19, Position: 2413}})
	_ = vfs.WriteFile(fs, "00000000000000000360.index", index)
	_ = dump.File(os.Stdout, fs, "00000000000000000360.index", dump.Options{})
	// Output:
	// Dumping 00000000000000000360.index
	// offset: 369 position: 1310
	// offset: 379 position: 2413
}
