package storage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

func testManager(tb testing.TB, fs vfs.FS, change ...func(*ManagerOptions)) *Manager {
	tb.Helper()
	n := byte(0)
	opts := ManagerOptions{FS: fs, Dirs: []string{"data"}, ClusterID: oracleCluster, NodeID: 1,
		NewUUID: func() wire.UUID { n++; return testUUID(n) }}
	for _, f := range change {
		f(&opts)
	}
	m, err := NewManager(opts, t0)
	require.NoError(tb, err)
	require.NoError(tb, m.LoadLogs(func(string) LogConfig { return DefaultLogConfig() }, t0))
	return m
}

func create(tb testing.TB, m *Manager, topic string, partition int32) *Log {
	tb.Helper()
	l, err := m.Create(TopicPartition{topic, partition}, testUUID(50), DefaultLogConfig(), t0)
	require.NoError(tb, err)
	return l
}

func TestFolderAfterACleanStopLooksAsKafkas(t *testing.T) {
	fileSystems(t, func(t *testing.T, fs vfs.FS) {
		m := testManager(t, fs)
		require.NoError(t, create(t, m, "empty", 0).AssignEpochStart(0))
		l := create(t, m, "orders", 7)
		appendOK(t, l, produced{values: []string{"a"}, id: 1}.bytes())
		l.SetHighWatermark(1)
		require.NoError(t, m.Close(13, t0))
		files := tree(t, fs, "data")
		require.Equal(t, []string{
			"data/.kafka_cleanshutdown", "data/.lock", "data/cleaner-offset-checkpoint",
			"data/empty-0/00000000000000000000.index", "data/empty-0/00000000000000000000.log", "data/empty-0/00000000000000000000.timeindex",
			"data/empty-0/leader-epoch-checkpoint", "data/empty-0/partition.metadata",
			"data/log-start-offset-checkpoint", "data/meta.properties",
			"data/orders-7/00000000000000000000.index", "data/orders-7/00000000000000000000.log", "data/orders-7/00000000000000000000.timeindex",
			"data/orders-7/00000000000000000001.snapshot", "data/orders-7/leader-epoch-checkpoint", "data/orders-7/partition.metadata",
			"data/recovery-point-offset-checkpoint", "data/replication-offset-checkpoint",
		}, slices.Sorted(maps.Keys(files)))
		require.Equal(t, `{"version":0,"brokerEpoch":13}`, files["data/.kafka_cleanshutdown"])
		require.Equal(t, "#\n#Tue Nov 14 22:13:20 UTC 2023\nnode.id=1\ndirectory.id=AQAAAAAAAAAAAAAAAAAAAQ\nversion=1\ncluster.id="+oracleCluster+"\n", files["data/meta.properties"])
		require.Equal(t, "version: 0\ntopic_id: "+testUUID(50).String(), files["data/orders-7/partition.metadata"])
		require.Equal(t, "0\n1\n0 0\n", files["data/empty-0/leader-epoch-checkpoint"])
		require.Equal(t, "0\n2\nempty 0 0\norders 7 1\n", files["data/recovery-point-offset-checkpoint"])
		require.Equal(t, "0\n2\nempty 0 0\norders 7 1\n", files["data/replication-offset-checkpoint"])
		require.Equal(t, "0\n0\n", files["data/log-start-offset-checkpoint"])
		require.Equal(t, timeEntrySize, len(files["data/orders-7/00000000000000000000.timeindex"]))

		again := testManager(t, fs)
		require.EqualValues(t, 13, again.PreviousBrokerEpoch())
		l, ok := again.Log(TopicPartition{"orders", 7})
		require.True(t, ok)
		require.Equal(t, testUUID(50), l.TopicID())
		require.EqualValues(t, 1, l.HighWatermark())
		_, err := fs.Stat("data/.kafka_cleanshutdown")
		require.ErrorIs(t, err, vfs.ErrNotExist, "while running a stop would be unclean")
		require.NoError(t, again.Close(14, t0))
		require.NoError(t, again.Close(14, t0))
	})
}

