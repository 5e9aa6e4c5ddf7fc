package fetch

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer/machine"
	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

// kafkaLog is one partition of testdata/txn.jsonl.gz: the log and the aborted transactions of a topic that Apache
// Kafka 4.4.0 wrote, and what Kafka's own consumer read from it. Each record is [offset, timestamp, key, value].
type kafkaLog struct {
	Partition   int32
	Log         []byte
	Aborted     [][3]int64 // producer id, first offset, offset of the marker
	Stable      int64
	Committed   [][]any `json:"read_committed"`
	Uncommitted [][]any `json:"read_uncommitted"`
}

func kafkaLogs(t testing.TB) (out []kafkaLog) {
	f, err := os.Open("testdata/txn.jsonl.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l kafkaLog
		require.NoError(t, json.Unmarshal(lines.Bytes(), &l))
		out = append(out, l)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, out)
	return out
}

// TestReadsAKafkaLogAsKafkasConsumerDid cuts the log into answers of every size and reads them from every offset.
func TestReadsAKafkaLogAsKafkasConsumerDid(t *testing.T) {
	for _, l := range kafkaLogs(t) {
		_, end, err := scan(l.Log)
		require.NoError(t, err)
		for limit, step := range map[int]int64{1: 41, 500: 17, 2000: 7, 1 << 20: 1} {
			for from := int64(0); from < end.Offset; from += step {
				require.Equal(t, since(l.Uncommitted, from), readLog(t, &l, false, from, limit, end.Offset), "uncommitted from %d", from)
				if from < l.Stable {
					require.Equal(t, since(l.Committed, from), readLog(t, &l, true, from, limit, l.Stable), "committed from %d, %d bytes", from, limit)
				}
			}
		}
	}
}

func since(rows [][]any, from int64) (out []record.Record) {
	for _, r := range rows {
		if offset := int64(r[0].(float64)); offset >= from {
			rec := record.Record{Offset: offset, Timestamp: int64(r[1].(float64))}
			if key, ok := r[2].(string); ok {
				rec.Key = []byte(key)
			}
			if value, ok := r[3].(string); ok {
				rec.Value = []byte(value)
			}
			out = append(out, rec)
		}
	}
	return out
}

// readLog fetches and reads until end.
func readLog(t *testing.T, l *kafkaLog, committed bool, from int64, limit int, end int64) (out []record.Record) {
	o := &Options{ReadCommitted: committed, CheckCRC: true, Decompressor: compress.NewDecompressor(), MaxDecompressed: 1 << 20}
	for from < end {
		chunk := answer(t, l, committed, from, limit, end)
		c := newCursor(chunk, o)
		var it record.Iterator
		for {
			ok, err := c.next(&it, from)
			require.NoError(t, err)
			if !ok {
				break
			}
			for r := range it.All() {
				if r.Offset >= from {
					out = append(out, record.Record{Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value})
				}
			}
			require.NoError(t, it.Err())
		}
		from = chunk.Next.Offset
	}
	return out
}

// answer is what a broker sends: whole batches from the one with that offset on, and the aborted transactions that
// overlap with them.
func answer(t *testing.T, l *kafkaLog, committed bool, from int64, limit int, end int64) *machine.Chunk {
	rest := l.Log
	var out []byte
	for len(rest) > 0 {
		batch, more, err := record.Next(rest)
		require.NoError(t, err)
		h, err := record.ParseHeader(batch)
		require.NoError(t, err)
		if h.BaseOffset >= end || len(out) > 0 && len(out)+len(batch) > limit {
			break
		}
		if h.NextOffset() > from {
			out = append(out, batch...)
		}
		rest = more
	}
	whole, next, err := scan(out)
	require.NoError(t, err)
	c := &machine.Chunk{From: machine.Position{Offset: from}, Next: next, Records: whole}
	if committed {
		for _, a := range l.Aborted {
			if a[1] < next.Offset && a[2] >= from {
				c.Aborted = append(c.Aborted, machine.Aborted{ProducerID: a[0], FirstOffset: a[1]})
			}
		}
	}
	return c
}

func TestScanCutsWholeBatches(t *testing.T) {
	log := kafkaLogs(t)[0].Log
	whole, next, err := scan(log)
	require.NoError(t, err)
	require.Len(t, whole, len(log))
	require.EqualValues(t, 225, next.Offset)
	first, _, err := record.Next(log)
	require.NoError(t, err)
	// A batch that is cut off is no error, wherever it is cut.
	for n := range len(first) {
		whole, next, err := scan(log[:n])
		require.NoError(t, err)
		require.Empty(t, whole)
		require.EqualValues(t, -1, next.Offset)
	}
	whole, next, err = scan(log[:len(first)+3])
	require.NoError(t, err)
	require.Len(t, whole, len(first))
	require.EqualValues(t, 6, next.Offset)
	// What cannot be cut is told, and what came before it is not lost.
	for name, damage := range map[string]func([]byte){
		"magic":             func(b []byte) { b[16] = 9 },
		"length":            func(b []byte) { b[8] = 0x80 },
		"last offset delta": func(b []byte) { b[23] = 0xff },
		"base offset":       func(b []byte) { b[0] = 0x80 },
		"offsets that fall": func(b []byte) { copy(b[:8], first[:8]); b[23], b[24], b[25], b[26] = 0, 0, 0, 0 },
	} {
		bad := append([]byte(nil), log...)
		damage(bad[len(first):])
		whole, next, err = scan(bad)
		require.Error(t, err, name)
		require.Len(t, whole, len(first), name)
		require.EqualValues(t, 6, next.Offset, name)
	}
}
