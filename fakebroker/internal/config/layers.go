package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Layers is everything one broker knows about its own configs: the server properties it was started with, and the
// dynamic configs of the metadata image over them. A Layers is immutable and safe for any number of readers.
type Layers struct {
	static      map[string]string // server properties
	perBroker   map[string]string // dynamic, resource BROKER "<id>"
	clusterWide map[string]string // dynamic, resource BROKER ""

	logDefaults func() *Log // what a topic without overrides has; computed once
}

// NewLayers checks server properties (Java names) and returns the layers without dynamic configs. The error joins
// everything that is wrong: unknown names with a suggestion, values that do not parse or are out of range.
func NewLayers(properties map[string]string) (*Layers, error) {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		k, ok := BrokerKeys().Lookup(BaseName(name))
		if !ok {
			errs = append(errs, &UnknownKeyError{Kind: "broker", Key: name, Suggest: BrokerKeys().Suggest(name)})
			continue
		}
		text := properties[name]
		if _, err := k.Parse(&text); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("config: server properties: %w", errors.Join(errs...))
	}
	return newLayers(withNodeID(properties), nil, nil), nil
}

// withNodeID sets node.id and its old name broker.id to the same value when only one of them is given.
func withNodeID(properties map[string]string) map[string]string {
	all := make(map[string]string, len(properties)+1)
	maps.Copy(all, properties)
	node, hasNode := all["node.id"]
	broker, hasBroker := all["broker.id"]
	switch {
	case hasNode && !hasBroker:
		all["broker.id"] = node
	case hasBroker && !hasNode:
		all["node.id"] = broker
	}
	return all
}

func newLayers(static, perBroker, clusterWide map[string]string) *Layers {
	l := &Layers{static: static, perBroker: perBroker, clusterWide: clusterWide}
	l.logDefaults = sync.OnceValue(func() *Log { return l.resolveLog(nil) })
	return l
}

// With returns the layers with other dynamic configs, those of this broker and those of all brokers. The maps are kept
// and must not change.
func (l *Layers) With(perBroker, clusterWide map[string]string) *Layers {
	return newLayers(l.static, perBroker, clusterWide)
}

// Static returns the server properties. The map must not be changed.
func (l *Layers) Static() map[string]string { return l.static }

var listenerPrefix = regexp.MustCompile(`^listener\.name\.[^.]*\.(.*)$`)

// BaseName drops what narrows a config to one listener or SASL mechanism:
// listener.name.sasl_ssl.plain.sasl.jaas.config is a sasl.jaas.config.
func BaseName(name string) string {
	m := listenerPrefix.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	if at := strings.Index(m[1], ".sasl."); at > 0 {
		if base := m[1][at+1:]; BrokerKeys().by[base] != nil {
			return base
		}
	}
	return m[1]
}

// layer pairs the texts of one layer with the source that DescribeConfigs names.
type layer struct {
	source Source
	get    func(name string) (string, bool)
}

func (l *Layers) order() [4]layer {
	in := func(m map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
	}
	return [4]layer{
		{DynamicBrokerSource, in(l.perBroker)},
		{DynamicDefaultSource, in(l.clusterWide)},
		{StaticBrokerSource, in(l.static)},
		{DefaultSource, func(name string) (string, bool) {
			if k, ok := BrokerKeys().Lookup(name); ok && k.Default != nil {
				return *k.Default, true
			}
			return "", false
		}},
	}
}

// Text returns the value in effect of a broker config, not yet parsed, and where it is from; nil when it is unset.
func (l *Layers) Text(name string) (*string, Source) {
	for _, layer := range l.order() {
		if v, ok := layer.get(name); ok {
			return &v, layer.source
		}
	}
	return nil, DefaultSource
}

// Value returns the parsed value in effect of a broker config. It panics for a name that is in no table: names are
// written in code. A dynamic value that does not parse (a record of another version) is passed over.
func (l *Layers) Value(name string) Value {
	k, ok := BrokerKeys().Lookup(name)
	if !ok {
		panic("config: " + name + " is no broker config")
	}
	for _, layer := range l.order() {
		text, ok := layer.get(name)
		if !ok {
			continue
		}
		if v, err := k.Parse(&text); err == nil || layer.source == DefaultSource {
			return v
		}
	}
	return Value{Null: true}
}

// Int returns an INT, SHORT or LONG broker config; 0 when it is unset.
func (l *Layers) Int(name string) int64 { return l.Value(name).Int }

// Bool returns a BOOLEAN broker config.
func (l *Layers) Bool(name string) bool { return l.Value(name).Bool }

// String returns a STRING or CLASS broker config; "" when it is unset.
func (l *Layers) String(name string) string { return l.Value(name).Text }

// List returns a LIST broker config.
func (l *Layers) List(name string) []string { return l.Value(name).List }
