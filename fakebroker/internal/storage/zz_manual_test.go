package storage

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
)

func TestZZManual(t *testing.T) {
	dir := os.Getenv("ZZDIR")
	if dir == "" {
		t.Skip()
	}
	os.RemoveAll(dir)
	n := byte(0)
	m, err := NewManager(ManagerOptions{FS: vfs.OSFS{}, Dirs: []string{dir}, ClusterID: oracleCluster, NodeID: 1,
		NewUUID: func() wire.UUID { n++; return testUUID(n) }}, time.Now())
	require.NoError(t, err)
	require.NoError(t, m.LoadLogs(func(string) LogConfig { return DefaultLogConfig() }, t0))
	cfg := DefaultLogConfig()
	cfg.SegmentBytes, cfg.IndexIntervalBytes = 20000, 1000
	l, err := m.Create(TopicPartition{"plain", 0}, testUUID(70), cfg, t0)
	require.NoError(t, err)
	require.NoError(t, l.AssignEpochStart(0))
	for i := range 200 {
		appendOK(t, l, produced{values: []string{"first", strings.Repeat("x", i)}, id: 1, seq: int32(2 * i), codec: 1 % 5, at: t0.Add(time.Duration(i) * time.Second)}.bytes())
	}
	_, err = m.Create(TopicPartition{"empty", 3}, testUUID(71), cfg, t0)
	require.NoError(t, err)
	l, err = m.Create(TopicPartition{"txn", 0}, testUUID(72), cfg, t0)
	require.NoError(t, err)
	for i := range int32(200) {
		appendOK(t, l, produced{values: []string{"txn", fmt.Sprint(i)}, id: 2, seq: 2 * i, txn: true, codec: 4, at: t0.Add(time.Duration(i) * time.Second)}.bytes())
		_, err := l.AppendEndTxnMarker(EndTxnMarker{ProducerID: 1, Commit: i%2 == 0}, 0, t0)
		require.NoError(t, err)
	}
	appendOK(t, l, produced{values: []string{"open"}, id: 3, seq: 0, txn: true}.bytes())
	require.NoError(t, m.Close(5, t0))
}
