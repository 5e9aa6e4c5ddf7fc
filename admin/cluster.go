package admin

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Cluster is what DescribeCluster gives.
type Cluster struct {
	ID         string
	Controller int32    // broker id; with KRaft a broker that forwards to the controller; -1 when unknown
	Brokers    []Broker // by id
}

// Broker is one broker of a cluster.
type Broker struct {
	ID     int32
	Host   string
	Port   int32
	Rack   string // empty when it has none
	Fenced bool   // registered, not serving; only brokers from 4.0 tell of such brokers
}

// Addr is host:port.
func (b Broker) Addr() string { return net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))) }

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
		if resp != nil {
			err = topError(err, "describe", "the cluster", resp.ErrorCode, resp.ErrorMessage)
		}
		return Cluster{}, err
	}
	c := Cluster{ID: resp.ClusterId, Controller: resp.ControllerId}
	for _, b := range resp.Brokers {
		c.Brokers = append(c.Brokers, Broker{b.BrokerId, b.Host, b.Port, text(b.Rack), b.IsFenced})
	}
	c.sort()
	return c, nil
}

func (a *Admin) clusterFromMetadata(ctx context.Context) (Cluster, error) {
	resp, err := a.metadataResponse(ctx, onlyBrokers)
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
