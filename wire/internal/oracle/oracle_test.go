package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOracleFilesOpen(t *testing.T) {
	rows := 0
	Table(t, "tables/errors.tsv", func(_ int, row map[string]string) {
		require.NotEmpty(t, row["name"])
		rows++
	})
	require.Greater(t, rows, 100)
	lines := 0
	JSONLines(t, "batches/bad.jsonl.gz", func(_ int, v struct{ Case, Hex string }) {
		require.NotEmpty(t, v.Case)
		lines++
	})
	require.Greater(t, lines, 50)
}
