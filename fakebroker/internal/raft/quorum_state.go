package raft

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
)

// stateFile is the name of the quorum-state file within the metadata log's folder.
const stateFile = "quorum-state"

// NoVote is VotedID when no vote was given in the epoch.
const NoVote int32 = -1

// QuorumState is what a voter must not forget: the newest epoch it knows, that epoch's leader, and its own vote. It is
// one line of JSON, without a line feed, with the fields in this order:
//
//	data_version 0, static voters (kraft.version 0):
//	{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}
//	data_version 1, voters in the log (kraft.version 1):
//	{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}
type QuorumState struct {
	LeaderID         int32 // NoLeader when unknown
	LeaderEpoch      int32
	VotedID          int32     // NoVote when no vote was given
	VotedDirectoryID wire.UUID // version 1 only
	CurrentVoters    []int32   // version 0 only
	Version          int       // 0 or 1
}

type stateV0 struct {
	ClusterID     string    `json:"clusterId"`
	LeaderID      int32     `json:"leaderId"`
	LeaderEpoch   int32     `json:"leaderEpoch"`
	VotedID       int32     `json:"votedId"`
	AppliedOffset int64     `json:"appliedOffset"`
	CurrentVoters []voterV0 `json:"currentVoters"`
	DataVersion   int       `json:"data_version"`
}

type voterV0 struct {
	VoterID int32 `json:"voterId"`
}

type stateV1 struct {
	LeaderID         int32  `json:"leaderId"`
	LeaderEpoch      int32  `json:"leaderEpoch"`
	VotedID          int32  `json:"votedId"`
	VotedDirectoryID string `json:"votedDirectoryId"`
	DataVersion      int    `json:"data_version"`
}

// Encode returns the content of the file.
func (s QuorumState) Encode() []byte {
	var v any
	if s.Version == 0 {
		voters := make([]voterV0, 0, len(s.CurrentVoters))
		for _, id := range s.CurrentVoters {
			voters = append(voters, voterV0{id})
		}
		v = stateV0{LeaderID: s.LeaderID, LeaderEpoch: s.LeaderEpoch, VotedID: s.VotedID, CurrentVoters: voters}
	} else {
		v = stateV1{LeaderID: s.LeaderID, LeaderEpoch: s.LeaderEpoch, VotedID: s.VotedID,
			VotedDirectoryID: s.VotedDirectoryID.String(), DataVersion: 1}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("raft: quorum-state: " + err.Error()) // structs of numbers and strings
	}
	return b
}

// ParseQuorumState reads the content of the file. A state that cannot be trusted is an error: guessing an epoch could make
// two leaders.
func ParseQuorumState(b []byte) (QuorumState, error) {
	var head struct {
		DataVersion *int `json:"data_version"`
	}
	bad := func(err error) (QuorumState, error) {
		return QuorumState{}, fmt.Errorf("raft: quorum-state is damaged (restore it, or remove the folder and format again): %w", err)
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return bad(err)
	}
	if head.DataVersion == nil {
		return bad(errors.New("no data_version"))
	}
	var s QuorumState
	switch s.Version = *head.DataVersion; s.Version {
	case 0:
		v := stateV0{VotedID: NoVote, LeaderID: NoLeader}
		if err := strict(b, &v); err != nil {
			return bad(err)
		}
		s.LeaderID, s.LeaderEpoch, s.VotedID = v.LeaderID, v.LeaderEpoch, v.VotedID
		for _, voter := range v.CurrentVoters {
			s.CurrentVoters = append(s.CurrentVoters, voter.VoterID)
		}
	case 1:
		v := stateV1{VotedID: NoVote, LeaderID: NoLeader}
		if err := strict(b, &v); err != nil {
			return bad(err)
		}
		id, err := wire.ParseUUID(v.VotedDirectoryID)
		if err != nil {
			return bad(err)
		}
		s.LeaderID, s.LeaderEpoch, s.VotedID, s.VotedDirectoryID = v.LeaderID, v.LeaderEpoch, v.VotedID, id
	default:
		return bad(fmt.Errorf("data_version %d, known are 0 and 1", s.Version))
	}
	if s.LeaderEpoch < 0 || s.LeaderID < NoLeader || s.VotedID < NoVote {
		return bad(fmt.Errorf("epoch %d, leader %d, vote %d", s.LeaderEpoch, s.LeaderID, s.VotedID))
	}
	return s, nil
}

func strict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// readState returns the state of a folder; found is false in one that has never been part of a quorum.
func readState(fsys vfs.FS, dir string) (s QuorumState, found bool, err error) {
	b, err := vfs.ReadFile(fsys, dir+"/"+stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return QuorumState{}, false, nil
	}
	if err != nil {
		return QuorumState{}, false, err
	}
	s, err = ParseQuorumState(b)
	return s, err == nil, err
}

// writeState replaces the state, durably: it has to be on disk before anybody hears of the epoch or the vote.
func writeState(fsys vfs.FS, dir string, s QuorumState) error {
	return vfs.WriteFileAtomic(fsys, dir+"/"+stateFile, s.Encode(), true)
}
