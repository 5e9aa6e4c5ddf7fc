package server

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files of one API need no entry: their names are those of the APIs.
func TestTheMapNamesEveryFileThatIsNoAPI(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, chart, found := strings.Cut(string(text), "# Map")
	require.True(t, found)
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "table_") || name == "doc.go" {
			continue
		}
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		if !strings.Contains(string(source), "\nfunc handle") {
			require.Contains(t, chart, name)
		}
	}
}