func TestLogDirBelongsToOneBrokerOfOneCluster(t *testing.T) {
	fs := vfs.NewMem()
	m := testManager(t, fs)
	_, err := NewManager(ManagerOptions{FS: fs, Dirs: []string{"data"}, ClusterID: oracleCluster, NodeID: 1}, t0)
	require.ErrorIs(t, err, vfs.ErrLocked)
	require.NoError(t, m.Close(-1, t0))
	for _, other := range []ManagerOptions{{ClusterID: "other", NodeID: 1}, {ClusterID: oracleCluster, NodeID: 2}} {
		other.FS, other.Dirs = fs, []string{"data"}
		_, err = NewManager(other, t0)
		require.ErrorContains(t, err, "cluster.id="+oracleCluster+" node.id=1, but this broker is")
	}
	p, err := ReadMetaProperties(fs, "data")
	require.NoError(t, err)
	require.Equal(t, MetaProperties{NodeID: 1, ClusterID: oracleCluster, DirectoryID: testUUID(1)}, p)
	_, err = ReadMetaProperties(fs, "new")
	require.ErrorIs(t, err, vfs.ErrNotExist)
}

func TestClusterIDIsAdoptedOrMade(t *testing.T) {
	fs := vfs.NewMem()
	unset := func(o *ManagerOptions) { o.ClusterID = "" }
	m := testManager(t, fs, unset)
	made := m.ClusterID()
	require.Len(t, made, 22)
	require.NoError(t, m.Close(-1, t0))
	require.Equal(t, made, testManager(t, fs, unset).ClusterID())
}

func TestCreateReturnsTheLogThatIsThere(t *testing.T) {
	m := testManager(t, vfs.NewMem())
	l := create(t, m, "orders", 0)
	require.Same(t, l, create(t, m, "orders", 0))
	_, err := m.Create(orders, testUUID(99), DefaultLogConfig(), t0)
	require.ErrorIs(t, err, errcode.InconsistentTopicId)
	create(t, m, "orders", 10)
	create(t, m, "orders", 2)
	create(t, m, "a", 0)
	var names []string
	for l := range m.Logs() {
		names = append(names, l.Partition().String())
	}
	require.Equal(t, []string{"a-0", "orders-0", "orders-2", "orders-10"}, names)
}

func TestLogsAreSpreadOverLogDirs(t *testing.T) {
	m := testManager(t, vfs.NewMem(), func(o *ManagerOptions) { o.Dirs = []string{"d1", "d2"} })
	counts := make(map[string]int)
	for p := range int32(10) {
		counts[create(t, m, "orders", p).LogDir()]++
	}
	require.Equal(t, map[string]int{"d1": 5, "d2": 5}, counts)
	require.NotEqual(t, m.DirectoryID("d1"), m.DirectoryID("d2"))
	require.Equal(t, []string{"d1", "d2"}, m.Dirs())
}

func TestDeletedLogIsGoneAtOnceAndItsFilesLater(t *testing.T) {
	fs := vfs.NewMem()
	m := testManager(t, fs)
	l := create(t, m, "orders", 0)
	appendOK(t, l, batchOf("a"))
	held, err := l.Read(0, 1000, BoundLogEnd, true)
	require.NoError(t, err)
	require.NoError(t, m.Delete(orders, t0))
	require.ErrorIs(t, m.Delete(orders, t0), errcode.UnknownTopicOrPartition)
	_, err = l.AppendAsLeader(batchOf("b"), 0, FromClient, t0)
	require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
	_, err = l.Read(0, 1000, BoundLogEnd, true)
	require.ErrorIs(t, err, errcode.UnknownTopicOrPartition)
	b, err := held.Records.AppendTo(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, values(t, b))
	held.Records.Release()

	again := create(t, m, "orders", 0)
	require.Zero(t, again.LogEndOffset())
	folders := func() (n int) {
		for _, info := range must(fs.List("data")) {
			if strings.HasSuffix(info.Name, deleteDirSuffix) {
				n++
			}
		}
		return n
	}
	m.Tick(t0.Add(59 * time.Second))
	require.Equal(t, 1, folders())
	m.Tick(t0.Add(61 * time.Second))
	require.Zero(t, folders())
}

