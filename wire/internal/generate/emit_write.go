package main

import "fmt"

// flexibleVariable declares flexible where the versions of a message are of both kinds.
func (p *printer) flexibleVariable(m *message) string {
	c := condition(m.flexible, m.valid)
	if c == "true" || c == "false" {
		return c
	}
	p.line("flexible := %s", c)
	return "flexible"
}

// write is the method that appends a struct: its fields in the schema's order, then the tagged ones.
func (p *printer) write(s *structure) {
	m := s.message
	p.line("\nfunc (m *%s) write(w *wire.Writer, version int16) {", s.goName)
	flexible := p.flexibleVariable(m)
	for _, f := range s.fields {
		in := condition(f.in, m.valid)
		var lacking func()
		if !f.ignorable && in != "true" {
			lacking = func() {
				p.line("if %s {\nw.Unsupported(%q)\n}", f.differs(m), s.goName+"."+f.goName)
			}
		}
		switch {
		case !f.tagged:
			p.block(in, func() { p.writeField(s, f) }, lacking)
		case lacking != nil:
			p.block(not(in), lacking, nil)
		}
	}
	if s.hasTags() {
		p.block(flexible, func() { p.writeTags(s) }, func() { p.line("w.NoTags(m.UnknownTags)") })
	}
	p.line("}")
}

func (p *printer) writeTags(s *structure) {
	m, tags := s.message, s.knownTags()
	if len(tags) == 0 {
		p.line("w.TagCount(0, m.UnknownTags)\nw.Tags(m.UnknownTags)")
		return
	}
	domain := m.flexible.and(m.valid)
	p.line("known := 0")
	for _, f := range tags {
		p.block(and(condition(f.in, domain), f.differs(m)), func() { p.line("known++") }, nil)
	}
	p.line("w.TagCount(known, m.UnknownTags)")
	p.line("unknown := m.UnknownTags")
	for _, f := range tags {
		p.block(condition(f.in, domain), func() {
			p.line("unknown = w.TagsBefore(unknown, %d)", f.tag)
			p.line("if %s {\nstart := w.BeginTag(%d)", f.differs(m), f.tag)
			p.writeField(s, f)
			p.line("w.EndTag(start)\n}")
		}, nil)
	}
	p.line("w.Tags(unknown)")
}

// and joins two conditions.
func and(a, b string) string {
	switch {
	case a == "true":
		return b
	case a == "false":
		return a
	default:
		return a + " && " + b
	}
}

// writeField appends a field in a version that has it.
func (p *printer) writeField(s *structure, f *field) {
	m := s.message
	x, flexible, nullable := "m."+f.goName, f.flexibleIn(m), f.nullableIn(m)
	if f.canBeNull(m) && nullable != "true" { // null is a value of the Go type, but not of every version
		p.line("if %s == nil && %s {\nw.Null(%q)\nreturn\n}", x, paren(not(nullable)), s.goName+"."+f.goName)
	}
	switch {
	case f.array && f.structure != nil:
		p.line("w.ArrayLen(%s, %s, len(%s))", flexible, and(paren(nullable), nilCheck(nullable, x)), x)
		p.line("for i := range %s {\n%s[i].write(w, version)\n}", x, x)
	case f.array:
		p.line("w.%ss(%s, %s, %s)", method(f.typ), flexible, nullable, x)
	case f.structure != nil && f.isPointer(m):
		p.line("if w.%s(%s != nil) {\n%s.write(w, version)\n}", f.nullMarker(), x, x)
	case f.structure != nil:
		p.line("%s.write(w, version)", x)
	case f.isBytes():
		p.line("w.Bytes(%s, %s, %s)", flexible, nullable, x)
	case f.isPointer(m):
		p.line("w.NullableString(%s, %s)", flexible, x)
	case f.typ == "string":
		p.line("w.String(%s, %s)", flexible, x)
	default:
		p.line("w.%s(%s)", method(f.typ), x)
	}
}

// nullMarker is the method for the byte before a nullable struct; Kafka has another one in tagged fields.
func (f *field) nullMarker() string {
	if f.tagged {
		return "NullUvarint"
	}
	return "Null8"
}

func nilCheck(nullable, x string) string {
	if nullable == "false" {
		return "false"
	}
	return x + " == nil"
}

func paren(cond string) string {
	if cond == "true" || cond == "false" {
		return cond
	}
	return fmt.Sprintf("(%s)", cond)
}
