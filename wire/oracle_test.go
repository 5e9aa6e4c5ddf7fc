package wire

import (
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/internal/oracle"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func TestOracleVarintsAreWrittenAndRead(t *testing.T) {
	rows := 0
	oracle.Table(t, "hashing/varints.tsv", func(n int, row map[string]string) {
		rows++
		raw := unhex(t, row["hex"])
		r := NewReader(raw)
		var got []byte
		var size int
		switch kind, text := row["kind"], row["value"]; kind {
		case "unsignedVarint32":
			v, err := strconv.ParseUint(text, 10, 32)
			require.NoError(t, err)
			got, size = AppendUvarint(nil, uint32(v)), UvarintSize(uint32(v))
			require.Equal(t, uint32(v), r.Uvarint())
		case "unsignedVarint64":
			v, err := strconv.ParseUint(text, 10, 64)
			require.NoError(t, err)
			got, size = AppendUvarlong(nil, v), UvarlongSize(v)
			require.Equal(t, v, r.Uvarlong())
		case "varint32zigzag":
			v, err := strconv.ParseInt(text, 10, 32)
			require.NoError(t, err)
			got, size = AppendVarint(nil, int32(v)), VarintSize(int32(v))
			require.Equal(t, int32(v), r.Varint())
		case "varint64zigzag":
			v, err := strconv.ParseInt(text, 10, 64)
			require.NoError(t, err)
			got, size = AppendVarlong(nil, v), VarlongSize(v)
			require.Equal(t, v, r.Varlong())
		default:
			t.Fatalf("line %d: kind %s", n, kind)
		}
		require.NoError(t, r.Err())
		require.Zero(t, r.Remaining())
		require.Equal(t, raw, got, "line %d", n)
		require.Equal(t, len(raw), size, "line %d", n)
	})
	t.Logf("%d varints", rows)
}

func TestOracleVarintsAtTheirLimits(t *testing.T) {
	rows := 0
	oracle.Table(t, "hashing/varints_read.tsv", func(n int, row map[string]string) {
		rows++
		r := NewReader(unhex(t, row["hex"]))
		var got string
		switch kind := row["kind"]; kind {
		case "unsignedVarint32":
			got = strconv.FormatUint(uint64(r.Uvarint()), 10)
		case "unsignedVarint64":
			got = strconv.FormatUint(r.Uvarlong(), 10)
		case "varint32zigzag":
			got = strconv.FormatInt(int64(r.Varint()), 10)
		case "varint64zigzag":
			got = strconv.FormatInt(r.Varlong(), 10)
		default:
			t.Fatalf("line %d: kind %s", n, kind)
		}
		switch row["exception"] {
		case "":
			require.NoError(t, r.Err(), "line %d", n)
			require.Equal(t, row["value"], got, "line %d", n)
			require.Equal(t, row["bytesRead"], strconv.Itoa(r.Offset()), "line %d", n)
		case "BufferUnderflowException":
			require.ErrorIs(t, r.Err(), ErrTruncated, "line %d", n)
		default:
			require.ErrorIs(t, r.Err(), ErrMalformed, "line %d", n)
			require.NotErrorIs(t, r.Err(), ErrTruncated, "line %d", n)
		}
	})
	t.Logf("%d varints", rows)
}

func TestOracleUUIDs(t *testing.T) {
	lines := 0
	oracle.JSONLines(t, "hashing/uuid.jsonl", func(n int, v struct {
		Text, Hex        string
		Reserved         bool
		Parse, Exception *string
		Compare, With    string
		Sign             int
	}) {
		lines++
		if v.Compare != "" {
			a, err := ParseUUID(v.Compare)
			require.NoError(t, err)
			b, err := ParseUUID(v.With)
			require.NoError(t, err)
			require.Equal(t, v.Sign, a.Compare(b), "line %d", n)
			require.Equal(t, -v.Sign, b.Compare(a), "line %d", n)
			return
		}
		if v.Parse != nil {
			u, err := ParseUUID(*v.Parse)
			if v.Exception != nil {
				require.Error(t, err, "line %d: %q", n, *v.Parse)
				return
			}
			require.NoError(t, err, "line %d: %q", n, *v.Parse)
			require.Equal(t, v.Text, u.String(), "line %d", n)
			return
		}
		u := UUID(unhex(t, v.Hex))
		require.Equal(t, v.Text, u.String(), "line %d", n)
		require.Equal(t, v.Reserved, u.IsReserved(), "line %d", n)
		parsed, err := ParseUUID(v.Text)
		require.NoError(t, err, "line %d", n)
		require.Equal(t, u, parsed, "line %d", n)
	})
	t.Logf("%d lines", lines)
}

func TestOracleAPITable(t *testing.T) {
	rows := 0
	oracle.Table(t, "tables/apis.tsv", func(_ int, row map[string]string) {
		rows++
		key, err := strconv.ParseInt(row["key"], 10, 16)
		require.NoError(t, err)
		k := Key(key)
		require.Equal(t, row["messageName"], k.String())
		number := func(name string) int16 {
			if row[name] == "none" {
				return -1
			}
			v, err := strconv.ParseInt(row[name], 10, 16)
			require.NoError(t, err, "%s %s", k, name)
			return int16(v)
		}
		min, max, ok := Versions(k)
		require.Equal(t, row["minVersion"] != "none", ok, k)
		require.Equal(t, ok, k.Valid())
		if ok {
			require.Equal(t, number("minVersion"), min, k)
			require.Equal(t, number("maxVersionWithUnstable"), max, k)
		}
		require.Equal(t, number("maxVersion"), LatestStable(k), k)
		require.Equal(t, number("flexibleFrom"), apis[k].flexibleFrom, k)
		require.Equal(t, strings.Contains(row["listeners"], "broker"), apis[k].broker, k)
		require.Equal(t, strings.Contains(row["listeners"], "controller"), apis[k].controller, k)
		min, max, ok = BrokerVersions(k)
		require.Equal(t, row["apiVersionsBrokerMin"] != "none", ok, k)
		if ok {
			require.Equal(t, number("apiVersionsBrokerMin"), min, k)
			require.Equal(t, number("apiVersionsBrokerMax"), max, k)
		}
	})
	require.Equal(t, int(Keys), rows)
}

func TestOracleHeaderVersions(t *testing.T) {
	rows := 0
	oracle.Table(t, "tables/api_header_versions.tsv", func(n int, row map[string]string) {
		rows++
		key, err := strconv.ParseInt(row["key"], 10, 16)
		require.NoError(t, err)
		version, err := strconv.ParseInt(row["version"], 10, 16)
		require.NoError(t, err)
		request, response := HeaderVersions(Key(key), int16(version))
		require.Equal(t, row["requestHeaderVersion"], strconv.Itoa(int(request)), "line %d", n)
		require.Equal(t, row["responseHeaderVersion"], strconv.Itoa(int(response)), "line %d", n)
	})
	t.Logf("%d API versions", rows)
}