func TestFoldersOfDeletedLogsAreRemovedAfterARestart(t *testing.T) {
	fs := vfs.NewMem()
	m := testManager(t, fs)
	create(t, m, "orders", 0)
	require.NoError(t, m.Delete(orders, t0))
	require.NoError(t, m.Close(-1, t0))
	m = testManager(t, fs)
	require.Empty(t, slices.Collect(m.Logs()))
	m.Tick(t0.Add(2 * time.Second))
	for _, info := range must(fs.List("data")) {
		require.False(t, info.Dir, info.Name)
	}
}

func TestLongTopicNamesFitWhenDeleted(t *testing.T) {
	p := TopicPartition{strings.Repeat("x", 249), 12345}
	name := deleteDirName(p, testUUID(1))
	require.LessOrEqual(t, len(name), 255)
	require.True(t, strings.HasSuffix(name, "-12345.01000000000000000000000000000001-delete"))
	_, ok := parseDirName(name)
	require.False(t, ok)
}

func TestPartitionFoldersAreTold(t *testing.T) {
	for name, want := range map[string]TopicPartition{
		"orders-0": {"orders", 0}, "a-b-17": {"a-b", 17}, "__consumer_offsets-49": {"__consumer_offsets", 49},
	} {
		got, ok := parseDirName(name)
		require.True(t, ok)
		require.Equal(t, want, got)
		require.Equal(t, name, got.String())
	}
	for _, name := range []string{"orders", "-1", "orders-", "orders-01", "orders-x", "orders-99999999999", "x-1.abc-delete", "x-1.abc-future"} {
		_, ok := parseDirName(name)
		require.False(t, ok, name)
	}
}

func TestKilledBrokerFindsEverythingAgain(t *testing.T) {
	fs := vfs.NewMem()
	m := testManager(t, fs)
	for p := range int32(3) {
		l := create(t, m, "orders", p)
		for i := range 10 * int(p+1) {
			appendOK(t, l, batchOf(fmt.Sprint(i)))
		}
		l.SetHighWatermark(5)
	}
	m.Checkpoint()
	m.unlock() // the process is gone, its lock with it
	m = testManager(t, fs)
	require.EqualValues(t, -1, m.PreviousBrokerEpoch())
	for p := range int32(3) {
		l, ok := m.Log(TopicPartition{"orders", p})
		require.True(t, ok)
		require.EqualValues(t, 10*(p+1), l.LogEndOffset())
		require.EqualValues(t, 5, l.HighWatermark())
	}
}

func TestUnreadableCheckpointsCostTimeNotRecords(t *testing.T) {
	fs := vfs.NewMem()
	m := testManager(t, fs)
	l := create(t, m, "orders", 0)
	appendOK(t, l, batchOf("a", "b"))
	require.NoError(t, l.Flush(t0))
	m.Checkpoint()
	m.unlock()
	for _, name := range []string{RecoveryPointCheckpoint, LogStartCheckpoint, HighWatermarkCheckpoint} {
		require.NoError(t, vfs.WriteFile(fs, "data/"+name, []byte("0\n1\nnonsense")))
	}
	l, ok := testManager(t, fs).Log(orders)
	require.True(t, ok)
	require.EqualValues(t, 2, l.LogEndOffset())
}

