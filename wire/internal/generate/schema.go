package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// versions is a closed range of versions; the zero value is not usable, none is the empty range.
type versions struct{ min, max int16 }

var none = versions{0, -1}

func parseVersions(s string) (versions, error) {
	if s == "none" {
		return none, nil
	}
	low, high, ranged := strings.Cut(s, "-")
	open := strings.HasSuffix(low, "+")
	min, err := strconv.ParseInt(strings.TrimSuffix(low, "+"), 10, 16)
	if err != nil {
		return none, fmt.Errorf("versions %q: %w", s, err)
	}
	switch {
	case ranged:
		max, err := strconv.ParseInt(high, 10, 16)
		if err != nil || max < min || open {
			return none, fmt.Errorf("versions %q", s)
		}
		return versions{int16(min), int16(max)}, nil
	case open:
		return versions{int16(min), math.MaxInt16}, nil
	default:
		return versions{int16(min), int16(min)}, nil
	}
}

func (v versions) empty() bool { return v.max < v.min }

func (v versions) and(o versions) versions {
	r := versions{max(v.min, o.min), min(v.max, o.max)}
	if r.empty() {
		return none
	}
	return r
}

func (v versions) has(n int16) bool { return n >= v.min && n <= v.max }

func (v versions) contains(o versions) bool { return o.empty() || v.min <= o.min && v.max >= o.max }

func (v versions) String() string {
	switch {
	case v.empty():
		return "none"
	case v.max == math.MaxInt16:
		return fmt.Sprintf("%d+", v.min)
	case v.min == v.max:
		return strconv.Itoa(int(v.min))
	default:
		return fmt.Sprintf("%d-%d", v.min, v.max)
	}
}

// message is one definition.
type message struct {
	kind      string // request response header data metadata coordinator-key coordinator-value
	name      string
	source    string // logrecord only: metadata group transaction share raft storage
	key       int    // API key, or type id of a record; -1: it has none
	valid     versions
	flexible  versions
	listeners []string
	unstable  bool // the latest version may still change
	root      *structure
	structs   []*structure // common structs first, then those of fields, in the order of the schema
	file      string       // of the schema, without folder and ending: "produce"
}

// structure is the body of a message, or of a field's elements.
type structure struct {
	name    string // as in the schema
	goName  string
	where   string // "Message.Field" that it belongs to; "" for the message itself
	common  bool
	fields  []*field
	message *message

	needsDefaultCheck bool // some field of this type is compared with its default
}

// field is one field of a struct.
type field struct {
	name       string // as in the schema
	goName     string
	typ        string // of the element, for arrays
	array      bool
	structure  *structure // for struct types
	in         versions
	nullable   versions
	tagged     bool
	tag        uint32
	hasDefault bool
	def        string
	ignorable  bool
	mapKey     bool
	inflexible bool // keeps the old encoding in flexible versions
	entity     string
	line       int
}

// jsonName is the name in the JSON form of messages.
func (f *field) jsonName() string { return strings.ToLower(f.name[:1]) + f.name[1:] }

var scalars = map[string]bool{"bool": true, "int8": true, "int16": true, "uint16": true, "int32": true, "uint32": true,
	"int64": true, "float64": true, "string": true, "uuid": true, "bytes": true, "records": true}

func (f *field) isBytes() bool { return !f.array && (f.typ == "bytes" || f.typ == "records") }
