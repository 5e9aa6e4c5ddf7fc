package arrows

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pure packages decide but do not act: every folder named machine.
func pure(folder string) bool { return path.Base(folder) == "machine" }

// impure are packages whose import alone is an act: locks, contexts, I/O, goroutine helpers.
var impure = []string{"sync", "sync/atomic", "context", "os", "os/exec", "syscall", "io/ioutil", "log", "log/slog"}

// clock are the parts of package time that read the clock or wait; its types are fine.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// netText are the parts of package net that handle text and do no I/O.
var netText = []string{"JoinHostPort", "SplitHostPort", "ParseIP", "IP"}

// randomTypes are the parts of math/rand/v2 that take a source; the rest uses the global one.
var randomTypes = []string{"New", "Rand", "Source", "NewPCG", "PCG", "NewChaCha8", "ChaCha8", "NewZipf", "Zipf"}

func TestMachinesArePure(t *testing.T) {
	walk(t, func(folder, name string) {
		if !pure(folder) || strings.HasSuffix(name, "_test.go") {
			return
		}
		f, set := parseFile(t, folder, name, 0)
		local := map[string]string{} // name in the file -> import path
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			require.NoError(t, err)
			if slices.Contains(impure, p) {
				t.Errorf("%s/%s: a machine imports %s", folder, name, p)
			}
			as := path.Base(p)
			if p == "math/rand/v2" {
				as = "rand"
			}
			if i.Name != nil {
				as = i.Name.Name
			}
			local[as] = p
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a machine starts a goroutine", set.Position(n.Pos()))
			case *ast.ChanType:
				t.Errorf("%s: a machine has a channel", set.Position(n.Pos()))
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				switch local[x.Name] {
				case "time":
					if slices.Contains(clock, n.Sel.Name) {
						t.Errorf("%s: a machine uses time.%s; now is an argument", set.Position(n.Pos()), n.Sel.Name)
					}
				case "net":
					if !slices.Contains(netText, n.Sel.Name) {
						t.Errorf("%s: a machine uses net.%s", set.Position(n.Pos()), n.Sel.Name)
					}
				case "math/rand", "math/rand/v2":
					if !slices.Contains(randomTypes, n.Sel.Name) {
						t.Errorf("%s: a machine uses the global source of rand.%s", set.Position(n.Pos()), n.Sel.Name)
					}
				}
			}
			return true
		})
	})
}