func TestTickDoesWhatIsDue(t *testing.T) {
	fs := vfs.NewCount(vfs.NewMem())
	m := testManager(t, fs)
	cfg := DefaultLogConfig()
	cfg.FlushMs, cfg.SegmentBytes, cfg.RetentionMs = 5000, 100, 1000
	l, err := m.Create(orders, testUUID(50), cfg, t0)
	require.NoError(t, err)
	for range 3 {
		appendOK(t, l, batchOf("a"))
	}
	require.Equal(t, t0.Add(time.Second), m.Deadline())
	m.Tick(t0.Add(time.Second))
	require.EqualValues(t, 2, l.RecoveryPoint(), "finished segments are flushed soon")
	m.Tick(t0.Add(5 * time.Second))
	require.EqualValues(t, 3, l.RecoveryPoint(), "the active one after flush.ms")
	l.SetHighWatermark(3)
	m.Tick(t0.Add(10 * time.Second))
	require.Contains(t, tree(t, fs, "data")["data/replication-offset-checkpoint"], "orders 0 3")
	require.Len(t, l.Segments(), 3)
	m.Tick(t0.Add(301 * time.Second))
	require.Equal(t, []int64{3}, l.Segments())
	require.Contains(t, tree(t, fs, "data")["data/recovery-point-offset-checkpoint"], "orders 0 3")
}

func TestDiskErrorEndsAllLogsOfItsDir(t *testing.T) {
	fs := vfs.NewFault(vfs.NewMem())
	var told []string
	m := testManager(t, fs, func(o *ManagerOptions) {
		o.Dirs = []string{"d1", "d2"}
		o.OnDirFailure = func(dir string, _ error) { told = append(told, dir) }
	})
	var logs []*Log
	for p := range int32(4) {
		logs = append(logs, create(t, m, "orders", p))
	}
	bad := logs[0].LogDir()
	fs.Set(func(op vfs.Op) error {
		if op.Kind == vfs.OpAppend && strings.HasPrefix(op.Name, bad) {
			return errors.New("input/output error")
		}
		return nil
	})
	_, err := logs[0].AppendAsLeader(batchOf("a"), 0, FromClient, t0)
	require.ErrorIs(t, err, errcode.KafkaStorageError)
	require.Equal(t, []string{bad}, told)
	for _, l := range logs {
		_, err := l.AppendAsLeader(batchOf("a"), 0, FromClient, t0)
		require.Equal(t, l.LogDir() == bad, err != nil)
	}
	require.NotEqual(t, bad, create(t, m, "other", 0).LogDir())
	require.Error(t, m.Close(3, t0))
	_, err = fs.Stat(bad + "/" + CleanShutdownFile)
	require.ErrorIs(t, err, vfs.ErrNotExist)
}

// Around 5 ms on an idle core: a log costs the disk what it cannot do without, and files are made when they are needed.
func TestThousandLogsAreMadeWithFewCallsOfTheDisk(t *testing.T) {
	fs := vfs.NewFault(vfs.NewMem())
	m := testManager(t, fs)
	calls := 0
	fs.Set(func(vfs.Op) error { calls++; return nil })
	for p := range int32(1000) {
		create(t, m, "orders", p)
	}
	fs.Set(nil)
	require.LessOrEqual(t, calls, 5*1000)
	files, err := fs.List(m.dirs[0].path + "/orders-999")
	require.NoError(t, err)
	require.Len(t, files, 2, "a segment and partition.metadata; indexes come with the first entry")
}

func TestFilesOfTheQuorumAreLeftAlone(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("data/__cluster_metadata-0"))
	for _, name := range []string{"quorum-state", "00000000000000000000-0000000000.checkpoint"} {
		require.NoError(t, vfs.WriteFile(fs, "data/__cluster_metadata-0/"+name, []byte("x")))
	}
	m := testManager(t, fs)
	require.Empty(t, slices.Collect(m.Logs()))
	l, err := OpenLog(LogOptions{FS: fs, Dir: "data/__cluster_metadata-0", Partition: TopicPartition{MetadataTopic, 0}, Config: DefaultLogConfig()}, t0)
	require.NoError(t, err)
	require.NoError(t, l.Close(t0))
	files := tree(t, fs, "data/__cluster_metadata-0")
	require.Equal(t, "x", files["data/__cluster_metadata-0/quorum-state"])
	require.Equal(t, "x", files["data/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"])
}
