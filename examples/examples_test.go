package examples

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/wire"
)

var update = flag.Bool("update", false, "write the generated part of the README anew")

// Every Go block of the README stands, line for line, in one of the examples, which are compiled and run.
func TestReadmeCodeIsExampleCode(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var code []string
	for _, pattern := range []string{"*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			code = append(code, flat(string(text)))
		}
	}
	all := strings.Join(code, "\n")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.GreaterOrEqual(t, len(blocks), 3)
	for _, b := range blocks {
		require.LessOrEqual(t, strings.Count(b[1], "\n"), 15, "a block of the README stays within 15 lines:\n%s", b[1])
		require.Contains(t, all, flat(b[1]))
	}
}

// flat takes the indentation away.
func flat(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// The README's table of APIs is what this code says: the versions that wire knows, and those a started broker answers.
func TestReadmeListsWhatIsSupported(t *testing.T) {
	k := fakebroker.Start(t)
	cl, err := client.New(client.Cluster(k))
	require.NoError(t, err)
	defer cl.Close(t.Context())
	adm := admin.New(cl)
	cluster, err := adm.DescribeCluster(t.Context())
	require.NoError(t, err)
	rows, err := adm.APIVersions(t.Context(), cluster.Brokers[0].ID)
	require.NoError(t, err)
	answered := map[wire.Key]string{}
	for _, r := range rows {
		answered[r.Key] = fmt.Sprintf("%d–%d", r.Min, r.Max)
	}
	var table strings.Builder
	table.WriteString("| API | versions in `wire` | answered by the broker |\n|---|---|---|\n")
	messagesOnly := []string{}
	for k := wire.Key(0); k < 200; k++ {
		first, last, ok := wire.Versions(k)
		switch {
		case !ok:
		case answered[k] == "":
			messagesOnly = append(messagesOnly, k.String())
		default:
			fmt.Fprintf(&table, "| %s | %d–%d | %s |\n", k, first, last, answered[k])
		}
	}
	fmt.Fprintf(&table, "\nMessages only, so far: %s.\n", strings.Join(messagesOnly, ", "))
	requireGenerated(t, "supported", table.String())
}

// requireGenerated compares the part of the README between two markers with text; -update writes it.
func requireGenerated(t *testing.T, name, text string) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	open, end := fmt.Appendf(nil, "<!-- generated: %s -->\n", name), []byte("<!-- end -->")
	from := bytes.Index(readme, open)
	require.GreaterOrEqual(t, from, 0, "README has no part %q", name)
	from += len(open)
	to := from + bytes.Index(readme[from:], end)
	if *update {
		fresh := append(append(append([]byte{}, readme[:from]...), text...), readme[to:]...)
		require.NoError(t, os.WriteFile("../README.md", fresh, 0o644))
		return
	}
	require.Equal(t, text, string(readme[from:to]), "run: go test ./examples -update")
}

// The README's option tables are the property tables of the code.
func TestReadmeListsTheOptions(t *testing.T) {
	var b strings.Builder
	optionTable(&b, "Producer", producer.Properties())
	optionTable(&b, "Consumer", consumer.Properties())
	optionTable(&b, "Both, and admin", client.ClientProperties())
	requireGenerated(t, "options", b.String())
}

// optionTable writes the keys that are mapped, folded in, and names the ones that are refused.
func optionTable[C any](b *strings.Builder, title string, table client.PropertyTable[C]) {
	var refused []string
	fmt.Fprintf(b, "<details><summary>%s</summary>\n\n| key | default | |\n|---|---|---|\n", title)
	for _, p := range table {
		if p.Apply == nil {
			refused = append(refused, fmt.Sprintf("`%s` (%s)", p.Key, p.Refuse))
			continue
		}
		doc := p.Doc
		if p.Differs != "" {
			doc += "; differs from Kafka: " + p.Differs
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", p.Key, cmp.Or(p.Default, "none"), strings.ReplaceAll(doc, "|", "\\|"))
	}
	fmt.Fprintf(b, "\nRefused, each with its reason: %s.\n</details>\n\n", strings.Join(refused, ", "))
}
