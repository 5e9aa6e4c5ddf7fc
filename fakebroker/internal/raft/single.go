package raft

import (
	"errors"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// Options say where and as whom a Single lives.
type Options struct {
	FS  vfs.FS
	Dir string // folder of the metadata log
	Log Log    // opened in Dir
	// Self is this voter. With endpoints the quorum is kraft.version 1, its voters stand in the log; without it is
	// kraft.version 0, as if controller.quorum.voters named only this node. A folder that exists decides for itself.
	Self      Voter
	Retention Retention
}

// Single is the quorum of one voter. It leads as long as it is open and commits whatever it has synced. It is owned by one
// goroutine, which blocks while it writes.
type Single struct {
	o       Options
	state   QuorumState
	dynamic bool // kraft.version 1
	voters  []Voter
	files   []CheckpointFile
	buf     []byte // batch under construction, reused
	closed  bool
}

// Format writes what makes a folder part of a new cluster: checkpoint 0-0 with the values given (the feature levels).
func Format(now time.Time, o Options, values [][]byte) error {
	var voters []Voter
	if len(o.Self.Endpoints) > 0 {
		voters = []Voter{o.Self}
	}
	next := func() ([]byte, bool, error) {
		if len(values) == 0 {
			return nil, false, nil
		}
		v := values[0]
		values = values[1:]
		return v, true, nil
	}
	return writeCheckpoint(o.FS, o.Dir, CheckpointID{}, voters, now.UnixMilli(), now.UnixMilli(), next)
}

// Formatted reports whether a folder holds a checkpoint or a quorum-state, that is, whether it belongs to a cluster already.
func Formatted(fsys vfs.FS, dir string) (bool, error) {
	files, err := ListCheckpoints(fsys, dir)
	if err != nil || len(files) > 0 {
		return len(files) > 0, err
	}
	_, found, err := readState(fsys, dir)
	return found, err
}

// Open reads what the folder holds: the newest checkpoint, then the log behind it, in order, to load. Then it takes the
// leadership of the next epoch. fresh reports that the log held nothing yet.
func Open(now time.Time, o Options, load func(Batch) error) (q *Single, fresh bool, err error) {
	q = &Single{o: o, dynamic: len(o.Self.Endpoints) > 0}
	state, found, err := readState(o.FS, o.Dir)
	if err != nil {
		return nil, false, err
	}
	q.state = state
	if found {
		q.dynamic = state.Version == 1
	}
	if err := q.load(load); err != nil {
		return nil, false, err
	}
	fresh = o.Log.EndOffset() == 0
	if err := q.lead(now, fresh); err != nil {
		return nil, false, err
	}
	return q, fresh, nil
}

// load hands everything that is committed, which with one voter is everything, to the state machine.
func (q *Single) load(yield func(Batch) error) (err error) {
	if q.files, err = ListCheckpoints(q.o.FS, q.o.Dir); err != nil {
		return err
	}
	from := q.o.Log.StartOffset()
	if n := len(q.files); n > 0 {
		newest := q.files[n-1].ID
		if newest.Offset > q.o.Log.EndOffset() {
			return fmt.Errorf("raft: checkpoint %s is ahead of the log, which ends at %d: was the log removed?", newest, q.o.Log.EndOffset())
		}
		voters, err := ReadCheckpoint(q.o.FS, q.o.Dir, newest, func(b Batch) error {
			b.Checkpoint = &newest
			return yield(b)
		})
		if err != nil {
			return err
		}
		if q.voters = voters; voters != nil {
			q.dynamic = true
		}
		from = max(from, newest.Offset)
	}
	return ReplayLog(q.o.Log, from, yield, q.noteControl)
}

func (q *Single) noteControl(kind record.ControlType, value []byte) (err error) {
	if kind == record.ControlKRaftVoters {
		q.dynamic = true
		q.voters, err = parseVoters(value)
	}
	return err
}

// lead takes the next epoch: first the vote on disk, then the LeaderChange record, then the leadership on disk.
func (q *Single) lead(now time.Time, fresh bool) error {
	if q.dynamic && len(q.voters) > 1 {
		return fmt.Errorf("raft: the folder belongs to a quorum of %d voters, this node runs one of 1", len(q.voters))
	}
	id := q.o.Self.ID
	q.state.LeaderEpoch = max(q.state.LeaderEpoch, q.o.Log.LastEpoch(), 0) + 1
	q.state.LeaderID, q.state.VotedID = NoLeader, id
	q.state.VotedDirectoryID, q.state.Version, q.state.CurrentVoters = q.o.Self.DirectoryID, 1, nil
	if !q.dynamic {
		q.state.VotedDirectoryID, q.state.Version, q.state.CurrentVoters = wire.UUID{}, 0, []int32{id}
	}
	if err := writeState(q.o.FS, q.o.Dir, q.state); err != nil {
		return err
	}
	me := []message.LeaderChangeMessageVoter{{VoterId: id}}
	controls := []control{{record.ControlLeaderChange, &message.LeaderChangeMessage{LeaderId: id, Voters: me, GrantingVoters: me}}}
	if q.dynamic && fresh {
		if q.voters == nil {
			q.voters = []Voter{q.o.Self}
		}
		controls = append(controls, votersControls(q.voters)...)
	}
	batch, err := appendControl(q.buf[:0], q.EndOffset(), q.state.LeaderEpoch, now.UnixMilli(), controls...)
	if err != nil {
		return err
	}
	if err := q.append(now, batch); err != nil {
		return err
	}
	q.state.LeaderID, q.state.VotedID, q.state.VotedDirectoryID = id, NoVote, wire.UUID{}
	return writeState(q.o.FS, q.o.Dir, q.state)
}

// append writes one batch, makes it durable and thereby committed.
func (q *Single) append(now time.Time, batch []byte) error {
	q.buf = batch
	if err := q.o.Log.Append(batch, q.state.LeaderEpoch, now); err != nil {
		return err
	}
	if err := q.o.Log.Flush(now); err != nil {
		return err
	}
	q.o.Log.SetHighWatermark(q.o.Log.EndOffset())
	return nil
}

// Leader implements Quorum.
func (q *Single) Leader() LeaderAndEpoch {
	if q.closed {
		return LeaderAndEpoch{NoLeader, q.state.LeaderEpoch}
	}
	return LeaderAndEpoch{q.o.Self.ID, q.state.LeaderEpoch}
}

// Voters returns the voters that stand in the log; the one static voter under kraft.version 0.
func (q *Single) Voters() []Voter {
	if q.voters == nil {
		return []Voter{q.o.Self}
	}
	return q.voters
}

// EndOffset implements Quorum.
func (q *Single) EndOffset() int64 { return q.o.Log.EndOffset() }

// HighWatermark implements Quorum: one voter commits when it has synced.
func (q *Single) HighWatermark() int64 { return q.o.Log.EndOffset() }

// Append implements Quorum.
func (q *Single) Append(now time.Time, epoch int32, values [][]byte) (last int64, err error) {
	if q.closed || epoch != q.state.LeaderEpoch {
		return 0, fmt.Errorf("%w: append in epoch %d, this node leads epoch %d (closed: %t)", ErrNotLeader, epoch, q.state.LeaderEpoch, q.closed)
	}
	if len(values) == 0 {
		return 0, errors.New("raft: append of nothing")
	}
	batch := appendData(q.buf[:0], q.EndOffset(), epoch, now.UnixMilli(), values)
	if err := q.append(now, batch); err != nil {
		return 0, err
	}
	return q.EndOffset() - 1, nil
}

// WriteCheckpoint implements Quorum, and removes what retention does not keep.
func (q *Single) WriteCheckpoint(now time.Time, id CheckpointID, lastTimestamp int64, next func() ([]byte, bool, error)) error {
	if id.Offset > q.HighWatermark() {
		panic(fmt.Sprintf("raft: checkpoint %s ahead of the high watermark %d", id, q.HighWatermark()))
	}
	var voters []Voter
	if q.dynamic {
		voters = q.Voters()
	}
	if err := writeCheckpoint(q.o.FS, q.o.Dir, id, voters, now.UnixMilli(), lastTimestamp, next); err != nil {
		return err
	}
	return q.clean(now)
}

// clean removes expired checkpoints, then the part of the log that only they needed.
func (q *Single) clean(now time.Time) (err error) {
	if q.files, err = ListCheckpoints(q.o.FS, q.o.Dir); err != nil {
		return err
	}
	n := q.o.Retention.expired(q.files, 0, now)
	for _, f := range q.files[:n] {
		if err := q.o.FS.Remove(q.o.Dir + "/" + f.ID.String() + checkpointSuffix); err != nil {
			return err
		}
	}
	q.files = q.files[n:]
	if n == 0 || len(q.files) == 0 {
		return nil
	}
	return q.o.Log.DeleteBefore(q.files[0].ID.Offset)
}

// Close implements Quorum.
func (q *Single) Close(now time.Time) error {
	if q.closed {
		return nil
	}
	q.closed = true
	return q.o.Log.Close(now)
}

// KRaftVersion is 1 when the voters stand in the log, 0 with a static quorum.
func (q *Single) KRaftVersion() int16 {
	if q.dynamic {
		return 1
	}
	return 0
}
