package wirejson

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// structInfo is what the struct tags of a generated type say. The tag is `kafka:"VERSIONS[,nullable][,tag][,name=X]"`.
type structInfo struct {
	fields   []fieldInfo
	defaults reflect.Value // a value with every field at its default
}

type fieldInfo struct {
	index    int
	name     string // in JSON
	min, max int16
	nullable bool // in some version
	tagged   bool
}

func (f *fieldInfo) in(version int16) bool { return version >= f.min && version <= f.max }

// infos caches structOf by type: messages have up to thousands of elements of one type.
var infos sync.Map // reflect.Type -> *structInfo

func structOf(t reflect.Type) (*structInfo, error) {
	if info, ok := infos.Load(t); ok {
		return info.(*structInfo), nil
	}
	fresh := reflect.New(t)
	message, ok := fresh.Interface().(interface{ SetDefaults() })
	if !ok {
		return nil, fmt.Errorf("wirejson: %s is not a generated struct", t)
	}
	message.SetDefaults()
	info := &structInfo{defaults: fresh.Elem()}
	for i := range t.NumField() {
		tag, ok := t.Field(i).Tag.Lookup("kafka")
		if !ok {
			continue // UnknownTags
		}
		f, err := parseTag(t.Field(i).Name, tag)
		if err != nil {
			return nil, fmt.Errorf("wirejson: %s.%s: %w", t, t.Field(i).Name, err)
		}
		f.index = i
		info.fields = append(info.fields, f)
	}
	infos.Store(t, info)
	return info, nil
}

func parseTag(goName, tag string) (fieldInfo, error) {
	f := fieldInfo{name: strings.ToLower(goName[:1]) + goName[1:]}
	words := strings.Split(tag, ",")
	for _, w := range words[1:] {
		switch {
		case w == "nullable":
			f.nullable = true
		case w == "tag":
			f.tagged = true
		case strings.HasPrefix(w, "name="):
			f.name = w[len("name="):]
		}
	}
	low, high, ranged := strings.Cut(words[0], "-")
	open := strings.HasSuffix(low, "+")
	n, err := strconv.ParseInt(strings.TrimSuffix(low, "+"), 10, 16)
	if err != nil {
		return f, err
	}
	f.min, f.max = int16(n), int16(n)
	if open {
		f.max = math.MaxInt16
	}
	if ranged {
		n, err = strconv.ParseInt(high, 10, 16)
		f.max = int16(n)
	}
	return f, err
}

// equal compares a field with a default: nil and empty are the same unless the field can be null.
func equal(a, b reflect.Value, nullable bool) bool {
	switch a.Kind() {
	case reflect.Slice: // the default is empty or null
		return a.Len() == 0 && b.Len() == 0 && (!nullable || a.IsNil() == b.IsNil())
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return equal(a.Elem(), b.Elem(), false)
	case reflect.Struct:
		info, err := structOf(a.Type())
		if err != nil {
			return false
		}
		for i := range info.fields {
			f := &info.fields[i]
			if !equal(a.Field(f.index), b.Field(f.index), f.nullable) {
				return false
			}
		}
		tags := a.FieldByName("UnknownTags")
		return !tags.IsValid() || tags.Len() == 0
	default:
		return a.Equal(b)
	}
}
