package config

import "fmt"

// Type is the type of a config's value. The numbers are those of DescribeConfigsResponse.ConfigType.
type Type int8

// The types of Apache Kafka's configs.
const (
	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

var typeNames = [...]string{"", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}

// String is Apache Kafka's name of the type, such as LONG.
func (t Type) String() string {
	if t > 0 && int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("Type(%d)", int8(t))
}

func parseType(s string) (Type, bool) {
	for i, n := range typeNames {
		if i > 0 && n == s {
			return Type(i), true
		}
	}
	return 0, false
}

// UpdateMode says whether a broker config can change while the broker runs.
type UpdateMode int8

// The update modes, as in Apache Kafka's documentation of broker configs.
const (
	ReadOnly    UpdateMode = iota // only in the server properties, at start
	PerBroker                     // dynamically for one broker
	ClusterWide                   // dynamically for one broker or as the default of all
)

// Source says which layer a value came from. The numbers are those of DescribeConfigsResponse.ConfigSource.
type Source int8

// The sources of a value.
const (
	UnknownSource        Source = 0
	TopicSource          Source = 1
	DynamicBrokerSource  Source = 2
	DynamicDefaultSource Source = 3
	StaticBrokerSource   Source = 4
	DefaultSource        Source = 5
	DynamicLoggerSource  Source = 6
	ClientMetricsSource  Source = 7
	GroupSource          Source = 8
)

// ResourceType is what a config belongs to. The numbers are those of ConfigResource.Type in requests and records.
type ResourceType int8

// The resources that have configs.
const (
	UnknownResource       ResourceType = 0
	TopicResource         ResourceType = 2
	BrokerResource        ResourceType = 4
	BrokerLoggerResource  ResourceType = 8
	ClientMetricsResource ResourceType = 16
	GroupResource         ResourceType = 32
)

var resourceNames = map[ResourceType]string{
	TopicResource: "TOPIC", BrokerResource: "BROKER", BrokerLoggerResource: "BROKER_LOGGER",
	ClientMetricsResource: "CLIENT_METRICS", GroupResource: "GROUP",
}

// String is Apache Kafka's name of the resource type, UNKNOWN for a number that has none.
func (t ResourceType) String() string {
	if n, ok := resourceNames[t]; ok {
		return n
	}
	return "UNKNOWN"
}

// Known reports whether t is one of the resource types above.
func (t ResourceType) Known() bool { return resourceNames[t] != "" }

// Resource names one owner of configs. Name is "" for the cluster-wide broker default.
type Resource struct {
	Type ResourceType
	Name string
}

// String is how Apache Kafka prints a resource in its messages.
func (r Resource) String() string {
	return fmt.Sprintf("ConfigResource(type=%s, name='%s')", r.Type, r.Name)
}
