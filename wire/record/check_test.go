package record_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/record"
)

func TestCheckRecordsFindsWhatABrokerAsksFor(t *testing.T) {
	d := compress.NewDecompressor()
	for _, codec := range []compress.Codec{compress.None, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		batch := threeRecords(t, codec)
		record.PatchBase(batch, 100, 0)
		o := record.ReadOptions{Decompressor: d, Limit: compress.BrokerLimit}
		f, err := record.CheckRecords(batch, o, record.Checks{Consecutive: true})
		require.NoError(t, err)
		require.Empty(t, f.Errors)
		require.Equal(t, int32(3), f.Count)
		require.Equal(t, []int64{100, 102, 102, 1_700_000_000_002},
			[]int64{f.FirstOffset, f.LastOffset, f.MaxTimestampAt, f.MaxTimestamp})
		require.Equal(t, int32(2), f.LastOffsetDelta)
		require.Equal(t, len(threeRecords(t, compress.None))-record.HeaderSize, f.Bytes)

		f, err = record.CheckRecords(batch, o, record.Checks{Keys: true, MinTimestamp: 0, MaxTimestamp: 1_700_000_000_001})
		require.NoError(t, err)
		require.Len(t, f.Errors, 2)
		require.Equal(t, int32(1), f.Errors[0].Index)
		require.ErrorIs(t, f.Errors[0], record.ErrInvalid)
		require.Equal(t, int32(2), f.Errors[1].Index)
		require.ErrorIs(t, f.Errors[1], record.ErrTimestamp)

		_, err = record.CheckRecords(batch, record.ReadOptions{Decompressor: d, Limit: 8}, record.Checks{})
		if codec != compress.None {
			require.ErrorIs(t, err, compress.ErrTooLarge)
		}
	}
}

func TestGapsAreNotConsecutive(t *testing.T) {
	b := record.NewBuilder(nil)
	b.AppendAt(0, 0, 1, nil, nil, nil)
	b.AppendAt(2, 0, 1, nil, nil, nil)
	f, err := record.CheckRecords(b.Seal(record.NoProducer()), record.ReadOptions{}, record.Checks{Consecutive: true})
	require.NoError(t, err)
	require.Len(t, f.Errors, 1)
	require.ErrorContains(t, f.Errors[0], "not consecutive")
	require.False(t, f.Consecutive)

	f, err = record.CheckRecords(b.Seal(record.NoProducer()), record.ReadOptions{}, record.Checks{})
	require.NoError(t, err)
	require.Empty(t, f.Errors, "said, but no error unless it is asked for")
	require.False(t, f.Consecutive)
}

func TestRecordErrorsAreBounded(t *testing.T) {
	b := record.NewBuilder(nil)
	for range 5000 {
		b.Append(1, nil, nil, nil)
	}
	f, err := record.CheckRecords(b.Seal(record.NoProducer()), record.ReadOptions{}, record.Checks{Keys: true})
	require.NoError(t, err)
	require.Equal(t, int32(5000), f.Count)
	require.Len(t, f.Errors, 100)
}

func TestCheckRecordsRefusesOldFormatsAndDamage(t *testing.T) {
	_, err := record.CheckRecords(legacyMessage(1, 0, 0, nil, nil), record.ReadOptions{}, record.Checks{})
	require.ErrorIs(t, err, record.ErrUnsupported)
	_, err = record.CheckRecords(nil, record.ReadOptions{}, record.Checks{})
	require.ErrorIs(t, err, record.ErrCorrupt)
	bad := patched(threeRecords(t, compress.None), func(b []byte) { b[record.HeaderSize]++ })
	_, err = record.CheckRecords(bad, record.ReadOptions{}, record.Checks{})
	require.ErrorIs(t, err, record.ErrInvalid)
}

func TestCheckingUncompressedDoesNotAllocate(t *testing.T) {
	batch := threeRecords(t, compress.None)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := record.CheckRecords(batch, record.ReadOptions{}, record.Checks{Consecutive: true}); err != nil {
			t.Fatal(err)
		}
	}))
}

