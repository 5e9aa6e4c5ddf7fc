package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/ottla-kafka/ottla/admin"
)

// output is the flag of commands that print rows.
type output struct {
	Output string `short:"o" default:"table" enum:"table,json,jsonl" help:"How to print: table, json (one array) or jsonl (an object a line)."`
}

// table is rows under names. The names are JSON keys, and in capitals the heads of the columns, so that all forms of output
// say the same. A cell is a string, number, bool, list or nil.
type table struct {
	columns []string
	rows    [][]any
}

func newTable(columns ...string) *table { return &table{columns: columns} }

func (t *table) add(cells ...any) { t.rows = append(t.rows, cells) }

// print writes the table in the form asked for.
func (t *table) print(w io.Writer, form string) error {
	switch form {
	case "json":
		return t.printArray(w)
	case "jsonl":
		for _, row := range t.rows {
			if _, err := fmt.Fprintf(w, "%s\n", t.object(row)); err != nil {
				return err
			}
		}
		return nil
	}
	return t.printTable(w)
}

func (t *table) printArray(w io.Writer) error {
	var b strings.Builder
	b.WriteString("[")
	for i, row := range t.rows {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n  ")
		b.Write(t.object(row))
	}
	if len(t.rows) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("]\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// object is a row with its keys in the order of the columns, which maps would not keep.
func (t *table) object(row []any) []byte {
	b := []byte("{")
	for i, cell := range row {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, jsonOf(t.columns[i])...), ':'), jsonOf(cell)...)
	}
	return append(b, '}')
}

// jsonOf is JSON without the escapes that only HTML needs.
func jsonOf(v any) []byte {
	if _, own := v.(json.Marshaler); own {
		// it says itself what nothing is
	} else if v := reflect.ValueOf(v); v.Kind() == reflect.Slice && v.IsNil() {
		return []byte("[]") // an empty list, however it came about
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("ottla: a cell of type %T is no JSON: %v", v, err))
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

func (t *table) printTable(w io.Writer) error {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	heads := make([]string, len(t.columns))
	for i, c := range t.columns {
		heads[i] = strings.ToUpper(strings.ReplaceAll(c, "_", "-"))
	}
	fmt.Fprintln(tab, strings.Join(heads, "\t"))
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cellText(cell)
		}
		fmt.Fprintln(tab, strings.Join(cells, "\t"))
	}
	tab.Flush()
	for line := range strings.Lines(b.String()) { // no blanks behind a short last cell
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// cellText is a cell for people: a dash for nothing, lists with commas, and no character that would break the table.
func cellText(cell any) string {
	v := reflect.ValueOf(cell)
	if a, ok := cell.(assignment); ok {
		cell, v = a.String(), reflect.ValueOf(a.String())
	}
	switch {
	case cell == nil || v.Kind() == reflect.Slice && v.Len() == 0 || v.Kind() == reflect.String && v.Len() == 0:
		return "-"
	case v.Kind() == reflect.Slice:
		words := make([]string, v.Len())
		for i := range words {
			words[i] = cellText(v.Index(i).Interface())
		}
		return strings.Join(words, ",")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, fmt.Sprint(cell))
}

// known is a number that may not be: then nothing.
func known[T int | int32 | int64](n T) any {
	if n < 0 {
		return nil
	}
	return n
}

// named is a text that may not be: then nothing.
func named[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// assignment is a list of partitions by topic and number: for people orders:0-3,7, in JSON {"orders":[0,1,2,3,7]}.
type assignment []admin.TopicPartition

// MarshalJSON implements json.Marshaler.
func (a assignment) MarshalJSON() ([]byte, error) {
	topics := map[string][]int32{}
	for _, tp := range a {
		topics[tp.Topic] = append(topics[tp.Topic], tp.Partition)
	}
	return json.Marshal(topics)
}

// String puts partitions that follow each other together.
func (a assignment) String() string {
	var out []string
	for i := 0; i < len(a); {
		topic := a[i].Topic
		var parts []string
		for i < len(a) && a[i].Topic == topic {
			first := a[i].Partition
			last := first
			for i++; i < len(a) && a[i].Topic == topic && a[i].Partition == last+1; i++ {
				last++
			}
			if first == last {
				parts = append(parts, fmt.Sprint(first))
			} else {
				parts = append(parts, fmt.Sprintf("%d-%d", first, last))
			}
		}
		out = append(out, topic+":"+strings.Join(parts, ","))
	}
	return strings.Join(out, " ")
}
