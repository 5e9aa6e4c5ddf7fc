package raft

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/record"
)

var at = time.UnixMilli(1_796_000_000_000)

// memoryLog is a Log in memory that checks what a log relies on: offsets follow each other, epochs never go back.
type memoryLog struct {
	t       testing.TB
	data    []byte
	start   int64
	end     int64
	synced  int64
	epoch   int32
	hw      int64
	failing error
	calls   *[]string
}

func newLog(t testing.TB) *memoryLog { return &memoryLog{t: t, epoch: -1, calls: new([]string)} }

func (l *memoryLog) Append(batch []byte, epoch int32, _ time.Time) error {
	if l.failing != nil {
		return l.failing
	}
	require.NoError(l.t, record.Validate(batch))
	h, err := record.ParseHeader(batch)
	require.NoError(l.t, err)
	require.Equal(l.t, l.end, h.BaseOffset)
	require.Equal(l.t, epoch, h.PartitionLeaderEpoch)
	require.GreaterOrEqual(l.t, epoch, l.epoch)
	l.data, l.end, l.epoch = append(l.data, batch...), h.LastOffset()+1, epoch
	*l.calls = append(*l.calls, fmt.Sprint("append ", h.BaseOffset))
	return nil
}

func (l *memoryLog) Flush(time.Time) error {
	l.synced = l.end
	*l.calls = append(*l.calls, "flush")
	return nil
}

func (l *memoryLog) Read(dst []byte, from int64, _ int) ([]byte, error) {
	rest := l.data
	for len(rest) > 0 {
		one, after, err := record.Next(rest)
		require.NoError(l.t, err)
		h, _ := record.ParseHeader(one)
		if h.LastOffset() >= from {
			return append(dst, one...), nil // a batch at a time: reading has to go on
		}
		rest = after
	}
	return dst, nil
}

func (l *memoryLog) StartOffset() int64 { return l.start }
func (l *memoryLog) EndOffset() int64   { return l.end }
func (l *memoryLog) LastEpoch() int32   { return l.epoch }
func (l *memoryLog) SetHighWatermark(o int64) {
	require.LessOrEqual(l.t, o, l.synced, "committed before it was synced")
	l.hw = o
	*l.calls = append(*l.calls, fmt.Sprint("committed ", o))
}
func (l *memoryLog) DeleteBefore(o int64) error { l.start = o; return nil }
func (l *memoryLog) Close(time.Time) error      { return nil }

func options(t testing.TB, log Log, fsys vfs.FS) Options {
	require.NoError(t, fsys.MkdirAll("/m"))
	return Options{FS: fsys, Dir: "/m", Log: log, Retention: Retention{Bytes: -1, Age: -1},
		Self: Voter{ID: 1, DirectoryID: wire.UUID{15: 9}, Endpoints: []Endpoint{{"CONTROLLER", "127.0.0.1", 9093}}}}
}

func values(texts ...string) (out [][]byte) {
	for _, s := range texts {
		out = append(out, []byte(s))
	}
	return out
}

// collected gathers what a state machine is given.
type collected []string

func (c *collected) load(b Batch) error {
	for i, v := range b.Values {
		where := fmt.Sprint(b.BaseOffset+int64(i), "/", b.Epoch)
		if b.Checkpoint != nil {
			where = "checkpoint " + b.Checkpoint.String()
		}
		*c = append(*c, where+" "+string(v))
	}
	return nil
}

