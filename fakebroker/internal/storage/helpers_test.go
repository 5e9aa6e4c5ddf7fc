package storage

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// t0 is when tests happen.
var t0 = time.UnixMilli(1_700_000_000_000)

var orders = TopicPartition{Topic: "orders"}

func testUUID(n byte) wire.UUID { return wire.UUID{0: 1, 15: n} }

// openTest opens a log at logs/orders-0.
func openTest(tb testing.TB, fs vfs.FS, cfg LogConfig, change ...func(*LogOptions)) *Log {
	tb.Helper()
	opts := LogOptions{FS: fs, Dir: "logs/orders-0", Partition: orders, TopicID: testUUID(1), Config: cfg}
	for _, f := range change {
		f(&opts)
	}
	l, err := OpenLog(opts, t0)
	require.NoError(tb, err)
	return l
}

func cleanly(o *LogOptions) { o.Clean = true }

// produced describes a batch for tests; the zero value has no producer.
type produced struct {
	values []string
	at     time.Time // of the first record, one ms later for each other
	id     int64     // producer id + 1, 0 none
	epoch  int16
	seq    int32
	txn    bool
	noKey  bool
	codec  compress.Codec
}

func (p produced) bytes() []byte {
	b := record.NewBuilder(nil)
	if p.at.IsZero() {
		p.at = t0
	}
	for i, v := range p.values {
		key := []byte(fmt.Sprintf("k%d", i))
		if p.noKey {
			key = nil
		}
		b.Append(p.at.UnixMilli()+int64(i), key, []byte(v), nil)
	}
	stamp := record.NoProducer()
	if p.id > 0 {
		stamp = record.Stamp{ProducerID: p.id - 1, ProducerEpoch: p.epoch, BaseSequence: p.seq, Transactional: p.txn}
	}
	if p.codec == compress.None {
		return b.Seal(stamp)
	}
	c, err := compress.NewCompressor(p.codec, compress.DefaultLevel)
	if err != nil {
		panic(err)
	}
	return b.SealCompressed(nil, stamp, c)
}

func batchOf(values ...string) []byte { return produced{values: values}.bytes() }

func appendOK(tb testing.TB, l *Log, batch []byte) AppendInfo {
	tb.Helper()
	info, err := l.AppendAsLeader(batch, 0, FromClient, t0)
	require.NoError(tb, err)
	return info
}

// fill appends n batches of three records and raises the high watermark.
func fill(tb testing.TB, l *Log, n int) {
	tb.Helper()
	for i := range n {
		appendOK(tb, l, batchOf(fmt.Sprintf("a%d", i), strings.Repeat("b", i%50), "c"))
	}
	l.SetHighWatermark(l.LogEndOffset())
}

// readBatches reads from an offset to the bound, in pieces of maxBytes.
func readBatches(tb testing.TB, l *Log, from int64, maxBytes int, bound Bound) []byte {
	tb.Helper()
	var all []byte
	for {
		d, err := l.Read(from, maxBytes, bound, true)
		require.NoError(tb, err)
		if d.Records.Len == 0 {
			return all
		}
		all, err = d.Records.AppendTo(all)
		require.NoError(tb, err)
		d.Records.Release()
		all = wholeBatches(all)
		require.Greater(tb, d.NextOffset, from)
		from = d.NextOffset
	}
}

// wholeBatches drops a batch that is cut off at the end, as clients do.
func wholeBatches(b []byte) []byte {
	at := 0
	for {
		batch, _, err := record.Next(b[at:])
		if err != nil {
			return b[:at]
		}
		at += len(batch)
	}
}

// values returns what the records of batches hold.
func values(tb testing.TB, batches []byte) []string {
	tb.Helper()
	var out []string
	for r := range allRecords(tb, batches) {
		out = append(out, string(r.Value))
	}
	return out
}

func allRecords(tb testing.TB, batches []byte) func(func(record.Record) bool) {
	return func(yield func(record.Record) bool) {
		for len(batches) > 0 {
			batch, rest, err := record.Next(batches)
			require.NoError(tb, err)
			batches = rest
			it, err := record.Open(batch, record.ReadOptions{Decompressor: compress.NewDecompressor()})
			require.NoError(tb, err)
			for r := range it.All() {
				if !yield(r) {
					return
				}
			}
			require.NoError(tb, it.Err())
		}
	}
}

// tree returns all files below dir with their content.
func tree(tb testing.TB, fs vfs.FS, dir string) map[string]string {
	tb.Helper()
	files := make(map[string]string)
	infos, err := fs.List(dir)
	require.NoError(tb, err)
	for _, info := range infos {
		name := dir + "/" + info.Name
		if info.Dir {
			for k, v := range tree(tb, fs, name) {
				files[k] = v
			}
			continue
		}
		b, err := vfs.ReadFile(fs, name)
		require.NoError(tb, err)
		files[name] = string(b)
	}
	return files
}

// fileSystems runs a test in memory and on a disk, whose folder it changes to.
func fileSystems(t *testing.T, test func(t *testing.T, fs vfs.FS)) {
	t.Run("memory", func(t *testing.T) { test(t, vfs.NewMem()) })
	t.Run("disk", func(t *testing.T) {
		t.Chdir(t.TempDir())
		test(t, vfs.OSFS{})
	})
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
