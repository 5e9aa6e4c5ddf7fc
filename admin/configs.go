package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// ResourceType is a kind of thing that has configurations; the numbers are Kafka's.
type ResourceType int8

// Kinds of resources.
const (
	TopicResource         ResourceType = 2
	BrokerResource        ResourceType = 4
	BrokerLoggerResource  ResourceType = 8
	ClientMetricsResource ResourceType = 16
	GroupResource         ResourceType = 32
)

// String is Kafka's name of the kind, in lower case.
func (t ResourceType) String() string {
	switch t {
	case TopicResource:
		return "topic"
	case BrokerResource:
		return "broker"
	case BrokerLoggerResource:
		return "broker-logger"
	case ClientMetricsResource:
		return "client-metrics"
	case GroupResource:
		return "group"
	}
	return fmt.Sprintf("resource type %d", int8(t))
}

// Resource is one thing that has configurations. The name of a broker is its id; the empty name of BrokerResource is the
// default of all brokers.
type Resource struct {
	Type ResourceType
	Name string
}

// String is kind and name.
func (r Resource) String() string { return fmt.Sprintf("%s %q", r.Type, r.Name) }

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

// ConfigEntry is one configuration of a resource.
type ConfigEntry struct {
	Name      string
	Value     *string // nil: not set, or sensitive
	Source    ConfigSource
	ReadOnly  bool
	Sensitive bool
	Synonyms  []ConfigSynonym // what else could give the value, in order of precedence; empty unless asked for
	Doc       string          // Kafka's documentation; empty unless asked for
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
	for _, e := range r.Entries {
		if e.Name == name && e.Value != nil {
			return *e.Value, true
		}
	}
	return "", false
}

// DescribeConfigs gives all configurations of the resources, with synonyms and documentation where brokers send them.
func (a *Admin) DescribeConfigs(ctx context.Context, resources ...Resource) ([]ResourceConfigs, error) {
	var rows []ResourceConfigs
	for target, some := range byTarget(resources) {
		req := message.NewDescribeConfigsRequest()
		req.IncludeSynonyms, req.IncludeDocumentation = true, true
		for _, r := range some {
			req.Resources = append(req.Resources, message.DescribeConfigsResource{ResourceType: int8(r.Type), ResourceName: r.Name})
		}
		resp, err := request[*message.DescribeConfigsResponse](ctx, a, target, describeConfigs{req})
		if err != nil {
			return rows, err
		}
		for _, r := range resp.Results {
			rows = append(rows, describedConfigs(r))
		}
	}
	return rows, joinRows(rows, func(r ResourceConfigs) error { return r.Err })
}

func describedConfigs(r message.DescribeConfigsResult) ResourceConfigs {
	row := ResourceConfigs{Resource: Resource{ResourceType(r.ResourceType), r.ResourceName}}
	row.Err = rowError("describe configs of", row.Resource.String(), r.ErrorCode, r.ErrorMessage)
	for _, c := range r.Configs {
		e := ConfigEntry{Name: c.Name, Value: c.Value, Source: ConfigSource(c.ConfigSource), ReadOnly: c.ReadOnly,
			Sensitive: c.IsSensitive, Doc: text(c.Documentation)}
		for _, s := range c.Synonyms {
			e.Synonyms = append(e.Synonyms, ConfigSynonym{s.Name, s.Value, ConfigSource(s.Source)})
		}
		row.Entries = append(row.Entries, e)
	}
	slices.SortFunc(row.Entries, func(x, y ConfigEntry) int { return strings.Compare(x.Name, y.Name) })
	return row
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

// ConfigChange changes one configuration of one resource; the others stay as they are.
type ConfigChange struct {
	Resource Resource
	Op       ConfigOp
	Name     string
	Value    string // ignored by DeleteConfig
}

// AlteredConfigs is a row of AlterConfigs: a resource's changes are taken all or none.
type AlteredConfigs struct {
	Resource Resource
	Err      error
}

// AlterConfigs changes configurations incrementally (brokers from 2.3). With Validate use ValidateConfigs.
func (a *Admin) AlterConfigs(ctx context.Context, changes ...ConfigChange) ([]AlteredConfigs, error) {
	return a.alterConfigs(ctx, changes, false)
}

// ValidateConfigs checks whether AlterConfigs would succeed, and changes nothing.
func (a *Admin) ValidateConfigs(ctx context.Context, changes ...ConfigChange) ([]AlteredConfigs, error) {
	return a.alterConfigs(ctx, changes, true)
}

func (a *Admin) alterConfigs(ctx context.Context, changes []ConfigChange, validateOnly bool) ([]AlteredConfigs, error) {
	byResource := map[Resource][]message.IncrementalAlterConfigsRequestAlterableConfig{}
	var order []Resource
	for _, c := range changes {
		if _, seen := byResource[c.Resource]; !seen {
			order = append(order, c.Resource)
		}
		entry := message.IncrementalAlterConfigsRequestAlterableConfig{Name: c.Name, ConfigOperation: int8(c.Op)}
		if c.Op != DeleteConfig {
			entry.Value = new(c.Value)
		}
		byResource[c.Resource] = append(byResource[c.Resource], entry)
	}
	var rows []AlteredConfigs
	for target, some := range byTarget(order) {
		req := message.NewIncrementalAlterConfigsRequest()
		req.ValidateOnly = validateOnly
		for _, r := range some {
			req.Resources = append(req.Resources, message.IncrementalAlterConfigsRequestAlterConfigsResource{
				ResourceType: int8(r.Type), ResourceName: r.Name, Configs: byResource[r]})
		}
		resp, err := request[*message.IncrementalAlterConfigsResponse](ctx, a, target, req)
		if err != nil {
			return rows, err
		}
		for _, r := range resp.Responses {
			res := Resource{ResourceType(r.ResourceType), r.ResourceName}
			rows = append(rows, AlteredConfigs{res, rowError("alter configs of", res.String(), r.ErrorCode, r.ErrorMessage)})
		}
	}
	return rows, joinRows(rows, func(r AlteredConfigs) error { return r.Err })
}

// ListConfigResources gives the resources of these kinds that have configurations; without kinds, of all (KIP-1142,
// brokers from 4.1).
func (a *Admin) ListConfigResources(ctx context.Context, kinds ...ResourceType) ([]Resource, error) {
	req := message.NewListConfigResourcesRequest()
	for _, k := range kinds {
		req.ResourceTypes = append(req.ResourceTypes, int8(k))
	}
	resp, err := request[*message.ListConfigResourcesResponse](ctx, a, client.AnyBroker(), req)
	if err != nil {
		return nil, err
	}
	var rows []Resource
	for _, r := range resp.ConfigResources {
		rows = append(rows, Resource{ResourceType(r.ResourceType), r.ResourceName})
	}
	return rows, rowError("list config resources", fmt.Sprint(kinds), resp.ErrorCode, nil)
}

// byTarget sorts resources by who knows them: a broker's own configurations and loggers only that broker, everything
// else any broker.
func byTarget(resources []Resource) map[client.Target][]Resource {
	targets := map[client.Target][]Resource{}
	for _, r := range resources {
		target := client.AnyBroker()
		if r.Name != "" && (r.Type == BrokerResource || r.Type == BrokerLoggerResource) {
			var id int32
			if _, err := fmt.Sscan(r.Name, &id); err == nil {
				target = client.Broker(id)
			}
		}
		targets[target] = append(targets[target], r)
	}
	return targets
}

// text is a nullable string without its null.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func sortedKeys[K ~int32 | ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
