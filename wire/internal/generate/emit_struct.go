package main

import (
	"fmt"
	"strconv"
	"strings"
)

// structType is the declaration of the Go struct. The struct tags tell package wirejson what the Go types do not.
func (p *printer) structType(s *structure) {
	m := s.message
	p.line("")
	switch {
	case s.where == "":
		for _, l := range messageDoc(m) {
			p.line("// %s", l)
		}
	case s.common:
		p.line("// %s is a struct of %s.", s.goName, m.name)
	default:
		p.line("// %s is the type of %s.", s.goName, s.where)
	}
	p.line("type %s struct {", s.goName)
	for _, f := range s.fields {
		p.line("%s %s `kafka:%q`%s", f.goName, f.goType(m), f.structTag(m), f.comment())
	}
	if s.hasTags() {
		p.line("UnknownTags wire.Tags // tagged fields that the definition does not have")
	}
	p.line("}")
}

func messageDoc(m *message) []string {
	what := map[string]string{"request": "the request of API %d", "response": "the response of API %d",
		"metadata": "the metadata record of type %d", "coordinator-key": "the key of record type %d in the " + m.source + " log",
		"coordinator-value": "the value of record type %d in the " + m.source + " log",
		"header":            "a header", "data": "a data structure"}[m.kind]
	if strings.Contains(what, "%d") {
		what = fmt.Sprintf(what, m.key)
	}
	flexible := "no version is flexible"
	if f := m.flexible.and(m.valid); !f.empty() {
		flexible = fmt.Sprintf("flexible from %d", f.min)
	}
	unstable := ""
	if m.unstable {
		unstable = " The last version is not stable yet."
	}
	return []string{fmt.Sprintf("%s is %s, versions %s, %s.%s", m.name, what, m.valid, flexible, unstable)}
}

// structTag is "versions", then what applies of: nullable, tag, name=JSON name.
func (f *field) structTag(m *message) string {
	words := []string{f.in.String()}
	if f.canBeNull(m) {
		words = append(words, "nullable")
	}
	if f.tagged {
		words = append(words, "tag")
	}
	if f.goName != strings.ToUpper(f.name[:1])+f.name[1:] {
		words = append(words, "name="+f.jsonName())
	}
	return strings.Join(words, ",")
}

// comment says what the field holds, as far as the schema does.
func (f *field) comment() string {
	var words []string
	if f.entity != "" {
		words = append(words, f.entity)
	}
	if f.hasDefault && f.def != "0" && f.def != "false" && f.def != "" {
		words = append(words, "default "+f.def)
	}
	if len(words) == 0 {
		return ""
	}
	return " // " + strings.Join(words, ", ")
}

// defaultIsZero reports whether the default is Go's zero value.
func (f *field) defaultIsZero(m *message) bool {
	switch {
	case f.hasDefault && f.def == "null":
		return true
	case f.canBeNull(m):
		return false
	case f.structure != nil && !f.array:
		return f.structure.defaultsAreZero()
	default:
		return f.array || f.isBytes() || f.scalarDefault() == zeroOf(f.typ)
	}
}

func (s *structure) defaultsAreZero() bool {
	for _, f := range s.fields {
		if !f.defaultIsZero(s.message) {
			return false
		}
	}
	return true
}

func zeroOf(typ string) string {
	switch typ {
	case "bool":
		return "false"
	case "string":
		return `""`
	case "uuid":
		return "wire.UUID{}"
	}
	return "0"
}

// scalarDefault is the default of a bool, number, string or uuid as Go.
func (f *field) scalarDefault() string {
	if !f.hasDefault || f.def == "null" {
		return zeroOf(f.typ)
	}
	if f.typ == "string" {
		return strconv.Quote(f.def)
	}
	return f.def
}

// defaultValue is the default as a Go expression; structs that are not pointers have none.
func (f *field) defaultValue(m *message) string {
	switch {
	case f.hasDefault && f.def == "null":
		return "nil"
	case f.array || f.isBytes():
		if f.canBeNull(m) {
			return f.goType(m) + "{}"
		}
		return "nil"
	case f.isPointer(m) && f.structure != nil:
		return "new(" + f.elemType() + ")"
	case f.isPointer(m):
		return "new(" + f.scalarDefault() + ")"
	default:
		return f.scalarDefault()
	}
}

// setDefaults is the method of that name.
func (p *printer) setDefaults(s *structure) {
	m := s.message
	p.line("\n// SetDefaults sets every field to its default.")
	p.line("func (m *%s) SetDefaults() {", s.goName)
	var values []string
	for _, f := range s.fields {
		if !f.defaultIsZero(m) && (f.structure == nil || f.array || f.isPointer(m)) {
			values = append(values, f.goName+": "+f.defaultValue(m))
		}
	}
	p.line("*m = %s{%s}", s.goName, strings.Join(values, ", "))
	for _, f := range s.fields {
		if f.structure != nil && !f.array && !f.defaultIsZero(m) && (!f.isPointer(m) || !f.structure.defaultsAreZero()) {
			p.line("m.%s.SetDefaults()", f.goName)
		}
	}
	p.line("}")
}

// differs is Go for "the field does not have its default".
func (f *field) differs(m *message) string {
	x := "m." + f.goName
	switch {
	case f.hasDefault && f.def == "null":
		return x + " != nil"
	case f.array || f.isBytes():
		if f.canBeNull(m) {
			return fmt.Sprintf("(%s == nil || len(%s) > 0)", x, x)
		}
		return fmt.Sprintf("len(%s) > 0", x)
	case f.structure != nil && f.isPointer(m):
		return fmt.Sprintf("(%s == nil || !%s.isDefault())", x, x)
	case f.structure != nil:
		return fmt.Sprintf("!%s.isDefault()", x)
	case f.isPointer(m):
		return fmt.Sprintf("(%s == nil || *%s != %s)", x, x, f.scalarDefault())
	case f.typ == "uuid":
		return fmt.Sprintf("!%s.IsZero()", x)
	case f.typ == "bool" && f.scalarDefault() == "false":
		return x
	case f.typ == "bool":
		return "!" + x
	default:
		return fmt.Sprintf("%s != %s", x, f.scalarDefault())
	}
}

// isDefault is a method of structs that are compared with their defaults.
func (p *printer) isDefault(s *structure) {
	p.line("\nfunc (m *%s) isDefault() bool {", s.goName)
	var same []string
	for _, f := range s.fields {
		same = append(same, f.differs(s.message))
	}
	if s.hasTags() {
		same = append(same, "len(m.UnknownTags) > 0")
	}
	p.line("return !(%s)", strings.Join(same, " ||\n"))
	p.line("}")
}
