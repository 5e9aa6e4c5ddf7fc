package driver

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/raft"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

const metadataDir = "/data/__cluster_metadata-0"

// realFolder is the metadata log of a broker of Apache Kafka 4.4.0 that made, changed and deleted topics and wrote
// checkpoints on its way (testdata/README.md).
func realFolder(t testing.TB) *vfs.MemFS {
	f, err := os.Open("testdata/metadata-4.4.0.tar.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	fsys := vfs.NewMem()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return fsys
		}
		require.NoError(t, err)
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, fsys.MkdirAll("/data/"+h.Name))
			continue
		}
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, vfs.WriteFile(fsys, "/data/"+h.Name, b))
	}
}

// TestReplayingApacheKafkasLogGivesItsCheckpoints is invariant R9 against Apache Kafka: at the offset of each of its
// checkpoints the image that we replayed from its log equals the image that the checkpoint holds.
func TestReplayingApacheKafkasLogGivesItsCheckpoints(t *testing.T) {
	fsys := realFolder(t)
	o := options(t, fsys, nil)
	log, err := openLog(&o, metadataDir, time.UnixMilli(1_796_000_000_000))
	require.NoError(t, err)
	files, err := raft.ListCheckpoints(fsys, metadataDir)
	require.NoError(t, err)
	require.Len(t, files, 9)
	for _, f := range files[1:] {
		loader := image.NewLoader(image.Empty())
		_, err := raft.ReadCheckpoint(fsys, metadataDir, f.ID, func(b raft.Batch) error {
			for _, v := range b.Values {
				rec, err := image.ParseRecord(v)
				require.NoError(t, err)
				require.NoError(t, loader.Apply(f.ID.Offset-1, f.ID.Epoch, rec))
			}
			return nil
		})
		require.NoError(t, err)
		_, want := loader.Take()
		got := content(t, replayTo(t, log, f.ID.Offset))
		for i, value := range content(t, want) {
			require.Equal(t, value, got[i], "checkpoint %s, record %d", f.ID, i)
		}
		require.Len(t, got, len(content(t, want)))
	}
}

// replayTo applies the log's records below an offset.
func replayTo(t *testing.T, log raft.Log, end int64) *image.Image {
	loader := image.NewLoader(image.Empty())
	require.NoError(t, raft.ReplayLog(log, 0, func(b raft.Batch) error {
		for i, v := range b.Values {
			if offset := b.BaseOffset + int64(i); offset < end {
				rec, err := image.ParseRecord(v)
				require.NoError(t, err)
				require.NoError(t, loader.Apply(offset, b.Epoch, rec))
			}
		}
		return nil
	}, nil))
	_, img := loader.Take()
	return img
}

// TestABrokerGoesOnFromApacheKafkasFolder: its topics, configs and ids are there, and a new epoch is led.
func TestABrokerGoesOnFromApacheKafkasFolder(t *testing.T) {
	fsys := realFolder(t)
	d, err := Open(options(t, fsys, nil))
	require.NoError(t, err)
	require.EqualValues(t, 1, d.KRaftVersion())
	require.Equal(t, raft.LeaderAndEpoch{LeaderID: 1, Epoch: 2}, d.quorum.Leader())
	img := d.Image()
	require.Equal(t, 13, img.TopicCount(), "%v", img.TopicNames())
	require.Len(t, img.Topic("empty").Partitions, 5)
	require.Nil(t, img.Topic("to-delete"))
	require.EqualValues(t, 1000, img.NextProducerID())
	require.NoError(t, d.Close())
}
