package main

import (
	"fmt"
	"strconv"
	"strings"
)

// The notation, one text file per API with its request and response, or per record with its key and value:
//
//	request FindCoordinatorRequest key 10 versions 0-6 flexible 3+ listeners broker
//		struct Common 1+                    a struct that fields below refer to by name
//			Name string
//		KeyType         int8 1+ =0          name, type, versions (0+ when not given), default
//		CoordinatorKeys []string? 4+        ? nullable, in every version that the field has
//		Topics          []Topic?1-3         nullable in these versions only
//			Name string @topicName          a deeper line belongs to the struct of the field above it
//		Rack            string 5+ tag0      tagged field
//
// Further words of a field: ignorable (dropped silently in versions without it), mapKey (the elements of the array are
// told apart by it), inflexible (keeps fixed size lengths in flexible versions), as:GoName (where Kafka's name cannot be
// a Go field). A message has, behind its versions, "in SOURCE" for records, and unstable when its latest version is.
// Lines that start with # are comments.

type parser struct {
	file     string
	line     int
	messages []*message
	stack    []*structure // the structs that the indentation is in; stack[i] takes lines of i+1 tabs
	last     *field
}

func parse(file, text string) ([]*message, error) {
	p := &parser{file: file}
	for i, line := range strings.Split(text, "\n") {
		p.line = i + 1
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		depth := len(line) - len(strings.TrimLeft(line, "\t"))
		var err error
		if depth == 0 {
			err = p.message(words)
		} else {
			err = p.member(depth, words)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.txt:%d: %w", file, p.line, err)
		}
	}
	return p.messages, nil
}

func (p *parser) message(words []string) error {
	if len(words) < 4 {
		return fmt.Errorf("message line of %d words", len(words))
	}
	m := &message{kind: words[0], name: words[1], key: -1, flexible: none, file: p.file}
	for i := 2; i < len(words); i++ {
		if words[i] == "unstable" {
			m.unstable = true
			continue
		}
		if i+1 == len(words) {
			return fmt.Errorf("%q has no value", words[i])
		}
		var err error
		value := words[i+1]
		switch words[i] {
		case "in":
			m.source = value
		case "key":
			m.key, err = strconv.Atoi(value)
		case "versions":
			m.valid, err = parseVersions(value)
		case "flexible":
			m.flexible, err = parseVersions(value)
		case "listeners":
			m.listeners = strings.Split(value, ",")
		default:
			err = fmt.Errorf("unknown word %q", words[i])
		}
		if err != nil {
			return err
		}
		i++
	}
	m.root = &structure{name: m.name, message: m}
	p.messages = append(p.messages, m)
	p.stack, p.last = []*structure{m.root}, nil
	return nil
}

// member is a field or common struct line.
func (p *parser) member(depth int, words []string) error {
	if len(p.messages) == 0 {
		return fmt.Errorf("no message line before it")
	}
	m := p.messages[len(p.messages)-1]
	if words[0] == "struct" && depth == 1 {
		s := &structure{name: words[1], common: true, message: m, where: m.name}
		m.structs = append(m.structs, s)
		p.stack, p.last = []*structure{m.root, s}, nil
		return nil
	}
	if depth > len(p.stack) { // the first line below a field with a struct of its own
		if p.last == nil || depth != len(p.stack)+1 {
			return fmt.Errorf("%d tabs, nothing above it to belong to", depth)
		}
		parent := p.stack[len(p.stack)-1]
		s := &structure{name: p.last.typ, message: m, where: parent.name + "." + p.last.name}
		m.structs = append(m.structs, s)
		p.last.structure = s
		p.stack = append(p.stack, s)
	}
	p.stack = p.stack[:depth]
	f, err := parseField(words)
	if err != nil {
		return err
	}
	f.line = p.line
	s := p.stack[depth-1]
	s.fields = append(s.fields, f)
	p.last = f
	return nil
}

func parseField(words []string) (*field, error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("field line of %d words", len(words))
	}
	f := &field{name: words[0], in: versions{0, 32767}}
	f.goName = strings.ToUpper(f.name[:1]) + f.name[1:]
	typ, nullable, isNullable := strings.Cut(words[1], "?")
	f.typ = strings.TrimPrefix(typ, "[]")
	f.array = f.typ != typ
	for _, w := range words[2:] {
		if err := f.word(w); err != nil {
			return nil, fmt.Errorf("field %s: %w", f.name, err)
		}
	}
	f.nullable = none
	if isNullable {
		f.nullable = f.in
		if nullable != "" {
			v, err := parseVersions(nullable)
			if err != nil {
				return nil, err
			}
			f.nullable = v
		}
	}
	return f, nil
}

func (f *field) word(w string) (err error) {
	switch {
	case w == "ignorable":
		f.ignorable = true
	case w == "mapKey":
		f.mapKey = true
	case w == "inflexible":
		f.inflexible = true
	case w[0] == '@':
		f.entity = w[1:]
	case w[0] == '=':
		f.hasDefault, f.def = true, w[1:]
	case strings.HasPrefix(w, "as:"):
		f.goName = w[3:]
	case strings.HasPrefix(w, "tag"):
		var n uint64
		n, err = strconv.ParseUint(w[3:], 10, 31)
		f.tagged, f.tag = true, uint32(n)
	case w[0] >= '0' && w[0] <= '9':
		f.in, err = parseVersions(w)
	default:
		err = fmt.Errorf("unknown word %q", w)
	}
	return err
}
