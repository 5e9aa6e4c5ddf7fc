package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGeneratedCodeIsUpToDate(t *testing.T) {
	dir := filepath.Join("..", "..")
	set, err := load(dir)
	require.NoError(t, err)
	files, err := generate(set)
	require.NoError(t, err)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		require.NoError(t, err)
		if string(got) != string(want) {
			t.Errorf("wire/%s is not what the schemas say: run go generate ./wire/...", name)
		}
	}
	for _, pkg := range []string{"message", "logrecord"} {
		names, err := filepath.Glob(filepath.Join(dir, pkg, "*.go"))
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			if strings.HasPrefix(string(text), generatedMark) && files[pkg+"/"+filepath.Base(name)] == nil {
				t.Errorf("%s is generated from a schema that is gone: run go generate ./wire/...", name)
			}
		}
	}
}

func TestAllDefinitionsAreThere(t *testing.T) {
	set, err := load(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.Equal(t, 282, len(set.message)+len(set.logrecord))
}

func TestMistakesInSchemasAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"request":                                "words",
		"request A key x versions 0":             "invalid syntax",
		"request A versions 0 colour 3":          "unknown word",
		"request A versions 3-1":                 "versions",
		"data A versions 0\n\tX int32 sometimes": "unknown word",
		"data A versions 0\n\t\tX int32":         "nothing above it",
		"\tX int32":                              "no message line",
		"data A versions 0\n\tX Unknown":         "no struct Unknown",
		"data A versions 0\n\tX int32 tag0":      "tag 0",
		"data A versions 0 flexible 0+\n\tX int8 tag0\n\tY int8 tag0":  "tag 0",
		"request ARequest key 0 versions 0\n\tKey int32":               "name of a method",
		"data A versions 0\n\tstruct A\n\t\tX int8\n\tstruct A\n\t\tX": "words",
	} {
		messages, err := parse("x", text)
		if err == nil {
			err = resolve(messages)
		}
		require.ErrorContains(t, err, want, text)
	}
}

func TestReadmeTableListsEveryAPI(t *testing.T) {
	set, err := load(filepath.Join("..", ".."))
	require.NoError(t, err)
	table := readmeTable(set.message)
	require.Equal(t, 2+91, strings.Count(table, "\n"))
	require.Contains(t, table, "| 22 | InitProducerId | 0-6 (6 unstable) | 2 | broker |\n")
}

func TestConditions(t *testing.T) {
	domain := versions{2, 9}
	for v, want := range map[versions]string{
		{0, 32767}: "true",
		{2, 9}:     "true",
		{5, 32767}: "version >= 5",
		{0, 4}:     "version <= 4",
		{4, 4}:     "version == 4",
		{3, 4}:     "version >= 3 && version <= 4",
		{10, 12}:   "false",
	} {
		require.Equal(t, want, condition(v, domain))
	}
	require.Equal(t, "version > 4", not("version <= 4"))
	require.Equal(t, "version < 5", not("version >= 5"))
	require.Equal(t, "!(version >= 3 && version <= 4)", not("version >= 3 && version <= 4"))
}
