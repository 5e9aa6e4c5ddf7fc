package raft

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
)

// The two texts are files that Apache Kafka 4.4.0 wrote.
func TestQuorumStateIsApacheKafkasByteForByte(t *testing.T) {
	for text, want := range map[string]QuorumState{
		`{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`: {
			LeaderID: 1, LeaderEpoch: 1, VotedID: NoVote, Version: 1},
		`{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}`: {
			LeaderID: 1, LeaderEpoch: 2, VotedID: NoVote, CurrentVoters: []int32{1}},
		`{"leaderId":-1,"leaderEpoch":7,"votedId":3,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAJw","data_version":1}`: {
			LeaderID: NoLeader, LeaderEpoch: 7, VotedID: 3, VotedDirectoryID: wire.UUID{15: 0x27}, Version: 1},
	} {
		got, err := ParseQuorumState([]byte(text))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, string(got.Encode()))
	}
}

func TestAQuorumStateThatCannotBeTrustedIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `{"data_version":2}`, `{"leaderEpoch":-1,"data_version":0}`,
		`{"leaderId":1,"leaderEpoch":1,"votedId":-2,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`,
		`{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"!","data_version":1}`,
		`{"leaderId":1,"leaderEpoch":1,"what":0,"data_version":0}`,
	} {
		_, err := ParseQuorumState([]byte(text))
		require.Error(t, err, text)
	}
}

// FuzzQuorumState: what is accepted says the same after it was written again.
func FuzzQuorumState(f *testing.F) {
	f.Add([]byte(`{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}`))
	f.Add([]byte(`{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseQuorumState(b)
		if err != nil {
			return
		}
		again, err := ParseQuorumState(s.Encode())
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}