func TestEachStartLeadsANewEpochAndLoadsEverything(t *testing.T) {
	fsys, log := vfs.NewMem(), newLog(t)
	o := options(t, log, fsys)
	require.NoError(t, Format(at, o, values("level")))
	formatted, err := Formatted(fsys, "/m")
	require.NoError(t, err)
	require.True(t, formatted)

	var got collected
	q, fresh, err := Open(at, o, got.load)
	require.NoError(t, err)
	require.True(t, fresh)
	require.Equal(t, LeaderAndEpoch{1, 1}, q.Leader())
	require.Equal(t, collected{"checkpoint 00000000000000000000-0000000000 level"}, got)
	require.EqualValues(t, 3, q.EndOffset(), "LeaderChange, KRaftVersion, KRaftVoters")
	last, err := q.Append(at, 1, values("a", "b"))
	require.NoError(t, err)
	require.EqualValues(t, 4, last)
	require.EqualValues(t, 5, q.HighWatermark())
	_, err = q.Append(at, 2, values("c"))
	require.ErrorIs(t, err, ErrNotLeader)
	require.NoError(t, q.Close(at))
	_, err = q.Append(at, 1, values("c"))
	require.ErrorIs(t, err, ErrNotLeader)

	got = nil
	q, fresh, err = Open(at, o, got.load)
	require.NoError(t, err)
	require.False(t, fresh)
	require.Equal(t, LeaderAndEpoch{1, 2}, q.Leader())
	require.EqualValues(t, 6, q.EndOffset(), "voters stand in the log once")
	require.Equal(t, collected{"checkpoint 00000000000000000000-0000000000 level", "3/1 a", "4/1 b"}, got)
	require.Equal(t, []Voter{o.Self}, q.Voters())
}

func TestRecordsAreSyncedBeforeTheyAreCommitted(t *testing.T) {
	log := newLog(t)
	q, _, err := Open(at, options(t, log, vfs.NewMem()), new(collected).load)
	require.NoError(t, err)
	*log.calls = nil
	_, err = q.Append(at, 1, values("a"))
	require.NoError(t, err)
	require.Equal(t, []string{"append 3", "flush", "committed 4"}, *log.calls)
	log.failing = errors.New("disk full")
	_, err = q.Append(at, 1, values("b"))
	require.ErrorIs(t, err, log.failing)
}

func TestAStaticQuorumHasNoVotersInItsLog(t *testing.T) {
	fsys := vfs.NewMem()
	o := options(t, newLog(t), fsys)
	o.Self.Endpoints = nil
	q, _, err := Open(at, o, new(collected).load)
	require.NoError(t, err)
	require.EqualValues(t, 1, q.EndOffset())
	require.Zero(t, q.KRaftVersion())
	b, err := vfs.ReadFile(fsys, "/m/quorum-state")
	require.NoError(t, err)
	require.Equal(t, `{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}`, string(b))
}

func TestACheckpointReplacesTheLogBelowIt(t *testing.T) {
	fsys, log := vfs.NewMem(), newLog(t)
	o := options(t, log, fsys)
	o.Retention.Bytes = 1
	require.NoError(t, Format(at, o, values("level")))
	q, _, err := Open(at, o, new(collected).load)
	require.NoError(t, err)
	_, err = q.Append(at, 1, values("a", "b"))
	require.NoError(t, err)
	require.NoError(t, q.WriteCheckpoint(at, CheckpointID{5, 1}, at.UnixMilli(), list("ab")))
	_, err = q.Append(at, 1, values("c"))
	require.NoError(t, err)
	require.EqualValues(t, 5, log.start, "retention of one byte keeps nothing but the newest checkpoint")

	var got collected
	q, _, err = Open(at, o, got.load)
	require.NoError(t, err)
	require.Equal(t, collected{"checkpoint 00000000000000000005-0000000001 ab", "5/1 c"}, got)
	require.Equal(t, []Voter{o.Self}, q.Voters())
}

func list(texts ...string) func() ([]byte, bool, error) {
	return func() ([]byte, bool, error) {
		if len(texts) == 0 {
			return nil, false, nil
		}
		v := texts[0]
		texts = texts[1:]
		return []byte(v), true, nil
	}
}

