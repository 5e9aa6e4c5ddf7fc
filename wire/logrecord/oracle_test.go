package logrecord

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/internal/oracle"
)

func TestOracleRecordTypes(t *testing.T) {
	logs := map[string]Log{"group": GroupLog, "transaction": TransactionLog, "share": ShareLog}
	types := 0
	oracle.Table(t, "tables/record_types.tsv", func(n int, row map[string]string) {
		if row["kind"] == "control" { // package record has those
			return
		}
		types++
		id, err := strconv.ParseInt(row["id"], 10, 16)
		require.NoError(t, err)
		var value Record
		if row["kind"] == "metadata" {
			value = NewMetadataRecord(int16(id))
		} else {
			log, ok := logs[row["kind"]]
			require.True(t, ok, row["kind"])
			key := NewKey(log, int16(id))
			require.NotNil(t, key, "line %d", n)
			require.EqualValues(t, id, key.APIKey())
			value = NewValue(log, int16(id))
		}
		require.NotNil(t, value, "line %d", n)
		require.EqualValues(t, id, value.APIKey())
		min, max := value.Versions()
		require.Equal(t, row["lowestVersion"], strconv.Itoa(int(min)), "line %d", n)
		require.Equal(t, row["highestVersion"], strconv.Itoa(int(max)), "line %d", n)
	})
	require.Equal(t, 27+22+2+1, types)
}
