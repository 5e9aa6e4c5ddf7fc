package logrecord

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/internal/oracle"
)

type vector struct {
	Name    string
	Version int16
	Hex     string
}

// eachVector calls fn with the records of one of the oracle's files.
func eachVector(tb testing.TB, file string, fn func(rec Record, version int16, body []byte)) {
	oracle.JSONLines(tb, file, func(_ int, v vector) {
		body, err := hex.DecodeString(v.Hex)
		require.NoError(tb, err)
		fn(New(v.Name).(Record), v.Version, body)
	})
}

func TestOracleMetadataRecordsInFrames(t *testing.T) {
	eachVector(t, "wire/metadata.jsonl.gz", func(rec Record, version int16, body []byte) {
		require.NoError(t, rec.ReadFrom(wire.NewReader(body), version))
		framed, err := AppendFramed(nil, rec, version)
		require.NoError(t, err)
		require.Equal(t, []byte{1, byte(rec.APIKey()), byte(version)}, framed[:3])
		require.Equal(t, body, framed[3:])
		got, gotVersion, err := ReadFramed(framed)
		require.NoError(t, err)
		require.Equal(t, version, gotVersion)
		again, err := AppendFramed(nil, got, version)
		require.NoError(t, err)
		require.Equal(t, framed, again)
	})
}

func TestMetadataFramesAreStrict(t *testing.T) {
	good, err := AppendFramed(nil, NewNoOpRecord(), 0)
	require.NoError(t, err)
	_, _, err = ReadFramed(append(good, 0))
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.ErrorContains(t, err, "1 bytes too many")
	_, _, err = ReadFramed([]byte{2, 20, 0, 0})
	require.ErrorIs(t, err, wire.ErrUnsupportedVersion)
	_, _, err = ReadFramed([]byte{1, 99, 0, 0})
	require.ErrorIs(t, err, ErrUnknownType)
	_, _, err = ReadFramed([]byte{1, 20, 1, 0})
	require.ErrorIs(t, err, wire.ErrUnsupportedVersion)
	_, _, err = ReadFramed([]byte{1, 0xff, 0xff, 0x0f, 0, 0})
	require.ErrorIs(t, err, wire.ErrMalformed)
	_, _, err = ReadFramed(nil)
	require.ErrorIs(t, err, wire.ErrTruncated)
	_, err = AppendFramed(nil, NewNoOpRecord(), -1)
	require.ErrorIs(t, err, wire.ErrUnsupportedVersion)
}

func TestCoordinatorRecordsAreReadAsWritten(t *testing.T) {
	key := NewOffsetCommitKey()
	key.Group, key.Topic, key.Partition = "g", "t", 3
	k, err := AppendKey(nil, key)
	require.NoError(t, err)
	require.Equal(t, []byte("\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x03"), k)
	gotKey, err := ReadKey(GroupLog, k)
	require.NoError(t, err)
	require.Equal(t, key, gotKey)

	value := NewOffsetCommitValue()
	value.Offset, value.LeaderEpoch = 42, 7
	v, err := AppendValue(nil, value, 3)
	require.NoError(t, err)
	gotValue, version, err := ReadValue(GroupLog, gotKey.APIKey(), v)
	require.NoError(t, err)
	require.Equal(t, int16(3), version)
	require.Equal(t, int64(42), gotValue.(*OffsetCommitValue).Offset)

	tombstone, _, err := ReadValue(GroupLog, 1, nil)
	require.NoError(t, err)
	require.Nil(t, tombstone)
	_, err = ReadKey(ShareLog, []byte{0, 9})
	require.ErrorIs(t, err, ErrUnknownType)
	_, _, err = ReadValue(Log(9), 0, []byte{0, 0})
	require.ErrorIs(t, err, ErrUnknownType)
	_, err = ReadKey(TransactionLog, []byte{0})
	require.ErrorIs(t, err, wire.ErrTruncated)
}

func FuzzMetadataRecord(f *testing.F) {
	eachVector(f, "wire/metadata.jsonl.gz", func(rec Record, version int16, body []byte) {
		if len(body) < 1024 {
			f.Add(append([]byte{1, byte(rec.APIKey()), byte(version)}, body...))
		}
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, version, err := ReadFramed(b)
		if err != nil {
			return
		}
		first, err := AppendFramed(nil, rec, version)
		if err != nil {
			t.Fatalf("%T version %d was read and cannot be written: %v", rec, version, err)
		}
		again, _, err := ReadFramed(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := AppendFramed(nil, again, version)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%x became %x: %v", first, second, err)
		}
	})
}

func FuzzCoordinatorRecord(f *testing.F) {
	for log, file := range map[Log]string{GroupLog: "group", TransactionLog: "transaction", ShareLog: "share"} {
		eachVector(f, "wire/"+file+".jsonl.gz", func(rec Record, version int16, body []byte) {
			if len(body) < 1024 {
				f.Add(byte(log), rec.APIKey(), append(wire.AppendInt16(nil, version), body...))
			}
		})
	}
	f.Fuzz(func(t *testing.T, number byte, apiKey int16, b []byte) {
		log := Log(number % 4)
		if key, err := ReadKey(log, b); err == nil {
			if _, err := AppendKey(nil, key); err != nil {
				t.Fatalf("%T was read and cannot be written: %v", key, err)
			}
		}
		value, version, err := ReadValue(log, apiKey, b)
		if err != nil {
			if !errors.Is(err, ErrUnknownType) && !errors.Is(err, wire.ErrMalformed) && !errors.Is(err, wire.ErrUnsupportedVersion) {
				t.Fatal(err)
			}
			return
		}
		if value == nil {
			return
		}
		first, err := AppendValue(nil, value, version)
		if err != nil {
			t.Fatalf("%T version %d was read and cannot be written: %v", value, version, err)
		}
		again, _, err := ReadValue(log, apiKey, first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := AppendValue(nil, again, version)
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%x became %x: %v", first, second, err)
		}
	})
}

func TestLogsHaveTheirTopicsNames(t *testing.T) {
	require.Equal(t, []string{"__consumer_offsets", "__transaction_state", "__share_group_state", "Log(3)"},
		[]string{GroupLog.String(), TransactionLog.String(), ShareLog.String(), Log(3).String()})
	require.Nil(t, NewKey(Log(3), 0))
	require.Nil(t, NewValue(Log(3), 0))
}
