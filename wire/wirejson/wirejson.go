// Package wirejson prints and reads generated messages in the JSON form of Apache Kafka's own converters, the form that
// its request log and its DumpLogSegments tool show: field names start with a small letter, fields that the version does
// not have and tagged fields at their default are absent, bytes are base64, UUIDs are in their text form, and all
// integers are JSON numbers, also beyond 2^53 (decode them with json.Number).
//
// It works by reflection and is for tools and tests, not for serving requests.
package wirejson

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/ottla-kafka/ottla/wire"
)

// Append appends the JSON form of m, a pointer to a generated message, in a version. Unknown tagged fields have no JSON
// form and are left out, as in Kafka. A field that is set and that the version does not have is left out too: only
// AppendTo of the message refuses it.
func Append(dst []byte, m any, version int16) ([]byte, error) {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return dst, fmt.Errorf("wirejson: %T is not a pointer to a message", m)
	}
	return appendStruct(dst, v.Elem(), version)
}

func appendStruct(dst []byte, v reflect.Value, version int16) ([]byte, error) {
	info, err := structOf(v.Type())
	if err != nil {
		return dst, err
	}
	dst = append(dst, '{')
	first := true
	for i := range info.fields {
		f := &info.fields[i]
		if !f.in(version) || f.tagged && equal(v.Field(f.index), info.defaults.Field(f.index), f.nullable) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(append(dst, '"'), f.name...), `":`...)
		if dst, err = appendValue(dst, v.Field(f.index), f.nullable, version); err != nil {
			return dst, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return append(dst, '}'), nil
}

// appendValue appends one field or element. Only a nullable one can be null: nil otherwise means empty.
func appendValue(dst []byte, v reflect.Value, nullable bool, version int16) ([]byte, error) {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool()), nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(dst, v.Int(), 10), nil
	case reflect.Uint16, reflect.Uint32:
		return strconv.AppendUint(dst, v.Uint(), 10), nil
	case reflect.Float64:
		return appendFloat(dst, v.Float())
	case reflect.String:
		return appendString(dst, v.String())
	case reflect.Struct:
		return appendStruct(dst, v, version)
	case reflect.Array:
		return appendString(dst, v.Interface().(wire.UUID).String())
	case reflect.Pointer:
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return appendValue(dst, v.Elem(), false, version)
	case reflect.Slice:
		if v.IsNil() && nullable {
			return append(dst, "null"...), nil
		}
		return appendSlice(dst, v, version)
	default:
		return dst, fmt.Errorf("wirejson: a %s has no JSON form", v.Type())
	}
}

func appendSlice(dst []byte, v reflect.Value, version int16) ([]byte, error) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
		return append(dst, '"'), nil
	}
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, v.Index(i), false, version); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendString(dst []byte, s string) ([]byte, error) {
	b, err := json.Marshal(s)
	return append(dst, b...), err
}

// appendFloat writes what JSON has no number for as the text that Jackson writes.
func appendFloat(dst []byte, f float64) ([]byte, error) {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...), nil
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...), nil
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...), nil
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64), nil
}
