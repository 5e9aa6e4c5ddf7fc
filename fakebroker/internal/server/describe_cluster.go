package server

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Endpoint types of DescribeCluster.
const (
	endpointBroker     int8 = 1
	endpointController int8 = 2
)

// handleDescribeCluster lists the brokers. Controllers are described by controllers, on their own listeners.
func handleDescribeCluster(b *Broker, r *Request) {
	req := r.Body.(*message.DescribeClusterRequest)
	resp := message.NewDescribeClusterResponse()
	resp.ControllerId = -1
	switch req.EndpointType {
	case endpointBroker:
		b.fillCluster(r, req, resp)
	case endpointController:
		refuseCluster(resp, errcode.MismatchedEndpointType,
			"The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
	default:
		refuseCluster(resp, errcode.UnsupportedEndpointType, fmt.Sprintf("Unsupported endpoint type %d", req.EndpointType))
	}
	r.Respond(resp)
}

func refuseCluster(resp *message.DescribeClusterResponse, code errcode.Code, text string) {
	resp.ErrorCode, resp.ErrorMessage = int16(code), &text
}

func (b *Broker) fillCluster(r *Request, req *message.DescribeClusterRequest, resp *message.DescribeClusterResponse) {
	resp.ClusterId = b.clusterID()
	resp.ClusterAuthorizedOperations = operations(req.IncludeClusterAuthorizedOperations, clusterOperations)
	resp.EndpointType = endpointBroker
	for _, broker := range b.Image().Brokers() {
		e, ok := broker.Endpoint(r.Listener)
		if !ok || broker.Fenced && !req.IncludeFencedBrokers {
			continue
		}
		if resp.ControllerId < 0 && !broker.Fenced {
			resp.ControllerId = broker.ID
		}
		resp.Brokers = append(resp.Brokers, message.DescribeClusterBroker{BrokerId: broker.ID, Host: e.Host, Port: int32(e.Port),
			Rack: broker.Rack, IsFenced: broker.Fenced})
	}
}
