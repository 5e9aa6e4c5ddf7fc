package wirejson

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/internal/oracle"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

func newMessage(name string) wire.Message {
	if m := message.New(name); m != nil {
		return m
	}
	return logrecord.New(name)
}

type vector struct {
	Name        string
	Version     int16
	Case        string
	JSON        json.RawMessage
	UnknownTags []struct {
		Path string
		Tag  uint32
		Hex  string
	}
	Hex string
}

// Every vector goes three ways: bytes -> message -> JSON, the same message -> bytes, and JSON -> message -> bytes.
func TestOracleVectors(t *testing.T) {
	names, err := fs.Glob(oracle.FS(), "wire/*.jsonl.gz")
	require.NoError(t, err)
	total, pairs := 0, map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "/frames.jsonl.gz") || strings.HasSuffix(name, "/unsupported.jsonl.gz") {
			continue
		}
		oracle.JSONLines(t, name, func(n int, v vector) {
			if err := checkVector(&v); err != nil {
				t.Errorf("%s:%d: %s version %d case %s: %v", name, n, v.Name, v.Version, v.Case, err)
			}
			total++
			pairs[fmt.Sprint(v.Name, v.Version)] = true
		})
	}
	t.Logf("%d vectors of %d message versions", total, len(pairs))
	require.NotZero(t, total)
}

func checkVector(v *vector) error {
	raw, err := hex.DecodeString(v.Hex)
	if err != nil {
		return err
	}
	m := newMessage(v.Name)
	if m == nil {
		return fmt.Errorf("no such message")
	}
	// Twice into the same message: nothing of a first reading may be left after a second one.
	for range 2 {
		r := wire.NewReader(raw)
		if err := m.ReadFrom(r, v.Version); err != nil {
			return err
		}
		if r.Remaining() != 0 {
			return fmt.Errorf("%d bytes left", r.Remaining())
		}
	}
	got, err := Append(nil, m, v.Version)
	if err != nil {
		return err
	}
	if err := sameJSON(v.JSON, got); err != nil {
		return err
	}
	if err := checkEncoded(m, v.Version, raw); err != nil {
		return fmt.Errorf("encoding what was decoded: %w", err)
	}
	built := newMessage(v.Name)
	if err := Decode(v.JSON, built); err != nil {
		return err
	}
	for _, tag := range v.UnknownTags {
		if err := addTag(built, tag.Path, tag.Tag, tag.Hex); err != nil {
			return err
		}
	}
	if err := checkEncoded(built, v.Version, raw); err != nil {
		return fmt.Errorf("encoding the JSON: %w", err)
	}
	return nil
}

func checkEncoded(m wire.Message, version int16, want []byte) error {
	out, err := m.AppendTo([]byte("prefix"), version)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(out, []byte("prefix")) {
		return fmt.Errorf("bytes before the message have changed")
	}
	if !bytes.Equal(out[len("prefix"):], want) {
		return fmt.Errorf("got %x, want %x", out[len("prefix"):], want)
	}
	return nil
}

func sameJSON(want, got []byte) error {
	trees := [2]any{}
	for i, data := range [][]byte{want, got} {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		if err := dec.Decode(&trees[i]); err != nil {
			return err
		}
		trees[i] = plain(trees[i])
	}
	if !reflect.DeepEqual(trees[0], trees[1]) {
		return fmt.Errorf("JSON is\n%s\nwant\n%s", got, want)
	}
	return nil
}

// plain makes numbers comparable: 1.0 and 1 are the same, integers stay exact.
func plain(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		for k, v := range t {
			t[k] = plain(v)
		}
	case []any:
		for i, v := range t {
			t[i] = plain(v)
		}
	case json.Number:
		if !strings.ContainsAny(t.String(), ".eE") {
			return t.String()
		}
		f, err := t.Float64()
		if err == nil {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
	}
	return tree
}

// addTag sets an unknown tagged field in the struct that path leads to: "field.index.field", "" is the message.
func addTag(m wire.Message, path string, tag uint32, data string) error {
	v := reflect.ValueOf(m).Elem()
	if path != "" {
		for _, step := range strings.Split(path, ".") {
			for v.Kind() == reflect.Pointer {
				v = v.Elem()
			}
			if i, err := strconv.Atoi(step); err == nil {
				v = v.Index(i)
				continue
			}
			info, err := structOf(v.Type())
			if err != nil {
				return err
			}
			found := false
			for _, f := range info.fields {
				if f.name == step {
					v, found = v.Field(f.index), true
					break
				}
			}
			if !found {
				return fmt.Errorf("no field %s of path %s", step, path)
			}
		}
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	raw, err := hex.DecodeString(data)
	if err != nil {
		return err
	}
	tags := v.FieldByName("UnknownTags").Addr().Interface().(*wire.Tags)
	*tags = append(*tags, wire.Tag{ID: tag, Data: raw})
	return nil
}

// A field that the version lacks is dropped when it is ignorable, and refused otherwise unless it has its default.
func TestOracleUnsupportedFields(t *testing.T) {
	total := 0
	oracle.JSONLines(t, "wire/unsupported.jsonl.gz", func(n int, v struct {
		Name          string
		Version       int16
		Field         string
		Value         json.RawMessage
		Result        string
		SameAsDefault bool
	}) {
		total++
		where := fmt.Sprintf("line %d: %s version %d field %s", n, v.Name, v.Version, v.Field)
		m := newMessage(v.Name)
		require.NotNil(t, m, where)
		require.NoError(t, Decode([]byte(fmt.Sprintf("{%q:%s}", v.Field, v.Value)), m), where)
		out, err := m.AppendTo(nil, v.Version)
		if v.Result != "written" {
			require.ErrorIs(t, err, wire.ErrUnsupportedVersion, where)
			return
		}
		require.NoError(t, err, where)
		if v.SameAsDefault {
			plain, err := newMessage(v.Name).AppendTo(nil, v.Version)
			require.NoError(t, err, where)
			require.Equal(t, plain, out, where)
		}
	})
	t.Logf("%d lines", total)
}
