package hash_test

import (
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/hash"
	"github.com/ottla-kafka/ottla/wire/internal/oracle"
)

func TestOracleMurmur2(t *testing.T) {
	oracle.Table(t, "hashing/murmur2.tsv", func(n int, row map[string]string) {
		key, err := hex.DecodeString(row["keyHex"])
		require.NoError(t, err)
		h := hash.Murmur2(key)
		require.Equal(t, row["murmur2"], strconv.Itoa(int(int32(h))), "line %d", n)
		require.Equal(t, row["toPositive"], strconv.Itoa(int(hash.ToPositive(h))), "line %d", n)
		for col, want := range row {
			if count, ok := strings.CutPrefix(col, "p"); ok {
				c, err := strconv.Atoi(count)
				require.NoError(t, err)
				require.Equal(t, want, strconv.Itoa(int(hash.Partition(key, int32(c)))), "line %d of %d", n, c)
			}
		}
	})
}

func TestOracleCoordinatorPartition(t *testing.T) {
	type vector struct {
		ID           string
		JavaHashCode int32
		Abs          int32
		Of50, Of1    int32
		Of3, Of7     int32
	}
	oracle.JSONLines(t, "hashing/coordinator_partition.jsonl", func(n int, v vector) {
		require.Equal(t, v.JavaHashCode, hash.JavaString(v.ID), "line %d %q", n, v.ID)
		for count, want := range map[int32]int32{50: v.Of50, 1: v.Of1, 3: v.Of3, 7: v.Of7} {
			require.Equal(t, want, hash.CoordinatorPartition(v.ID, count), "line %d %q of %d", n, v.ID, count)
		}
	})
}

func TestOracleShareCoordinatorPartition(t *testing.T) {
	type vector struct {
		CoordinatorKey string
		Of50           int32
	}
	oracle.JSONLines(t, "hashing/share_coordinator_partition.jsonl", func(n int, v vector) {
		require.Equal(t, v.Of50, hash.CoordinatorPartition(v.CoordinatorKey, 50), "line %d %q", n, v.CoordinatorKey)
	})
}

func TestOracleCRC32C(t *testing.T) {
	oracle.Table(t, "hashing/crc32c.tsv", func(n int, row map[string]string) {
		b, err := hex.DecodeString(row["hex"])
		require.NoError(t, err)
		require.Equal(t, row["crc32c"], strconv.FormatUint(uint64(hash.CRC32C(b)), 10), "line %d", n)
	})
}
