package examples

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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
	"github.com/ottla-kafka/ottla/txn"
	"github.com/ottla-kafka/ottla/wire"
)

var update = flag.Bool("update", false, "write the generated part of the README anew")

// Every Go block of the README stands, line for line, in one of the examples, which are compiled and run.
func TestReadmeCodeIsExampleCode(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var code []string
	files, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		code = append(code, flat(string(text)))
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
	adm, err := admin.Dial(nil, client.Cluster(fakebroker.Start(t)))
	require.NoError(t, err)
	defer adm.Close(t.Context())
	cluster, err := adm.DescribeCluster(t.Context())
	require.NoError(t, err)
	rows, err := adm.APIVersions(t.Context(), cluster.Brokers[0].ID)
	require.NoError(t, err)
	answered := map[wire.Key]string{}
	for _, r := range rows {
		answered[r.Key] = fmt.Sprintf("%d–%d", r.Min, r.Max)
	}
	var table strings.Builder
	var messagesOnly []string
	for k := wire.Key(0); k < wire.Keys; k++ {
		first, last, ok := wire.Versions(k)
		switch {
		case !ok:
		case answered[k] == "":
			messagesOnly = append(messagesOnly, k.String())
		default:
			fmt.Fprintf(&table, "| %s | %d–%d | %s |\n", k, first, last, answered[k])
		}
	}
	requireGenerated(t, "supported", fmt.Sprintf("<details><summary>%d requests that the broker answers, %d more that `wire` reads and writes</summary>\n\n"+
		"| request | versions in `wire` | versions of the broker |\n|---|---|---|\n%s\nOnly in `wire` so far: %s.\n</details>\n",
		len(answered), len(messagesOnly), table.String(), strings.Join(messagesOnly, ", ")))
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
	var all strings.Builder
	optionTable(&all, "Keys of producers", producer.Properties())
	optionTable(&all, "Keys of transactions, beside the producer's", txn.Properties())
	optionTable(&all, "Keys of consumers", consumer.Properties())
	optionTable(&all, "Keys of both, and of admin", client.ClientProperties())
	requireGenerated(t, "options", all.String())

	var differing strings.Builder
	differences(&differing, client.ClientProperties())
	differences(&differing, producer.Properties())
	differences(&differing, txn.Properties())
	differences(&differing, consumer.Properties())
	requireGenerated(t, "differences", differing.String())
}

// optionTable writes the keys that are mapped, folded in, and those that are refused, by reason.
func optionTable[C any](b *strings.Builder, title string, table client.PropertyTable[C]) {
	var mapped strings.Builder
	var reasons []string
	refused := map[string][]string{}
	n := 0
	for _, p := range table {
		if p.Apply == nil {
			if refused[p.Refuse] == nil {
				reasons = append(reasons, p.Refuse)
			}
			refused[p.Refuse] = append(refused[p.Refuse], "`"+p.Key+"`")
			continue
		}
		n++
		fmt.Fprintf(&mapped, "| `%s` | %s | %s |\n", p.Key, shortClasses.ReplaceAllString(cmp.Or(p.Default, "none"), ""), strings.ReplaceAll(p.Doc, "|", "\\|"))
	}
	fmt.Fprintf(b, "<details><summary>%s: %d mapped, %d refused with the reason</summary>\n\n| key | Kafka's default | |\n|---|---|---|\n%s", title, n, len(table)-n, mapped.String())
	for _, why := range reasons {
		fmt.Fprintf(b, "\nRefused: %s: %s.\n", strings.Join(refused[why], ", "), why)
	}
	b.WriteString("</details>\n\n")
}

// shortClasses takes the package off the names of Java classes.
var shortClasses = regexp.MustCompile(`(class )?org\.apache\.kafka\.[a-z.]*`)

// differences writes a line for each key whose default is not Kafka's.
func differences[C any](b *strings.Builder, table client.PropertyTable[C]) {
	for _, p := range table {
		if ours, why, ok := strings.Cut(p.Differs, ": "); ok {
			fmt.Fprintf(b, "* `%s`: %s, because %s.\n", p.Key, ours, why)
		}
	}
}

// Every name of this repository that the README uses in its text and tables is exported, and every key is a key.
func TestReadmeNamesExist(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	names, keys, rooms := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, room := range []string{"admin", "client", "client/sasl", "consumer", "fakebroker", "fakebroker/fault", "fakebroker/harness", "groupmember", "producer", "txn", "wire/compress", "wire/errcode"} {
		rooms[filepath.Base(room)] = true
		files, err := filepath.Glob("../" + room + "/*.go")
		require.NoError(t, err)
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				exported(t, f, filepath.Base(room), names)
			}
		}
	}
	for _, p := range client.ClientProperties() {
		keys[p.Key] = true
	}
	for _, p := range producer.Properties() {
		keys[p.Key] = true
	}
	for _, p := range consumer.Properties() {
		keys[p.Key] = true
	}
	for _, p := range txn.Properties() {
		keys[p.Key] = true
	}
	text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(readme), "")
	for _, code := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile(`\b[a-z]+\.[A-Z]\w*`).FindAllString(code[1], -1) {
			room, _, _ := strings.Cut(name, ".")
			require.True(t, names[name] || !rooms[room], "README: there is no %s", name)
		}
		if key := code[1]; regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`).MatchString(key) && !strings.HasSuffix(key, ".go") {
			require.True(t, keys[key], "README: there is no key %s", key)
		}
	}
}

// exported adds the exported names that a file declares at its top, as room.Name.
func exported(t *testing.T, file, room string, names map[string]bool) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names[room+"."+d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[room+"."+spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						names[room+"."+n.Name] = true
					}
				}
			}
		}
	}
}