func TestCheckProducedRefusesWhatClientsMayNotWrite(t *testing.T) {
	sound, err := record.ParseHeader(threeRecords(t, compress.None))
	require.NoError(t, err)
	require.NoError(t, sound.CheckProduced())
	for name, change := range map[string]func(*record.BatchHeader){
		"no records":    func(h *record.BatchHeader) { h.Count = 0 },
		"last delta":    func(h *record.BatchHeader) { h.LastOffsetDelta = 7 },
		"negative":      func(h *record.BatchHeader) { h.LastOffsetDelta = -1 },
		"control":       func(h *record.BatchHeader) { h.Attributes |= record.AttrControl },
		"sequence":      func(h *record.BatchHeader) { h.ProducerID = 5 },
		"unknown codec": func(h *record.BatchHeader) { h.Attributes |= 6 },
	} {
		h := sound
		change(&h)
		require.ErrorIs(t, h.CheckProduced(), record.ErrInvalid, name)
	}
}

func TestControlKeys(t *testing.T) {
	_, _, err := record.ParseControlKey([]byte{0, 0, 0})
	require.ErrorIs(t, err, record.ErrInvalid)
	_, _, err = record.ParseControlKey([]byte{0xff, 0xff, 0, 1})
	require.ErrorIs(t, err, record.ErrInvalid)
	v, typ, err := record.ParseControlKey([]byte{0, 3, 0, 99, 1, 2})
	require.NoError(t, err)
	require.Equal(t, []any{int16(3), record.ControlUnknown}, []any{v, typ})
	require.Equal(t, "UNKNOWN", typ.String())

	key := record.AppendControlKey(nil, record.ControlCommit)
	_, err = record.ParseEndTxn(key, []byte{0, 0, 0, 0, 0})
	require.ErrorIs(t, err, record.ErrInvalid)
	_, err = record.ParseEndTxn(key, []byte{0x80, 0, 0, 0, 0, 0})
	require.ErrorIs(t, err, record.ErrInvalid)
	_, err = record.ParseEndTxn(record.AppendControlKey(nil, record.ControlLeaderChange), make([]byte, 6))
	require.ErrorIs(t, err, record.ErrInvalid)
	// A later version may append fields.
	m, err := record.ParseEndTxn(key, binary.BigEndian.AppendUint64([]byte{0, 1}, 7<<32))
	require.NoError(t, err)
	require.Equal(t, record.EndTxn{Commit: true, CoordinatorEpoch: 7}, m)
}

func TestReadControlWantsAControlBatch(t *testing.T) {
	_, _, err := record.ReadControls(threeRecords(t, compress.None))
	require.ErrorIs(t, err, record.ErrInvalid)
	_, _, _, err = record.ReadControl(threeRecords(t, compress.None))
	require.ErrorIs(t, err, record.ErrInvalid)
}

// The first batch of a KRaft snapshot.
func TestControlBatchOfSeveralRecords(t *testing.T) {
	want := []record.ControlRecord{
		{Type: record.ControlSnapshotHeader, Value: []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0}},
		{Type: record.ControlKRaftVersion, Value: []byte{0, 0, 0, 1, 0}},
		{Type: record.ControlKRaftVoters, Value: []byte{0, 0, 1, 0}},
	}
	batch := record.ControlBatch{LeaderEpoch: 1, Timestamp: 5, ProducerID: record.NoProducerID,
		ProducerEpoch: record.NoProducerEpoch, Records: want}.AppendTo([]byte("x"))[1:]
	h, got, err := record.ReadControls(batch)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, []any{true, false, int64(2)}, []any{h.Control(), h.Transactional(), h.LastOffset()})

	_, typ, value, err := record.ReadControl(batch)
	require.NoError(t, err)
	require.Equal(t, want[0], record.ControlRecord{Type: typ, Value: value})

	empty := record.NewBuilder(nil).Seal(record.Stamp{Control: true})
	_, typ, _, err = record.ReadControl(empty)
	require.NoError(t, err)
	require.Equal(t, record.ControlUnknown, typ)
	_, got, err = record.ReadControls(empty)
	require.NoError(t, err)
	require.Empty(t, got)

	b := record.NewBuilder(nil)
	b.Append(1, []byte{0}, nil, nil)
	_, _, err = record.ReadControls(b.Seal(record.Stamp{Control: true}))
	require.ErrorContains(t, err, "record 0: ")
}
