package storage

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/record"
)

// The folder in testdata/segments was left by Apache Kafka 4.4.0 after a clean
// stop, together with what its own consumer read from it.

func untar(tb testing.TB, fs vfs.FS, name string) {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", "segments", name))
	require.NoError(tb, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(tb, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		require.NoError(tb, err)
		if h.Typeflag == tar.TypeDir {
			require.NoError(tb, fs.MkdirAll(h.Name))
			continue
		}
		b, err := io.ReadAll(r)
		require.NoError(tb, err)
		require.NoError(tb, vfs.WriteFile(fs, h.Name, b))
	}
}

func oracleConfig(topic string) LogConfig {
	cfg := DefaultLogConfig()
	if !strings.HasPrefix(topic, "__") && topic != "recompressed" {
		cfg.IndexIntervalBytes = 512
	}
	cfg.RetentionMs = -1
	return cfg
}

const (
	oracleCluster = "AAECAwQFBgcICQoLDA0ODw"
	oracleNode    = 1
)

func oracleManager(tb testing.TB, fs vfs.FS) *Manager {
	tb.Helper()
	m, err := NewManager(ManagerOptions{FS: fs, Dirs: []string{"data"}, ClusterID: oracleCluster, NodeID: oracleNode,
		NewUUID: func() wire.UUID { return testUUID(9) }}, t0)
	require.NoError(tb, err)
	require.NoError(tb, m.LoadLogs(oracleConfig, t0))
	return m
}

type consumed struct {
	Topic         string     `json:"topic"`
	Partition     int32      `json:"partition"`
	Isolation     string     `json:"isolation"`
	Offset        int64      `json:"offset"`
	Timestamp     int64      `json:"timestamp"`
	TimestampType string     `json:"timestampType"`
	LeaderEpoch   int32      `json:"leaderEpoch"`
	Key           *string    `json:"key"`
	Value         *string    `json:"value"`
	Headers       [][]string `json:"headers"`
}

func oracleConsumed(tb testing.TB) map[TopicPartition]map[string][]consumed {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", "segments", "consumed.jsonl.gz"))
	require.NoError(tb, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(tb, err)
	all := make(map[TopicPartition]map[string][]consumed)
	for d := json.NewDecoder(z); ; {
		var c consumed
		err := d.Decode(&c)
		if err == io.EOF {
			return all
		}
		require.NoError(tb, err)
		p := TopicPartition{c.Topic, c.Partition}
		if all[p] == nil {
			all[p] = make(map[string][]consumed)
		}
		all[p][c.Isolation] = append(all[p][c.Isolation], c)
	}
}

// consume reads a log as a consumer does: skip what lies below the position,
// control batches, and, for read_committed, what was aborted.
func consume(tb testing.TB, l *Log, bound Bound, maxBytes int) []consumed {
	tb.Helper()
	var out []consumed
	aborting := make(map[int64]bool)
	for at := l.LogStartOffset(); ; {
		d, err := l.Read(at, maxBytes, bound, true)
		require.NoError(tb, err)
		if d.Records.Len == 0 {
			return out
		}
		b, err := d.Records.AppendTo(nil)
		require.NoError(tb, err)
		d.Records.Release()
		for b = wholeBatches(b); len(b) > 0; {
			var batch []byte
			batch, b, err = record.Next(b)
			require.NoError(tb, err)
			h, err := record.ParseHeader(batch)
			require.NoError(tb, err)
			if h.Control() {
				m, err := readMarker(batch)
				require.NoError(tb, err)
				if !m.Commit {
					delete(aborting, h.ProducerID)
				}
				continue
			}
			for _, a := range d.Aborted {
				if a.ProducerID == h.ProducerID && a.FirstOffset <= h.LastOffset() && h.Transactional() && a.FirstOffset >= h.BaseOffset {
					aborting[a.ProducerID] = true
				}
			}
			if aborting[h.ProducerID] {
				continue
			}
			out = append(out, consumedOf(tb, l, batch, &h, at, bound)...)
		}
		at = d.NextOffset
	}
}

func consumedOf(tb testing.TB, l *Log, batch []byte, h *record.BatchHeader, from int64, bound Bound) []consumed {
	var out []consumed
	for r := range allRecords(tb, batch) {
		if r.Offset < from {
			continue
		}
		c := consumed{Topic: l.partition.Topic, Partition: l.partition.Partition, Isolation: "read_uncommitted",
			Offset: r.Offset, Timestamp: r.Timestamp, TimestampType: "CreateTime", LeaderEpoch: h.PartitionLeaderEpoch}
		if bound == BoundStable {
			c.Isolation = "read_committed"
		}
		if h.LogAppendTime() {
			c.TimestampType = "LogAppendTime"
		}
		if r.Key != nil {
			c.Key = ptr(string(r.Key))
		}
		if r.Value != nil {
			c.Value = ptr(string(r.Value))
		}
		for k, v := range r.Headers.All() {
			c.Headers = append(c.Headers, []string{k, string(v)})
		}
		out = append(out, c)
	}
	return out
}

func ptr[T any](v T) *T { return &v }

func TestKafkaFolderIsReadAsKafkaReadsIt(t *testing.T) {
	want := oracleConsumed(t)
	fs := vfs.NewMem()
	untar(t, fs, "data.tar.gz")
	m := oracleManager(t, fs)
	require.EqualValues(t, 13, m.PreviousBrokerEpoch())
	require.Equal(t, "K8DxqwoeSvewdsbHSHa1MA", m.DirectoryID("data").String())
	for l := range m.Logs() {
		if strings.HasPrefix(l.Partition().Topic, "__") {
			continue
		}
		for isolation, bound := range map[string]Bound{"read_uncommitted": BoundHighWatermark, "read_committed": BoundStable} {
			for _, maxBytes := range []int{1, 700, 1 << 20} {
				require.Equal(t, want[l.Partition()][isolation], consume(t, l, bound, maxBytes), "%s %s", l.Partition(), isolation)
			}
		}
		delete(want, l.Partition())
	}
	require.Empty(t, want)
}

type oracleOffsets struct {
	Topic              string           `json:"topic"`
	Partition          int32            `json:"partition"`
	Isolation          string           `json:"isolation"`
	Beginning          int64            `json:"beginning"`
	End                int64            `json:"end"`
	OffsetsForTimes    [][]*json.Number `json:"offsetsForTimes"`
	MaxTimestampOffset int64            `json:"maxTimestampOffset"`
	MaxTimestamp       int64            `json:"maxTimestamp"`
}

func TestKafkaFolderAnswersListOffsetsAsKafkaDid(t *testing.T) {
	fs := vfs.NewMem()
	untar(t, fs, "data.tar.gz")
	m := oracleManager(t, fs)
	f, err := os.Open(filepath.Join("testdata", "segments", "offsets.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var o oracleOffsets
		require.NoError(t, json.Unmarshal(lines.Bytes(), &o))
		if o.Isolation == "" || strings.HasPrefix(o.Topic, "__") {
			continue
		}
		n++
		l, ok := m.Log(TopicPartition{o.Topic, o.Partition})
		require.True(t, ok, o.Topic)
		start, stable, hw, _ := l.Offsets()
		bound, end := BoundHighWatermark, hw
		if o.Isolation == "read_committed" {
			bound, end = BoundStable, stable
		}
		require.Equal(t, o.Beginning, start, o.Topic)
		require.Equal(t, o.End, end, "%s %s", o.Topic, o.Isolation)
		largest, err := l.MaxTimestampOffset()
		require.NoError(t, err)
		require.Equal(t, o.MaxTimestampOffset, largest.Offset, o.Topic)
		require.Equal(t, o.MaxTimestamp, largest.Timestamp, o.Topic)
		for _, q := range o.OffsetsForTimes {
			ts, _ := q[0].Int64()
			got, err := l.OffsetForTimestamp(ts, bound)
			require.NoError(t, err)
			want := nothingFound
			if q[1] != nil {
				want.LeaderEpoch = 0
				want.Offset, _ = q[1].Int64()
				want.Timestamp, _ = q[2].Int64()
			}
			require.Equal(t, want, got, "%s %s %d", o.Topic, o.Isolation, ts)
		}
	}
	require.GreaterOrEqual(t, n, 30)
}

func TestRecoveryOfKafkaFolderRebuildsItsIndexes(t *testing.T) {
	fs := vfs.NewMem()
	untar(t, fs, "data.tar.gz")
	before := tree(t, fs, "data")
	for _, info := range must(fs.List("data")) {
		p, ok := parseDirName(info.Name)
		if !info.Dir || !ok || p.Topic == "compacted" {
			continue // Kafka's cleaner indexes as it copies; its entries are its own
		}
		l, err := OpenLog(LogOptions{FS: fs, Dir: "data/" + info.Name, Partition: p, Config: oracleConfig(p.Topic)}, t0)
		require.NoError(t, err)
		require.NoError(t, l.Close(t0))
	}
	after := tree(t, fs, "data")
	for name, want := range before {
		if strings.Contains(name, "compacted") || strings.Contains(name, "to-delete") || strings.HasPrefix(name, "data/__cluster_metadata-0/") {
			continue
		}
		if strings.HasPrefix(name, "data/empty-") && strings.HasSuffix(name, epochCheckpointFile) {
			continue // an epoch that begins at the log end goes on loading; the leader assigns it again
		}
		require.Equal(t, want, after[name], name)
	}
	added := slices.DeleteFunc(keys(after), func(n string) bool { _, ok := before[n]; return ok })
	require.Empty(t, added)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func keys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
