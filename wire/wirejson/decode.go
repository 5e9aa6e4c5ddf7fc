package wirejson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/ottla-kafka/ottla/wire"
)

// Decode sets m, a pointer to a generated message, from its JSON form. Fields that are absent get their defaults; a name
// that the message does not have is an error.
func Decode(data []byte, m any) error {
	v := reflect.ValueOf(m)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("wirejson: %T is not a pointer to a message", m)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return fmt.Errorf("wirejson: %w", err)
	}
	return decodeStruct(tree, v.Elem())
}

func decodeStruct(tree any, v reflect.Value) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return mismatch(tree, v)
	}
	info, err := structOf(v.Type())
	if err != nil {
		return err
	}
	v.Addr().Interface().(interface{ SetDefaults() }).SetDefaults()
	known := 0
	for i := range info.fields {
		f := &info.fields[i]
		value, ok := object[f.name]
		if !ok {
			continue
		}
		known++
		if err := decodeValue(value, v.Field(f.index)); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if known != len(object) {
		return fmt.Errorf("wirejson: %d names that %s does not have", len(object)-known, v.Type())
	}
	return nil
}

func decodeValue(tree any, v reflect.Value) error {
	if tree == nil {
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Slice {
			return mismatch(tree, v)
		}
		v.SetZero()
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decodeValue(tree, v.Elem())
	case reflect.Struct:
		return decodeStruct(tree, v)
	case reflect.Slice:
		return decodeSlice(tree, v)
	}
	switch t := tree.(type) {
	case bool:
		if v.Kind() != reflect.Bool {
			return mismatch(tree, v)
		}
		v.SetBool(t)
		return nil
	case json.Number:
		return decodeNumber(t, v)
	case string:
		return decodeText(t, v)
	default:
		return mismatch(tree, v)
	}
}

func decodeSlice(tree any, v reflect.Value) error {
	if text, ok := tree.(string); ok && v.Type().Elem().Kind() == reflect.Uint8 {
		b, err := base64.StdEncoding.DecodeString(text)
		if b == nil {
			b = []byte{}
		}
		v.SetBytes(b)
		return err
	}
	list, ok := tree.([]any)
	if !ok {
		return mismatch(tree, v)
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, e := range list {
		if err := decodeValue(e, v.Index(i)); err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	return nil
}

func decodeNumber(n json.Number, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Float64:
		f, err := n.Float64()
		v.SetFloat(f)
		return err
	case reflect.Uint16, reflect.Uint32:
		u, err := strconv.ParseUint(n.String(), 10, v.Type().Bits())
		v.SetUint(u)
		return err
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		i, err := strconv.ParseInt(n.String(), 10, v.Type().Bits())
		v.SetInt(i)
		return err
	}
	return mismatch(n, v)
}

func decodeText(text string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return nil
	case reflect.Array:
		u, err := wire.ParseUUID(text)
		v.Set(reflect.ValueOf(u))
		return err
	case reflect.Float64:
		if f, ok := map[string]float64{"NaN": math.NaN(), "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)}[text]; ok {
			v.SetFloat(f)
			return nil
		}
	}
	return mismatch(text, v)
}

func mismatch(tree any, v reflect.Value) error {
	what := "null"
	switch tree.(type) {
	case bool:
		what = "boolean"
	case json.Number:
		what = "number"
	case string:
		what = "string"
	case []any:
		what = "array"
	case map[string]any:
		what = "object"
	}
	return fmt.Errorf("wirejson: a JSON %s does not fit a %s", what, v.Type())
}
