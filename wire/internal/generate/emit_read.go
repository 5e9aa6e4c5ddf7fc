package main

// read is the method that reads a struct and sets every field of it.
func (p *printer) read(s *structure) {
	m := s.message
	p.line("\nfunc (m *%s) read(r *wire.Reader, version int16) {", s.goName)
	flexible := p.flexibleVariable(m)
	for _, f := range s.fields {
		if f.tagged { // a tagged field that does not come has its default
			p.resetField(m, f)
			continue
		}
		p.block(condition(f.in, m.valid), func() { p.readField(m, f) }, func() { p.resetField(m, f) })
	}
	if s.hasTags() {
		p.readTags(s, flexible)
	}
	p.line("}")
}

func (p *printer) readTags(s *structure, flexible string) {
	m, tags := s.message, s.knownTags()
	if len(tags) == 0 {
		p.block(flexible, func() { p.line("m.UnknownTags = r.UnknownTags(m.UnknownTags)") },
			func() { p.line("m.UnknownTags = m.UnknownTags[:0]") })
		return
	}
	p.line("m.UnknownTags = m.UnknownTags[:0]")
	p.block(flexible, func() {
		domain := m.flexible.and(m.valid)
		p.line("for tags := r.Tags(); tags.Next(); {\nswitch {")
		for _, f := range tags {
			in := condition(f.in, domain)
			if in == "true" {
				p.line("case tags.ID == %d:", f.tag)
			} else {
				p.line("case tags.ID == %d && %s:", f.tag, in)
			}
			p.readField(m, f)
		}
		p.line("default:\nm.UnknownTags = tags.Keep(m.UnknownTags)\n}\n}")
	}, nil)
}

// readField reads a field in a version that has it.
func (p *printer) readField(m *message, f *field) {
	x, flexible, nullable := "m."+f.goName, f.flexibleIn(m), f.nullableIn(m)
	switch {
	case f.array && f.structure != nil:
		p.line("%s = wire.ReadArray(r, %s, %s, %s, %d)", x, x, flexible, nullable, f.minElem(m))
		p.line("for i := range %s {\n%s[i].read(r, version)\n}", x, x)
	case f.array:
		p.line("%s = r.%ss(%s, %s, %s)", x, method(f.typ), x, flexible, nullable)
	case f.structure != nil && f.isPointer(m):
		p.line("if r.%s() {\n%s = wire.NewStruct[%s](r)\n%s.read(r, version)\n} else {\n%s = nil\n}", f.nullMarker(), x, f.elemType(), x, x)
	case f.structure != nil:
		p.line("%s.read(r, version)", x)
	case f.isBytes():
		p.line("%s = r.BytesIn(%s, %s)", x, flexible, nullable)
	case f.isPointer(m):
		p.line("%s = r.NullableStringIn(%s, %s)", x, flexible, nullable)
	case f.typ == "string":
		p.line("%s = r.StringIn(%s)", x, flexible)
	default:
		p.line("%s = r.%s()", x, method(f.typ))
	}
}

// resetField sets a field to its default; an array keeps its capacity for the next version that has it.
func (p *printer) resetField(m *message, f *field) {
	x := "m." + f.goName
	switch {
	case f.structure != nil && !f.array && !f.isPointer(m):
		p.line("%s.SetDefaults()", x)
	case f.array && !f.canBeNull(m):
		p.line("%s = %s[:0]", x, x)
	default:
		p.line("%s = %s", x, f.defaultValue(m))
		if f.structure != nil && !f.array && !f.hasDefault && !f.structure.defaultsAreZero() {
			p.line("%s.SetDefaults()", x)
		}
	}
}
