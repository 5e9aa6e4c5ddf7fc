package main

import (
	"fmt"
	"sort"
	"strings"
)

func (p *printer) head(pkg string, imports bool) {
	p.line("%s; DO NOT EDIT.", generatedMark)
	p.line("")
	p.line("package %s", pkg)
	if imports {
		p.line("\nimport %q", "github.com/ottla-kafka/ottla/wire")
	}
}

// byKind are the messages of a kind that have versions, by key and then name.
func byKind(messages []*message, kind, source string) []*message {
	var some []*message
	for _, m := range messages {
		if m.kind == kind && m.source == source && !m.valid.empty() {
			some = append(some, m)
		}
	}
	sort.Slice(some, func(i, j int) bool {
		if some[i].key != some[j].key {
			return some[i].key < some[j].key
		}
		return some[i].name < some[j].name
	})
	return some
}

func (p *printer) newSwitch(on string, messages []*message, label func(*message) string) {
	p.line("switch %s {", on)
	for _, m := range messages {
		p.line("case %s:\nreturn New%s()", label(m), m.name)
	}
	p.line("}\nreturn nil")
}

// byName is New and Names, over all messages of a package.
func (p *printer) byName(messages []*message) {
	var some []*message
	for _, m := range messages {
		if !m.valid.empty() {
			some = append(some, m)
		}
	}
	sort.Slice(some, func(i, j int) bool { return some[i].name < some[j].name })
	p.line("\n// New returns the message of the given name, such as %q, with defaults; nil for an unknown name.", some[0].name)
	p.line("func New(name string) wire.Message {")
	p.newSwitch("name", some, func(m *message) string { return fmt.Sprintf("%q", m.name) })
	p.line("}")
	p.line("\n// Names are the names that New knows, in order.")
	p.line("func Names() []string {\nreturn []string{")
	for _, m := range some {
		p.line("%q,", m.name)
	}
	p.line("}\n}")
}

func emitMessageRegistry(messages []*message) ([]byte, error) {
	p := &printer{}
	p.head("message", true)
	p.line("\n// NewRequest returns the request of an API with defaults; nil when this module does not have the API.")
	p.line("func NewRequest(k wire.Key) Request {")
	p.newSwitch("k", byKind(messages, "request", ""), func(m *message) string { return "wire.Key" + apiName(m) })
	p.line("}")
	p.line("\n// NewResponse returns the response of an API with defaults; nil when this module does not have the API.")
	p.line("func NewResponse(k wire.Key) Response {")
	p.newSwitch("k", byKind(messages, "response", ""), func(m *message) string { return "wire.Key" + apiName(m) })
	p.line("}")
	p.byName(messages)
	return p.formatted()
}

func emitRecordRegistry(messages []*message) ([]byte, error) {
	p := &printer{}
	p.head("logrecord", true)
	p.line("\n// NewMetadataRecord returns the metadata record of a type with defaults; nil for an unknown type.")
	p.line("func NewMetadataRecord(apiKey int16) Record {")
	number := func(m *message) string { return fmt.Sprint(m.key) }
	p.newSwitch("apiKey", byKind(messages, "metadata", "metadata"), number)
	p.line("}")
	for _, source := range []string{"group", "transaction", "share"} {
		for _, part := range []string{"key", "value"} {
			p.line("\nfunc new%s%s(apiKey int16) Record {", strings.ToUpper(source[:1])+source[1:], strings.ToUpper(part[:1])+part[1:])
			p.newSwitch("apiKey", byKind(messages, "coordinator-"+part, source), number)
			p.line("}")
		}
	}
	p.byName(messages)
	return p.formatted()
}

// requestsByKey are all requests by key, removed APIs with them.
func requestsByKey(messages []*message) []*message {
	var some []*message
	for _, m := range messages {
		if m.kind == "request" {
			some = append(some, m)
		}
	}
	sort.Slice(some, func(i, j int) bool { return some[i].key < some[j].key })
	return some
}

func emitAPIs(messages []*message) ([]byte, error) {
	p := &printer{}
	p.head("wire", false)
	requests := requestsByKey(messages)
	p.line("\n// The API keys of Apache Kafka 4.4. Those without versions were removed in Kafka 4; their numbers stay taken.")
	p.line("const (")
	for _, m := range requests {
		removed := ""
		if m.valid.empty() {
			removed = " // removed in Kafka 4"
		}
		p.line("Key%s Key = %d%s", apiName(m), m.key, removed)
	}
	p.line(")")
	p.line("\nvar apis = [...]api{")
	for _, m := range requests {
		if m.valid.empty() {
			p.line("Key%s: {name: %q, min: 0, max: -1, stable: -1, flexibleFrom: -1},", apiName(m), apiName(m))
			continue
		}
		words := fmt.Sprintf("name: %q, min: %d, max: %d, stable: %d, flexibleFrom: %d",
			apiName(m), m.valid.min, m.valid.max, stable(m), flexibleFrom(m))
		for _, l := range m.listeners {
			words += ", " + l + ": true"
		}
		p.line("Key%s: {%s},", apiName(m), words)
	}
	p.line("}")
	return p.formatted()
}

func stable(m *message) int16 {
	if m.unstable {
		return m.valid.max - 1
	}
	return m.valid.max
}

func flexibleFrom(m *message) int16 {
	if f := m.flexible.and(m.valid); !f.empty() {
		return m.flexible.min
	}
	return -1
}

// readmeTable is a markdown table of the APIs that exist.
func readmeTable(messages []*message) string {
	var b strings.Builder
	b.WriteString("| key | API | versions | flexible from | listeners |\n|---:|---|---|---|---|\n")
	for _, m := range requestsByKey(messages) {
		if m.valid.empty() {
			continue
		}
		flexible := "-"
		if f := flexibleFrom(m); f >= 0 {
			flexible = fmt.Sprint(f)
		}
		versions := m.valid.String()
		if m.unstable {
			versions += fmt.Sprintf(" (%d unstable)", m.valid.max)
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s |\n", m.key, apiName(m), versions, flexible, strings.Join(m.listeners, ", "))
	}
	return b.String()
}
