package main

import (
	"fmt"
	"sort"
)

// reserved are the methods of messages; a field cannot have such a name.
var reserved = map[string]bool{"AppendTo": true, "ReadFrom": true, "SetDefaults": true, "Key": true, "APIKey": true,
	"NewResponse": true, "UnknownTags": true, "Versions": true}

// maxNesting bounds structs within structs; no definition is recursive, so that decoding cannot go deeper either.
const maxNesting = 16

// resolve gives every struct its Go name, ties fields to common structs and checks what the generator relies on.
func resolve(messages []*message) error {
	count := map[string]int{} // of each struct name over all messages
	for _, m := range messages {
		count[m.name]++
		for _, s := range m.structs {
			count[s.name]++
		}
	}
	used := map[string]bool{}
	for _, m := range messages {
		m.root.goName = m.name
		for _, s := range append([]*structure{m.root}, m.structs...) {
			if s != m.root {
				s.goName = s.name
				if count[s.name] > 1 {
					s.goName = m.name + s.name
				}
			}
			if used[s.goName] {
				return fmt.Errorf("two structs want the Go name %s", s.goName)
			}
			used[s.goName] = true
		}
		if err := m.resolve(); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func (m *message) resolve() error {
	common := map[string]*structure{}
	for _, s := range m.structs {
		if s.common {
			common[s.name] = s
		}
	}
	for _, s := range append([]*structure{m.root}, m.structs...) {
		tags := map[uint32]bool{}
		for _, f := range s.fields {
			if s == m.root && reserved[f.goName] && (f.goName != "Key" || m.kind == "request" || m.kind == "response") {
				return fmt.Errorf("field %s has the name of a method, give it another one with as:NAME", f.name)
			}
			if f.structure == nil && !scalars[f.typ] {
				if f.structure = common[f.typ]; f.structure == nil {
					return fmt.Errorf("field %s.%s: no struct %s", s.name, f.name, f.typ)
				}
			}
			if f.tagged {
				if tags[f.tag] || !m.flexible.contains(f.in.and(m.valid)) {
					return fmt.Errorf("field %s.%s: tag %d", s.name, f.name, f.tag)
				}
				tags[f.tag] = true
			}
		}
	}
	if d := depth(m.root); d > maxNesting {
		return fmt.Errorf("structs are nested %d deep, %d are allowed", d, maxNesting)
	}
	markDefaultChecks(m.root)
	for _, s := range m.structs {
		markDefaultChecks(s)
	}
	return nil
}

func depth(s *structure) int {
	deepest := 0
	for _, f := range s.fields {
		if f.structure != nil {
			deepest = max(deepest, depth(f.structure))
		}
	}
	return deepest + 1
}

// markDefaultChecks finds the structs whose values are compared with their defaults: tagged fields and fields that a
// version lacks, and what those hold.
func markDefaultChecks(s *structure) {
	for _, f := range s.fields {
		if f.structure == nil || f.array {
			continue
		}
		lacking := !f.in.contains(s.message.valid) && !f.ignorable
		if f.tagged || lacking || s.needsDefaultCheck {
			if !f.structure.needsDefaultCheck {
				f.structure.needsDefaultCheck = true
				markDefaultChecks(f.structure)
			}
		}
	}
}

// knownTags are the tagged fields of a struct by tag.
func (s *structure) knownTags() []*field {
	var tags []*field
	for _, f := range s.fields {
		if f.tagged && !f.in.and(s.message.valid).empty() {
			tags = append(tags, f)
		}
	}
	sort.Slice(tags, func(i, j int) bool { return tags[i].tag < tags[j].tag })
	return tags
}

// minSize is the least number of bytes that a struct takes in a version. The versions of inner structs are the
// message's.
func (s *structure) minSize(version int16) int {
	m := s.message
	flexible := m.flexible.has(version)
	n := 0
	for _, f := range s.fields {
		if f.in.has(version) && !f.tagged {
			n += f.minSize(version, flexible)
		}
	}
	if flexible {
		n++ // count of tagged fields
	}
	return n
}

func (f *field) minSize(version int16, flexible bool) int {
	flexible = flexible && !f.inflexible
	switch {
	case flexible && (f.array || f.typ == "string" || f.isBytes()):
		return 1
	case f.array || f.isBytes():
		return 4
	case f.structure != nil && f.nullable.has(version):
		return 1
	case f.structure != nil:
		return f.structure.minSize(version)
	}
	return map[string]int{"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
		"float64": 8, "uuid": 16, "string": 2}[f.typ]
}

// minElem is the least size of an element of an array of structs, over the versions that have the array.
func (f *field) minElem(m *message) int {
	least := -1
	for v := f.in.and(m.valid); v.min <= v.max; v.min++ {
		if n := f.structure.minSize(v.min); least < 0 || n < least {
			least = n
		}
	}
	return max(least, 0)
}
