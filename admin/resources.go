package admin

import (
	"context"
	"fmt"
	"strconv"

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

// TopicConfigs is the resource of a topic's configurations.
func TopicConfigs(topic string) Resource { return Resource{TopicResource, topic} }

// BrokerConfigs is the resource of one broker's configurations.
func BrokerConfigs(id int32) Resource { return Resource{BrokerResource, strconv.Itoa(int(id))} }

// AllBrokersConfigs is the resource of what is set for all brokers while they run.
func AllBrokersConfigs() Resource { return Resource{BrokerResource, ""} }

// String is kind and name.
func (r Resource) String() string {
	if r == AllBrokersConfigs() {
		return "all brokers"
	}
	return fmt.Sprintf("%s %q", r.Type, r.Name)
}

// target is who knows a resource: a broker's own configurations and loggers only that broker, everything else any broker.
func (r Resource) target() client.Target {
	if r.Type == BrokerResource || r.Type == BrokerLoggerResource {
		if id, err := strconv.ParseInt(r.Name, 10, 32); err == nil {
			return client.Broker(int32(id))
		}
	}
	return client.AnyBroker() // which also has the words for a broker's name that is no number
}

// ListConfigResources gives the resources of these kinds that have configurations; without kinds, of all (KIP-1142,
// brokers from 4.1; those from 3.7 on know ClientMetricsResource alone).
func (a *Admin) ListConfigResources(ctx context.Context, kinds ...ResourceType) ([]Resource, error) {
	req := message.NewListConfigResourcesRequest()
	for _, k := range kinds {
		req.ResourceTypes = append(req.ResourceTypes, int8(k))
	}
	resp, err := request[*message.ListConfigResourcesResponse](ctx, a, client.AnyBroker(), listConfigResources{req})
	if err != nil {
		return nil, err
	}
	rows := make([]Resource, 0, len(resp.ConfigResources))
	for _, r := range resp.ConfigResources {
		rows = append(rows, Resource{ResourceType(r.ResourceType), r.ResourceName})
	}
	return rows, nil
}

// byTarget groups the resources left by whom to ask, in the order of their first ones.
func byTarget(resources []Resource, left []int) (targets []client.Target, groups map[client.Target][]int) {
	groups = map[client.Target][]int{}
	for _, i := range left {
		t := resources[i].target()
		if groups[t] == nil {
			targets = append(targets, t)
		}
		groups[t] = append(groups[t], i)
	}
	return targets, groups
}
