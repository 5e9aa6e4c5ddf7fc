package config

import (
	"embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed data/*.tsv
var tables embed.FS

// Key is the definition of one config. It is shared and must not be changed.
type Key struct {
	Name          string
	Type          Type
	Default       *string // nil: null, the config is unset
	Required      bool    // no default: somebody has to set it
	ValidValues   string  // as Apache Kafka prints them, "" when everything of the type is valid
	Importance    string  // HIGH, MEDIUM, LOW
	Internal      bool    // not described to clients
	UpdateMode    UpdateMode
	BrokerSynonym string // topic and group configs: the broker config that is the default

	valid validator
}

// Definition is the set of configs that one kind of resource has.
type Definition struct {
	Kind string // "topic", "broker", "group", "client-metrics": as messages call them
	keys []*Key
	by   map[string]*Key
}

// Keys returns all definitions, sorted by name. The slice must not be changed.
func (d *Definition) Keys() []*Key { return d.keys }

// Lookup finds a definition by name.
func (d *Definition) Lookup(name string) (*Key, bool) {
	k, ok := d.by[name]
	return k, ok
}

// The tables are read once, when first needed: an embedded broker that starts within milliseconds should not pay for
// definitions at init. OnceValue keeps no goroutine and no timer.
var (
	topicKeys         = sync.OnceValue(func() *Definition { return mustLoad("topic") })
	brokerKeys        = sync.OnceValue(func() *Definition { return mustLoad("broker") })
	groupKeys         = sync.OnceValue(func() *Definition { return mustLoad("group") })
	clientMetricsKeys = sync.OnceValue(func() *Definition { return mustLoad("client-metrics") })
)

// TopicKeys are the configs of a topic.
func TopicKeys() *Definition { return topicKeys() }

// BrokerKeys are the configs of a broker or controller: server properties and dynamic configs.
func BrokerKeys() *Definition { return brokerKeys() }

// GroupKeys are the configs of a group.
func GroupKeys() *Definition { return groupKeys() }

// ClientMetricsKeys are the configs of a client metrics subscription.
func ClientMetricsKeys() *Definition { return clientMetricsKeys() }

// KeysOf returns the definitions for a kind of resource; nil for loggers and unknown kinds, which have none.
func KeysOf(t ResourceType) *Definition {
	switch t {
	case TopicResource:
		return TopicKeys()
	case BrokerResource:
		return BrokerKeys()
	case GroupResource:
		return GroupKeys()
	case ClientMetricsResource:
		return ClientMetricsKeys()
	}
	return nil
}

// mustLoad reads an embedded table; a line it cannot read is a broken build, found by the first test that runs.
func mustLoad(kind string) *Definition {
	d, err := load(kind)
	if err != nil {
		panic("config: data/" + kind + ".tsv: " + err.Error())
	}
	return d
}

func load(kind string) (*Definition, error) {
	d := &Definition{Kind: kind, by: make(map[string]*Key)}
	rows, err := readTable("data/" + kind + ".tsv")
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		k, err := newKey(row)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row["name"], err)
		}
		d.keys = append(d.keys, k) // the tables are sorted by name
		d.by[k.Name] = k
	}
	return d, nil
}

func newKey(row map[string]string) (*Key, error) {
	t, ok := parseType(row["type"])
	if !ok {
		return nil, fmt.Errorf("unknown type %q", row["type"])
	}
	k := &Key{
		Name: row["name"], Type: t, ValidValues: row["validValues"], Importance: row["importance"],
		Internal: row["internal"] == "true", BrokerSynonym: row["brokerSynonym"],
	}
	switch def := row["default"]; def {
	case "(required)":
		k.Required = true
	case "(null)":
	default:
		k.Default = &def
	}
	switch row["updateMode"] {
	case "per-broker":
		k.UpdateMode = PerBroker
	case "cluster-wide":
		k.UpdateMode = ClusterWide
	}
	var err error
	k.valid, err = parseValidator(k.ValidValues)
	return k, err
}

// readTable returns the rows of a tab separated file as column -> cell.
func readTable(name string) ([]map[string]string, error) {
	b, err := tables.ReadFile(name)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	columns := strings.Split(lines[0], "\t")
	rows := make([]map[string]string, 0, len(lines)-1)
	for _, line := range lines[1:] {
		cells := strings.Split(line, "\t")
		if len(cells) != len(columns) {
			return nil, fmt.Errorf("line %q has %d cells, want %d", line, len(cells), len(columns))
		}
		row := make(map[string]string, len(cells))
		for i, c := range cells {
			row[columns[i]] = c
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Sensitive reports whether the value must never be shown: passwords.
func (k *Key) Sensitive() bool { return k.Type == Password }

// MaybeSensitive is Apache Kafka's rule for what DescribeConfigs withholds: passwords, and names it does not know (they
// may belong to a plugin and hold a secret).
func MaybeSensitive(k *Key) bool { return k == nil || k.Sensitive() }
