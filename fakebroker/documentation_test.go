package fakebroker

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Types whose home is internal show nothing of themselves to who reads the documentation, so it lists their fields.
func TestFieldsOfInternalTypesAreListed(t *testing.T) {
	docs := make(map[string]string)
	for _, file := range []string{"group.go", "transactions.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				docs[g.Specs[0].(*ast.TypeSpec).Name.Name] = g.Doc.Text()
			}
		}
	}
	for name, kind := range map[string]reflect.Type{
		"Group": reflect.TypeFor[Group](), "GroupMember": reflect.TypeFor[GroupMember](), "GroupOffset": reflect.TypeFor[GroupOffset](),
		"GroupEvent": reflect.TypeFor[GroupEvent](), "Transaction": reflect.TypeFor[Transaction](), "TransactionPartition": reflect.TypeFor[TransactionPartition](),
	} {
		for _, field := range reflect.VisibleFields(kind) {
			if !field.Anonymous {
				require.Regexp(t, `\b`+field.Name+`\b`, docs[name], "%s.%s", name, field.Name)
			}
		}
	}
}
