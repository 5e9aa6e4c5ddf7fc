package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/wire/message"
)

// ConfigSource tells where a value comes from; the numbers are Kafka's.
type ConfigSource int8

// Sources of a value.
const (
	TopicConfig          ConfigSource = 1 // set on the topic
	DynamicBroker        ConfigSource = 2 // set on this broker while it runs
	DynamicBrokerDefault ConfigSource = 3 // set for all brokers while they run
	StaticBroker         ConfigSource = 4 // server.properties
	Default              ConfigSource = 5
	DynamicBrokerLogger  ConfigSource = 6
	ClientMetricsConfig  ConfigSource = 7
	GroupConfig          ConfigSource = 8
)

// String is Kafka's name of the source.
func (s ConfigSource) String() string {
	names := [...]string{1: "DYNAMIC_TOPIC_CONFIG", 2: "DYNAMIC_BROKER_CONFIG", 3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
		4: "STATIC_BROKER_CONFIG", 5: "DEFAULT_CONFIG", 6: "DYNAMIC_BROKER_LOGGER_CONFIG", 7: "DYNAMIC_CLIENT_METRICS_CONFIG",
		8: "DYNAMIC_GROUP_CONFIG"}
	if s < 1 || int(s) >= len(names) {
		return "UNKNOWN"
	}
	return names[s]
}

// ConfigType is the type of a configuration's value; the numbers are Kafka's.
type ConfigType int8

// String is Kafka's name of the type, "UNKNOWN" with brokers before 2.6.
func (t ConfigType) String() string {
	names := [...]string{"UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}
	if t < 0 || int(t) >= len(names) {
		return names[0]
	}
	return names[t]
}

// ConfigEntry is one configuration of a resource.
type ConfigEntry struct {
	Name      string
	Value     *string // nil: not set, or sensitive
	Source    ConfigSource
	ReadOnly  bool
	Sensitive bool
	Type      ConfigType
	Synonyms  []ConfigSynonym // all that could give the value, in order of precedence: the first one does
	Doc       string          // Kafka's documentation; empty with brokers before 2.6
}

// IsDefault tells that nobody set the value.
func (e ConfigEntry) IsDefault() bool { return e.Source == Default }

// String is name=value, as a properties file has it.
func (e ConfigEntry) String() string {
	switch {
	case e.Sensitive:
		return e.Name + "=[hidden]"
	case e.Value == nil:
		return e.Name + "=null"
	}
	return e.Name + "=" + *e.Value
}

// ConfigSynonym is a configuration that stands in for another one.
type ConfigSynonym struct {
	Name   string
	Value  *string
	Source ConfigSource
}

// ResourceConfigs is a row of DescribeConfigs; entries are by name.
type ResourceConfigs struct {
	Resource Resource
	Entries  []ConfigEntry
	Err      error
}

// Get is the value of one configuration, "" and false when it is absent or not set.
func (r ResourceConfigs) Get(name string) (value string, ok bool) {
	if e, found := r.Entry(name); found && e.Value != nil {
		return *e.Value, true
	}
	return "", false
}

// Entry finds one configuration.
func (r ResourceConfigs) Entry(name string) (ConfigEntry, bool) {
	i, ok := slices.BinarySearchFunc(r.Entries, name, func(e ConfigEntry, n string) int { return strings.Compare(e.Name, n) })
	if !ok {
		return ConfigEntry{}, false
	}
	return r.Entries[i], true
}

// DescribeConfigs gives all configurations of the resources, with synonyms and documentation where brokers send them. A
// broker's own configurations come from that broker.
func (a *Admin) DescribeConfigs(ctx context.Context, resources ...Resource) ([]ResourceConfigs, error) {
	resources = unique(resources)
	rows := make([]ResourceConfigs, len(resources))
	for i, r := range resources {
		rows[i].Resource = r
	}
	errs := a.rounds(ctx, len(resources), throttled, func(ctx context.Context, left []int, errs []error) {
		targets, groups := byTarget(resources, left)
		for _, target := range targets {
			req := message.NewDescribeConfigsRequest()
			req.IncludeSynonyms, req.IncludeDocumentation = true, true
			for _, i := range groups[target] {
				req.Resources = append(req.Resources, message.DescribeConfigsResource{ResourceType: int8(resources[i].Type), ResourceName: resources[i].Name})
			}
			resp, err := request[*message.DescribeConfigsResponse](ctx, a, target, describeConfigs{req})
			if err != nil {
				setAll(errs, groups[target], err)
				continue
			}
			answers := byName(resp.Results, func(r message.DescribeConfigsResult) Resource {
				return Resource{ResourceType(r.ResourceType), r.ResourceName}
			})
			for _, i := range groups[target] {
				if r, ok := answers[resources[i]]; ok {
					rows[i].Entries = configEntries(r.Configs)
					errs[i] = rowError("describe configs of", resources[i].String(), r.ErrorCode, r.ErrorMessage)
				} else {
					errs[i] = leftOut("describe configs of", resources[i].String())
				}
			}
		}
	})
	for i, err := range errs {
		rows[i].Err = err
	}
	return rows, outcome(ctx, errs)
}

func configEntries(configs []message.DescribeConfigsResourceResult) []ConfigEntry {
	entries := make([]ConfigEntry, 0, len(configs))
	for _, c := range configs {
		e := ConfigEntry{Name: c.Name, Value: c.Value, Source: ConfigSource(c.ConfigSource), ReadOnly: c.ReadOnly,
			Sensitive: c.IsSensitive, Type: ConfigType(c.ConfigType), Doc: text(c.Documentation)}
		for _, s := range c.Synonyms {
			e.Synonyms = append(e.Synonyms, ConfigSynonym{s.Name, s.Value, ConfigSource(s.Source)})
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(x, y ConfigEntry) int { return strings.Compare(x.Name, y.Name) })
	return entries
}

// ConfigOp is what to do with one configuration.
type ConfigOp int8

// Operations of IncrementalAlterConfigs (KIP-339).
const (
	SetConfig      ConfigOp = 0
	DeleteConfig   ConfigOp = 1 // back to the default
	AppendConfig   ConfigOp = 2 // to a list
	SubtractConfig ConfigOp = 3 // from a list
)

// String is Kafka's name of the operation.
func (o ConfigOp) String() string {
	names := [...]string{"SET", "DELETE", "APPEND", "SUBTRACT"}
	if o < 0 || int(o) >= len(names) {
		return fmt.Sprintf("operation %d", int8(o))
	}
	return names[o]
}
