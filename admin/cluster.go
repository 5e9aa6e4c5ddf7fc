package admin

import (
	"context"
	"errors"
	"slices"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Cluster is what DescribeCluster gives.
type Cluster struct {
	ID         string
	Controller int32    // broker id; -1 when unknown
	Brokers    []Broker // by id
}

// Broker is one broker of a cluster.
type Broker struct {
	ID     int32
	Host   string
	Port   int32
	Rack   string // empty when it has none
	Fenced bool   // registered, not serving
}

// DescribeCluster gives the cluster's id and brokers, fenced ones too. Brokers before 2.8 do not know the request; what
// their metadata says stands in for it then.
func (a *Admin) DescribeCluster(ctx context.Context) (Cluster, error) {
	req := message.NewDescribeClusterRequest()
	req.IncludeFencedBrokers = true
	resp, err := request[*message.DescribeClusterResponse](ctx, a, client.AnyBroker(), describeCluster{req})
	if errors.Is(err, client.ErrUnsupportedVersion) {
		return a.clusterFromMetadata(ctx)
	}
	if err != nil {
		return Cluster{}, err
	}
	c := Cluster{ID: resp.ClusterId, Controller: resp.ControllerId}
	for _, b := range resp.Brokers {
		c.Brokers = append(c.Brokers, Broker{b.BrokerId, b.Host, b.Port, text(b.Rack), b.IsFenced})
	}
	c.sort()
	return c, rowError("describe", "the cluster", resp.ErrorCode, resp.ErrorMessage)
}

func (a *Admin) clusterFromMetadata(ctx context.Context) (Cluster, error) {
	req := message.NewMetadataRequest()
	req.Topics, req.AllowAutoTopicCreation = []message.MetadataRequestTopic{}, false
	resp, err := request[*message.MetadataResponse](ctx, a, client.AnyBroker(), req)
	if err != nil {
		return Cluster{}, err
	}
	c := Cluster{ID: text(resp.ClusterId), Controller: resp.ControllerId}
	for _, b := range resp.Brokers {
		c.Brokers = append(c.Brokers, Broker{ID: b.NodeId, Host: b.Host, Port: b.Port, Rack: text(b.Rack)})
	}
	c.sort()
	return c, nil
}

func (c *Cluster) sort() {
	slices.SortFunc(c.Brokers, func(x, y Broker) int { return int(x.ID) - int(y.ID) })
}

// APIVersion is a row of APIVersions: the versions of one request that a broker takes.
type APIVersion struct {
	Key      wire.Key
	Min, Max int16
}

// APIVersions gives what one broker speaks, by key.
func (a *Admin) APIVersions(ctx context.Context, broker int32) ([]APIVersion, error) {
	req := message.NewApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "ottla", "1"
	resp, err := request[*message.ApiVersionsResponse](ctx, a, client.Broker(broker), req)
	if err != nil {
		return nil, err
	}
	rows := make([]APIVersion, 0, len(resp.ApiKeys))
	for _, k := range resp.ApiKeys {
		rows = append(rows, APIVersion{wire.Key(k.ApiKey), k.MinVersion, k.MaxVersion})
	}
	slices.SortFunc(rows, func(x, y APIVersion) int { return int(x.Key) - int(y.Key) })
	return rows, rowError("ask for API versions of", client.Broker(broker).String(), resp.ErrorCode, nil)
}
