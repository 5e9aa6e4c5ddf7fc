package arrows

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// rolesOfUsers are the rooms whose API a program waits in.
var rolesOfUsers = []string{"client", "producer", "consumer", "groupmember", "admin", "txn", "fakebroker"}

// waits are methods that wait without a ctx of their own.
var waits = []string{"Wait", "Sleep"}

// Whatever may wait takes a ctx, first, and nothing of the API is a channel: a channel that its reader forgets stops who
// writes to it.
func TestExportedCallsThatWaitTakeCtx(t *testing.T) {
	walk(t, func(folder, name string) {
		if !slices.Contains(rolesOfUsers, folder) || strings.HasSuffix(name, "_test.go") {
			return
		}
		f, set := parseFile(t, folder, name, 0)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || fn.Recv != nil && !exportedReceiver(fn) {
				continue
			}
			where := set.Position(fn.Pos()).String() + " " + fn.Name.Name
			if at := ctxAt(fn.Type); at > 0 {
				t.Errorf("%s: ctx is not the first parameter", where)
			} else if at < 0 && fn.Body != nil && mayWait(fn.Body) {
				t.Errorf("%s: waits without a ctx", where)
			}
			ast.Inspect(fn.Type, func(n ast.Node) bool {
				if _, ok := n.(*ast.ChanType); ok {
					t.Errorf("%s: has a channel in its signature", where)
				}
				return true
			})
		}
	})
}

func exportedReceiver(fn *ast.FuncDecl) bool {
	found := false
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !found {
			found = id.IsExported()
			return false
		}
		return true
	})
	return found
}

// ctxAt is the index of the context.Context among the parameters' groups, -1 for none.
func ctxAt(fn *ast.FuncType) int {
	return slices.IndexFunc(fn.Params.List, func(f *ast.Field) bool {
		s, ok := f.Type.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Context"
	})
}

// mayWait looks for what waits in the function itself: a receive, a select without default, a Wait. What it starts in a
// goroutine or hands over as a function waits elsewhere.
func mayWait(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.GoStmt:
			return false
		case *ast.SelectStmt:
			found = found || !slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool { return s.(*ast.CommClause).Comm == nil })
			return false
		case *ast.UnaryExpr:
			found = found || n.Op.String() == "<-"
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(waits, s.Sel.Name) {
				found = found || len(n.Args) == 0 || s.Sel.Name == "Sleep"
			}
		}
		return true
	})
	return found
}
