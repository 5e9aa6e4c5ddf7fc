package arrows

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const modulePath = "github.com/ottla-kafka/ottla"

// source is one Go file of the module.
type source struct {
	folder  string // below the root, with slashes
	name    string
	test    bool
	imports []string
}

func (s *source) String() string { return path.Join(s.folder, s.name) }

// root is the folder of the root go.mod.
func root(t *testing.T) string {
	dir, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.mod"))
	return dir
}

// walk calls fn with every Go file of the root module: folders with a go.mod of their own are other modules.
func walk(t *testing.T, fn func(folder, name string)) {
	dir := root(t)
	require.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, nested := os.Stat(filepath.Join(p, "go.mod"))
			if p != dir && (nested == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(p, ".go") {
			folder, err := filepath.Rel(dir, filepath.Dir(p))
			if err != nil {
				return err
			}
			fn(filepath.ToSlash(folder), d.Name())
		}
		return nil
	}))
}

func parseFile(t *testing.T, folder, name string, mode parser.Mode) (*ast.File, *token.FileSet) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, filepath.Join(root(t), filepath.FromSlash(folder), name), nil, mode)
	require.NoError(t, err)
	return f, set
}

func sources(t *testing.T) []source {
	var all []source
	walk(t, func(folder, name string) {
		f, _ := parseFile(t, folder, name, parser.ImportsOnly)
		s := source{folder: folder, name: name, test: strings.HasSuffix(name, "_test.go")}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			s.imports = append(s.imports, p)
		}
		all = append(all, s)
	})
	require.NotEmpty(t, all)
	return all
}

// within reports whether a folder is one of some, or below one.
func within(folder string, some []string) bool {
	for _, s := range some {
		if folder == s || strings.HasPrefix(folder, s+"/") {
			return true
		}
	}
	return false
}

// ours is the folder of an import of this module.
func ours(importPath string) (string, bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

func room(folder string) string {
	first, _, _ := strings.Cut(folder, "/")
	return first
}
