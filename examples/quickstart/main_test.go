package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var verdict = regexp.MustCompile(`^in (\d+) · out (\d+) · files identical (\d+)/(\d+) · \d+ MB/s\n$`)

func runOn(t *testing.T, files ...string) []string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, "", files))
	m := verdict.FindStringSubmatch(out.String())
	require.NotNil(t, m, out.String())
	require.Equal(t, m[1], m[2])
	require.Equal(t, m[3], m[4])
	return m
}

// The repository's own files come back as they were.
func TestOwnFilesComeBackIdentical(t *testing.T) {
	require.NotEqual(t, "0", runOn(t)[1])
}

// Lines longer than a record, without an end, of zero bytes and of none: every byte comes back.
func TestOddFilesComeBackIdentical(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"long":    strings.Repeat("x", 3*longestLine+17),
		"no-end":  "a\nb",
		"crlf":    "a\r\n\r\nb\r\n",
		"binary":  strings.Repeat("\x00\xff\n", 1000),
		"empty":   "",
		"newline": "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	m := runOn(t, dir)
	require.Equal(t, "5", m[3], "an empty file has nothing to send")
}

func TestMissingFileIsAnError(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), &strings.Builder{}, "", []string{"no-such-file"}), "no-such-file")
}