func TestCheckpointsOfAnySizeComeBackWhole(t *testing.T) {
	big := string(make([]byte, maxCheckpointBatch+5))
	for name, texts := range map[string][]string{
		"empty": nil, "one": {"a"}, "two batches": {big[:maxCheckpointBatch-100], big[:200]}, "larger than a batch": {big, "a", big},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			require.NoError(t, fsys.MkdirAll("/m"))
			id := CheckpointID{7, 3}
			require.NoError(t, writeCheckpoint(fsys, "/m", id, nil, 5, 4, list(texts...)))
			var got []string
			voters, err := ReadCheckpoint(fsys, "/m", id, func(b Batch) error {
				require.EqualValues(t, 3, b.Epoch)
				for _, v := range b.Values {
					got = append(got, string(v))
				}
				return nil
			})
			require.NoError(t, err)
			require.Nil(t, voters)
			require.Equal(t, len(texts), len(got))
			for i := range texts {
				require.True(t, texts[i] == got[i])
			}
		})
	}
}

func TestADamagedCheckpointIsRefused(t *testing.T) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll("/m"))
	id := CheckpointID{7, 3}
	require.NoError(t, writeCheckpoint(fsys, "/m", id, nil, 5, 4, list("a", "b")))
	name := "/m/" + id.String() + checkpointSuffix
	whole, err := vfs.ReadFile(fsys, name)
	require.NoError(t, err)
	for cut := range whole {
		require.NoError(t, vfs.WriteFile(fsys, name, whole[:cut]))
		_, err := ReadCheckpoint(fsys, "/m", id, func(Batch) error { return nil })
		require.Error(t, err, "cut at %d", cut)
	}
	whole[len(whole)/2] ^= 1
	require.NoError(t, vfs.WriteFile(fsys, name, whole))
	_, err = ReadCheckpoint(fsys, "/m", id, func(Batch) error { return nil })
	require.Error(t, err)
}

func TestHalfWrittenCheckpointsAreRemoved(t *testing.T) {
	fsys := vfs.NewMem()
	require.NoError(t, fsys.MkdirAll("/m"))
	require.NoError(t, vfs.WriteFile(fsys, "/m/00000000000000000007-0000000003.checkpoint.part", []byte("x")))
	require.NoError(t, vfs.WriteFile(fsys, "/m/other.checkpoint", []byte("x")))
	files, err := ListCheckpoints(fsys, "/m")
	require.NoError(t, err)
	require.Empty(t, files)
	infos, err := fsys.List("/m")
	require.NoError(t, err)
	require.Len(t, infos, 1)
}

func TestRetentionKeepsTheNewestCheckpoint(t *testing.T) {
	file := func(offset, size int64, age time.Duration) CheckpointFile {
		return CheckpointFile{CheckpointID{offset, 1}, size, at.Add(-age)}
	}
	files := []CheckpointFile{file(0, 10, 3*time.Hour), file(5, 10, 2*time.Hour), file(9, 10, time.Hour)}
	require.Zero(t, Retention{Bytes: -1, Age: -1}.expired(files, 100, at))
	require.Equal(t, 1, Retention{Bytes: 20, Age: -1}.expired(files, 0, at))
	require.Equal(t, 2, Retention{Bytes: -1, Age: 90 * time.Minute}.expired(files, 0, at))
	require.Equal(t, 2, Retention{Bytes: 0, Age: 0}.expired(files, 0, at))
}

func TestACheckpointAheadOfTheLogIsRefused(t *testing.T) {
	fsys := vfs.NewMem()
	o := options(t, newLog(t), fsys)
	require.NoError(t, writeCheckpoint(fsys, "/m", CheckpointID{7, 3}, nil, 5, 4, list("a")))
	_, _, err := Open(at, o, new(collected).load)
	require.ErrorContains(t, err, "checkpoint 00000000000000000007-0000000003 is ahead of the log, which ends at 0")
}

func ExampleOpen() {
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("/m"); err != nil {
		panic(err)
	}
	o := Options{FS: fsys, Dir: "/m", Log: newLog(nil), Self: Voter{ID: 1}}
	q, fresh, err := Open(at, o, func(Batch) error { return nil })
	fmt.Println(q.Leader(), fresh, err)
	// Output: {1 1} true <nil>
}
