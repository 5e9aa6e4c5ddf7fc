package record_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/compress"
	"github.com/ottla-kafka/ottla/wire/internal/oracle"
	"github.com/ottla-kafka/ottla/wire/record"
)

// oracleRecord and oracleBatch are the shapes of batches/good.jsonl.gz; see the oracle's README.
type oracleRecord struct {
	Offset, Timestamp int64
	Sequence          int32
	Key, Value        *string
	KeyLen, ValueLen  *int
	KeySha256         string
	ValueSha256       string
	Headers           [][2]*string
	ControlType       string
}

type oracleBatch struct {
	Magic                            int8
	BaseOffset, LastOffset           int64
	NextOffset                       int64
	SizeInBytes                      int
	Compression, TimestampType       string
	MaxTimestamp, BaseTimestampField int64
	CRC                              uint32
	PartitionLeaderEpoch             int32
	Attributes                       int16
	LastOffsetDelta                  int32
	ProducerID                       int64
	ProducerEpoch                    int16
	BaseSequence, LastSequence       int32
	Count                            int32
	Transactional, Control           bool
	DeleteHorizonMs                  *int64
	Records                          []oracleRecord
}

type goodCase struct {
	Case    string
	Hex     string
	Refused string
	Batches []oracleBatch
}

func goodCases(t testing.TB) (cases []goodCase) {
	oracle.JSONLines(t, "batches/good.jsonl.gz", func(_ int, v goodCase) { cases = append(cases, v) })
	return cases
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestOracleGoodBatchesDecode(t *testing.T) {
	d := compress.NewDecompressor()
	cases := goodCases(t)
	require.NotEmpty(t, cases)
	for _, c := range cases {
		if c.Refused != "" {
			continue // Kafka could not write it: TestOracleRefusedBatches
		}
		t.Run(c.Case, func(t *testing.T) {
			rest := unhex(t, c.Hex)
			for _, want := range c.Batches {
				batch, next, err := record.Next(rest)
				require.NoError(t, err)
				rest = next
				require.NoError(t, record.Validate(batch))
				require.Len(t, batch, want.SizeInBytes)
				it, err := record.Open(batch, record.ReadOptions{Decompressor: d})
				require.NoError(t, err)
				compareHeader(t, want, it.Header())
				for i, wr := range want.Records {
					r, ok := it.Next()
					require.True(t, ok, "record %d: %v", i, it.Err())
					compareRecord(t, wr, r)
				}
				_, ok := it.Next()
				require.False(t, ok)
				require.NoError(t, it.Err())
			}
			require.Empty(t, rest)
		})
	}
}

func compareHeader(t *testing.T, want oracleBatch, h record.BatchHeader) {
	t.Helper()
	require.Equal(t, want.Magic, h.Magic)
	require.Equal(t, want.BaseOffset, h.BaseOffset)
	require.Equal(t, want.LastOffset, h.LastOffset())
	require.Equal(t, want.NextOffset, h.NextOffset())
	require.Equal(t, want.SizeInBytes, h.Size())
	require.Equal(t, want.Compression, h.Codec().String())
	require.Equal(t, want.TimestampType == "LogAppendTime", h.LogAppendTime())
	require.Equal(t, want.MaxTimestamp, h.MaxTimestamp)
	require.Equal(t, want.CRC, h.CRC)
	if want.Magic < 2 {
		return
	}
	require.Equal(t, want.PartitionLeaderEpoch, h.PartitionLeaderEpoch)
	require.Equal(t, want.Attributes, h.Attributes)
	require.Equal(t, want.LastOffsetDelta, h.LastOffsetDelta)
	require.Equal(t, want.BaseTimestampField, h.BaseTimestamp)
	require.Equal(t, want.ProducerID, h.ProducerID)
	require.Equal(t, want.ProducerEpoch, h.ProducerEpoch)
	require.Equal(t, want.BaseSequence, h.BaseSequence)
	require.Equal(t, want.LastSequence, h.LastSequence())
	require.Equal(t, want.Count, h.Count)
	require.Equal(t, want.Transactional, h.Transactional())
	require.Equal(t, want.Control, h.Control())
	horizon, ok := h.DeleteHorizon()
	require.Equal(t, want.DeleteHorizonMs != nil, ok)
	if ok {
		require.Equal(t, *want.DeleteHorizonMs, horizon)
	}
}

func compareRecord(t *testing.T, want oracleRecord, r record.Record) {
	t.Helper()
	require.Equal(t, want.Offset, r.Offset)
	require.Equal(t, want.Timestamp, r.Timestamp)
	compareBytes(t, want.Key, want.KeyLen, want.KeySha256, r.Key)
	compareBytes(t, want.Value, want.ValueLen, want.ValueSha256, r.Value)
	require.Equal(t, len(want.Headers), r.Headers.Len())
	for i, h := range r.Headers.AppendTo(nil) {
		require.Equal(t, *want.Headers[i][0], h.Key)
		compareBytes(t, want.Headers[i][1], nil, "", h.Value)
	}
	if want.ControlType != "" {
		_, typ, err := record.ParseControlKey(r.Key)
		require.NoError(t, err)
		require.Equal(t, want.ControlType, typ.String())
	}
}

func compareBytes(t *testing.T, want *string, wantLen *int, sum string, got []byte) {
	t.Helper()
	switch {
	case wantLen != nil:
		require.Len(t, got, *wantLen)
		s := sha256.Sum256(got)
		require.Equal(t, sum, hex.EncodeToString(s[:]))
	case want == nil:
		require.Nil(t, got)
	default:
		require.NotNil(t, got)
		require.Equal(t, *want, hex.EncodeToString(got))
	}
}

// What Kafka refuses to write in an old format must not be readable there either; that is zstd (headers have no place in
// the format at all).
func TestOracleRefusedBatches(t *testing.T) {
	refused := 0
	for _, c := range goodCases(t) {
		if c.Refused == "" {
			continue
		}
		refused++
		require.Empty(t, c.Hex)
		require.True(t, strings.HasPrefix(c.Case, "v0-") || strings.HasPrefix(c.Case, "v1-"), c.Case)
	}
	require.Positive(t, refused)
	for magic := byte(0); magic < 2; magic++ {
		msg := legacyMessage(magic, byte(compress.Zstd), 7, nil, []byte("x"))
		_, err := record.Open(msg, record.ReadOptions{Decompressor: compress.NewDecompressor()})
		require.ErrorIs(t, err, record.ErrUnsupported)
	}
}

// Every uncompressed batch of magic 2 is written again, byte for byte, from its decoded records; a compressed one is
// written again and read back.
func TestOracleGoodBatchesEncode(t *testing.T) {
	d := compress.NewDecompressor()
	same := 0
	for _, c := range goodCases(t) {
		rest := unhex(t, c.Hex)
		for len(rest) > 0 {
			batch, next, err := record.Next(rest)
			require.NoError(t, err)
			rest = next
			h, err := record.ParseAny(batch)
			require.NoError(t, err, c.Case)
			if h.Magic < 2 {
				continue
			}
			// The records' own timestamps show only while the batch does not say LogAppendTime.
			plain := bytes.Clone(batch)
			record.PatchTimestamp(plain, false, h.MaxTimestamp)
			it, err := record.Open(plain, record.ReadOptions{Decompressor: d})
			require.NoError(t, err, c.Case)
			again := rewrite(t, it, h)
			if h.Codec() == compress.None {
				require.Equal(t, hex.EncodeToString(batch), hex.EncodeToString(again), c.Case)
				same++
				continue
			}
			requireSameRecords(t, d, batch, again, c.Case)
		}
	}
	require.Greater(t, same, 20)
}

// rewrite builds the batch of it again with a Builder.
func rewrite(t *testing.T, it record.Iterator, h record.BatchHeader) []byte {
	b := record.NewBuilder(nil)
	if horizon, ok := h.DeleteHorizon(); ok {
		b.SetDeleteHorizon(horizon)
	} else {
		b.StartAt(h.BaseTimestamp)
	}
	for r := range it.All() {
		b.AppendAt(int32(r.Offset-h.BaseOffset), r.Attributes, r.Timestamp, r.Key, r.Value, r.Headers.AppendTo(nil))
	}
	require.NoError(t, it.Err())
	c, err := compress.NewCompressor(h.Codec(), compress.DefaultLevel)
	require.NoError(t, err)
	b.EndAt(h.LastOffsetDelta)
	out := b.SealCompressed(nil, record.Stamp{
		ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, BaseSequence: h.BaseSequence,
		Transactional: h.Transactional(), Control: h.Control(),
	}, c)
	record.PatchBase(out, h.BaseOffset, h.PartitionLeaderEpoch)
	if h.LogAppendTime() {
		record.PatchTimestamp(out, true, h.MaxTimestamp)
	}
	require.NoError(t, record.Validate(out))
	return out
}

func requireSameRecords(t *testing.T, d *compress.Decompressor, a, b []byte, what string) {
	t.Helper()
	x, err := record.Open(a, record.ReadOptions{Decompressor: d})
	require.NoError(t, err, what)
	y, err := record.Open(b, record.ReadOptions{Decompressor: d})
	require.NoError(t, err, what)
	for {
		r, ok := x.Next()
		s, ok2 := y.Next()
		require.Equal(t, ok, ok2, what)
		if !ok {
			return
		}
		require.Equal(t, r.Offset, s.Offset, what)
		require.Equal(t, r.Timestamp, s.Timestamp, what)
		require.True(t, bytes.Equal(r.Key, s.Key) && (r.Key == nil) == (s.Key == nil), what)
		require.True(t, bytes.Equal(r.Value, s.Value) && (r.Value == nil) == (s.Value == nil), what)
		require.Equal(t, r.Headers.AppendTo(nil), s.Headers.AppendTo(nil), what)
	}
}

type badCase struct {
	Case, Hex, FailsAt, Exception string
	BatchesSeen, RecordsSeen      int
}

// stricter lists the damaged batches that Kafka reads without noticing and this package refuses, with the reason.
var stricter = map[string]string{
	"zstd-middle-byte-wrong": "the flipped bit makes a literal stream longer than its block; the Go decoder notices, the C one not",
}

func TestOracleBadBatches(t *testing.T) {
	d := compress.NewDecompressor()
	n := 0
	oracle.JSONLines(t, "batches/bad.jsonl.gz", func(_ int, c badCase) {
		n++
		t.Run(c.Case, func(t *testing.T) {
			batches, records, where, err := readAll(unhex(t, c.Hex), d)
			if reason, ok := stricter[c.Case]; ok {
				require.Error(t, err, reason)
				require.Empty(t, c.FailsAt, "Kafka refuses it too")
				return
			}
			if c.FailsAt == "" {
				require.NoError(t, err)
				require.Equal(t, c.BatchesSeen, batches)
				require.Equal(t, c.RecordsSeen, records)
				return
			}
			require.Error(t, err, "Kafka: %s at %s", c.Exception, c.FailsAt)
			require.Equal(t, c.FailsAt, where, "%v", err)
			require.Equal(t, c.BatchesSeen, batches)
			if !strings.Contains(c.Case, "-count-") && c.Case != "snappy-last-byte-wrong" {
				// Those differ: Kafka happens to read a compressed batch as a whole first, here records come as they are
				// decoded and the error comes behind them.
				require.LessOrEqual(t, records, c.RecordsSeen)
			}
			if c.Exception == "CorruptRecordException" {
				require.ErrorIs(t, err, record.ErrCorrupt)
			}
			if c.Exception == "InvalidRecordException" {
				require.True(t, errors.Is(err, record.ErrInvalid) || errors.Is(err, compress.ErrCorrupt), "%v", err)
			}
		})
	})
	require.GreaterOrEqual(t, n, 93)
}

// readAll goes through b in the three steps that the oracle distinguishes.
func readAll(b []byte, d *compress.Decompressor) (batches, records int, where string, err error) {
	for {
		batch, rest, err := record.Next(b)
		if errors.Is(err, record.ErrPartial) {
			return batches, records, "", nil
		}
		if err != nil {
			return batches, records, "split", err
		}
		b = rest
		batches++
		if err := record.Validate(batch); err != nil {
			return batches, records, "ensureValid", err
		}
		it, err := record.Open(batch, record.ReadOptions{Decompressor: d, SkipCRC: true})
		if err != nil {
			return batches, records, "records", err
		}
		for range it.All() {
			records++
		}
		if it.Err() != nil {
			return batches, records, "records", it.Err()
		}
	}
}

func TestOracleControlRecords(t *testing.T) {
	markers := 0
	for _, c := range goodCases(t) {
		if !strings.HasPrefix(c.Case, "control-") {
			continue
		}
		batch := unhex(t, c.Hex)
		h, records, err := record.ReadControls(batch)
		require.NoError(t, err)
		require.Len(t, records, 1)
		want, typ, value := c.Batches[0].Records[0], records[0].Type, records[0].Value
		require.Equal(t, want.ControlType, typ.String())
		again := record.ControlBatch{
			BaseOffset: h.BaseOffset, LeaderEpoch: h.PartitionLeaderEpoch, Timestamp: h.BaseTimestamp,
			ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, Transactional: h.Transactional(),
			Records: records,
		}.AppendTo(nil)
		require.Equal(t, hex.EncodeToString(batch), hex.EncodeToString(again), c.Case)
		if typ > record.ControlCommit {
			continue
		}
		markers++
		m, err := record.ParseEndTxn(unhex(t, *want.Key), value)
		require.NoError(t, err)
		require.Equal(t, typ == record.ControlCommit, m.Commit)
		built := record.AppendEndTxn(nil, m, h.BaseOffset, h.PartitionLeaderEpoch, h.BaseTimestamp, h.ProducerID,
			h.ProducerEpoch)
		require.Equal(t, hex.EncodeToString(batch), hex.EncodeToString(built), c.Case)
	}
	require.GreaterOrEqual(t, markers, 8)
}

// The numbers of control types are Kafka's.
func TestOracleControlTypes(t *testing.T) {
	seen := 0
	oracle.Table(t, "tables/record_types.tsv", func(_ int, row map[string]string) {
		if row["kind"] != "control" {
			return
		}
		seen++
		var id int16
		require.NoError(t, json.Unmarshal([]byte(row["id"]), &id))
		require.Equal(t, row["name"], record.ControlType(id).String())
	})
	require.Positive(t, seen)
}
