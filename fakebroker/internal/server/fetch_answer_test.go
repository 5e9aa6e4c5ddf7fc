package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// joined is what the connection would write.
func joined(t *testing.T, a *fetchAnswer) []byte {
	head, splices, err := a.AppendTo(nil)
	require.NoError(t, err)
	var out []byte
	at := 0
	for _, s := range splices {
		out = append(out, head[at:s.At]...)
		for _, b := range s.Bytes {
			out = append(out, b...)
		}
		at = s.At
	}
	return append(out, head[at:]...)
}

func TestFetchAnswerIsWhatTheGeneratedEncoderWrites(t *testing.T) {
	rack := "r1"
	a, b := wire.UUID{1}, wire.UUID{2}
	none := storage.EpochEnd{Epoch: -1, EndOffset: -1}
	parts := []fetchPartition{
		{fetchParams: fetchParams{name: "a", id: a, index: 0}, result: fetchResult{highWatermark: 7, stable: 6, logStart: 1,
			diverging: none, leader: -1, epoch: -1, size: 5, records: storage.Records{Mem: [][]byte{{1, 2}, {3, 4, 5}}, Len: 5}}},
		{fetchParams: fetchParams{name: "a", id: a, index: 1}, silent: true, result: failedFetch(errcode.None)},
		{fetchParams: fetchParams{name: "b", id: b, index: 3}, result: failedFetch(errcode.NotLeaderOrFollower)},
		{fetchParams: fetchParams{name: "a", id: a, index: 2}, result: fetchResult{highWatermark: 1 << 40, stable: 4, logStart: 0,
			diverging: none, leader: -1, epoch: -1, abortedSet: true, aborted: []storage.AbortedTxn{{ProducerID: 9, FirstOffset: 3}, {ProducerID: 10, FirstOffset: 4}}}},
		{fetchParams: fetchParams{name: "a", id: a, index: 4}, result: fetchResult{diverging: none, leader: -1, epoch: -1, abortedSet: true}},
	}
	for version := int16(4); version <= 18; version++ {
		if version == 12 { // tagged fields begin here
			parts[0].result.diverging = storage.EpochEnd{Epoch: 3, EndOffset: 300}
			parts[2].result.leader, parts[2].result.epoch = 4, 5
		}
		req := &Request{Key: wire.KeyFetch, Version: version, CorrelationID: 77}
		answer := &fetchAnswer{request: req, ctx: &fetchContext{parts: parts, sessionID: 11}}
		want := message.NewFetchResponse()
		if version >= 7 {
			want.SessionId = 11
		}
		if version >= 16 {
			answer.hints = []message.FetchResponseNodeEndpoint{{NodeId: 4, Host: "h", Port: 9, Rack: &rack}}
			want.NodeEndpoints = answer.hints
		}
		want.Responses = []message.FetchableTopicResponse{
			{Topic: "a", TopicId: a, Partitions: []message.FetchResponsePartitionData{generated(&parts[0], version)}},
			{Topic: "b", TopicId: b, Partitions: []message.FetchResponsePartitionData{generated(&parts[2], version)}},
			{Topic: "a", TopicId: a, Partitions: []message.FetchResponsePartitionData{generated(&parts[3], version), generated(&parts[4], version)}},
		}
		head := wire.AppendResponseHeader(nil, wire.KeyFetch, version, 77)
		bytes, err := want.AppendTo(head, version)
		require.NoError(t, err, "version %d", version)
		require.Equal(t, bytes, joined(t, answer), "version %d", version)

		failed := &fetchAnswer{request: req, code: errcode.FetchSessionIdNotFound}
		empty := message.NewFetchResponse()
		if version >= 7 {
			empty.ErrorCode = int16(errcode.FetchSessionIdNotFound)
		}
		bytes, err = empty.AppendTo(wire.AppendResponseHeader(nil, wire.KeyFetch, version, 77), version)
		require.NoError(t, err)
		require.Equal(t, bytes, joined(t, failed), "version %d", version)
	}
}

// generated is a partition's answer as the generated message has it.
func generated(fp *fetchPartition, version int16) message.FetchResponsePartitionData {
	res := &fp.result
	d := message.FetchResponsePartitionData{}
	d.SetDefaults()
	d.PartitionIndex, d.ErrorCode, d.HighWatermark, d.LastStableOffset = fp.index, int16(res.code), res.highWatermark, res.stable
	if version >= 5 {
		d.LogStartOffset = res.logStart
	}
	d.AbortedTransactions = nil
	if res.abortedSet {
		d.AbortedTransactions = []message.AbortedTransaction{}
	}
	for _, a := range res.aborted {
		d.AbortedTransactions = append(d.AbortedTransactions, message.AbortedTransaction{ProducerId: a.ProducerID, FirstOffset: a.FirstOffset})
	}
	for _, b := range res.records.Mem {
		d.Records = append(d.Records, b...)
	}
	if version >= 12 {
		d.DivergingEpoch = message.FetchResponseEpochEndOffset{Epoch: res.diverging.Epoch, EndOffset: res.diverging.EndOffset}
		d.CurrentLeader = message.FetchResponseLeaderIdAndEpoch{LeaderId: res.leader, LeaderEpoch: res.epoch}
	}
	return d
}
