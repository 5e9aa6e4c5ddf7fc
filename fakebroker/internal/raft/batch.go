package raft

import (
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/record"
)

// appendData appends a batch of record values without keys.
func appendData(dst []byte, base int64, epoch int32, timestamp int64, values [][]byte) []byte {
	start := len(dst)
	var b record.Builder
	b.Reset(dst)
	for _, v := range values {
		b.Append(timestamp, nil, v, nil)
	}
	return seal(&b, start, record.NoProducer(), base, epoch)
}

// control is one control record: its type and its message, which is always written in version 0.
type control struct {
	kind record.ControlType
	body wire.Message
}

// appendControl appends one batch of several control records: KRaft, unlike transactions, puts them together.
func appendControl(dst []byte, base int64, epoch int32, timestamp int64, controls ...control) ([]byte, error) {
	start := len(dst)
	var b record.Builder
	b.Reset(dst)
	var key, value []byte
	for _, c := range controls {
		var err error
		if value, err = c.body.AppendTo(value[:0], 0); err != nil {
			return dst, err
		}
		key = record.AppendControlKey(key[:0], c.kind)
		b.Append(timestamp, key, value, nil)
	}
	stamp := record.NoProducer()
	stamp.Control = true
	return seal(&b, start, stamp, base, epoch), nil
}

func seal(b *record.Builder, start int, s record.Stamp, base int64, epoch int32) []byte {
	batch := b.Seal(s)
	record.PatchBase(batch, base, epoch)
	return b.Release()[:start+len(batch)]
}

// readBatches walks the batches in p: data batches go to yield, control records to controls (may be nil).
func readBatches(p []byte, yield func(Batch) error, controls func(record.ControlType, []byte) error) error {
	for len(p) > 0 {
		one, rest, err := record.Next(p)
		if err != nil {
			return err
		}
		if err := readBatch(one, yield, controls); err != nil {
			return err
		}
		p = rest
	}
	return nil
}

func readBatch(p []byte, yield func(Batch) error, controls func(record.ControlType, []byte) error) error {
	if err := record.Validate(p); err != nil {
		return err
	}
	it, err := record.Open(p, record.ReadOptions{})
	if err != nil {
		return err
	}
	h := it.Header()
	if h.Control() {
		for r := range it.All() {
			_, kind, err := record.ParseControlKey(r.Key)
			if err != nil {
				return err
			}
			if controls == nil {
				continue
			}
			if err := controls(kind, r.Value); err != nil {
				return fmt.Errorf("raft: control record %s at offset %d: %w", kind, r.Offset, err)
			}
		}
		return it.Err()
	}
	b := Batch{BaseOffset: h.BaseOffset, Epoch: h.PartitionLeaderEpoch, Timestamp: h.MaxTimestamp, Values: make([][]byte, 0, h.Count)}
	for r := range it.All() {
		if r.Offset != b.BaseOffset+int64(len(b.Values)) {
			return fmt.Errorf("raft: metadata log has a gap before offset %d", r.Offset)
		}
		b.Values = append(b.Values, r.Value)
	}
	if err := it.Err(); err != nil {
		return err
	}
	return yield(b)
}

// Endpoint is where a voter's controller listener is reached.
type Endpoint struct {
	Name string // listener, CONTROLLER as a rule
	Host string
	Port uint16
}

// Voter is a member of the quorum. Under kraft.version 1 voters are records of the log.
type Voter struct {
	ID          int32
	DirectoryID wire.UUID
	Endpoints   []Endpoint
}

// votersControls are the two records that state kraft.version 1 and its voters.
func votersControls(voters []Voter) []control {
	m := &message.VotersRecord{}
	for _, v := range voters {
		r := message.VotersRecordVoter{VoterId: v.ID, VoterDirectoryId: v.DirectoryID}
		for _, e := range v.Endpoints {
			r.Endpoints = append(r.Endpoints, message.VotersRecordEndpoint{Name: e.Name, Host: e.Host, Port: e.Port})
		}
		r.KRaftVersionFeature.MaxSupportedVersion = 1
		m.Voters = append(m.Voters, r)
	}
	return []control{
		{record.ControlKRaftVersion, &message.KRaftVersionRecord{KRaftVersion: 1}},
		{record.ControlKRaftVoters, m},
	}
}

// parseVoters reads a KRaftVoters record.
func parseVoters(value []byte) ([]Voter, error) {
	var m message.VotersRecord
	if err := m.ReadFrom(wire.NewReader(value), 0); err != nil {
		return nil, err
	}
	if len(m.Voters) == 0 {
		return nil, errors.New("no voters")
	}
	voters := make([]Voter, 0, len(m.Voters))
	for _, r := range m.Voters {
		v := Voter{ID: r.VoterId, DirectoryID: r.VoterDirectoryId}
		for _, e := range r.Endpoints {
			v.Endpoints = append(v.Endpoints, Endpoint{e.Name, e.Host, e.Port})
		}
		voters = append(voters, v)
	}
	return voters, nil
}
