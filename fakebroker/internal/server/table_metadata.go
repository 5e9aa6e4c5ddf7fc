package server

import (
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// metadataHandlers are the APIs about topics, configs and the cluster. Those that change something are proposals to the
// controller; the others are answered from the image.
var metadataHandlers = map[wire.Key]handler{
	wire.KeyMetadata:                   handleMetadata,
	wire.KeyDescribeTopicPartitions:    handleDescribeTopicPartitions,
	wire.KeyDescribeCluster:            handleDescribeCluster,
	wire.KeyCreateTopics:               handleByController,
	wire.KeyDeleteTopics:               handleByController,
	wire.KeyCreatePartitions:           handleByController,
	wire.KeyDescribeConfigs:            handleDescribeConfigs,
	wire.KeyIncrementalAlterConfigs:    handleIncrementalAlterConfigs,
	wire.KeyAlterConfigs:               handleAlterConfigs,
	wire.KeyListConfigResources:        handleListConfigResources,
	wire.KeyListPartitionReassignments: handleListPartitionReassignments,
	wire.KeyUpdateFeatures:             handleByController,
	wire.KeyDescribeQuorum:             handleDescribeQuorum,
}

// handleByController passes a request on as it is: the controller knows best, and its answer comes when this broker has
// followed the change. Without a controller (it is closing, or its log failed) the connection ends, and the client asks
// another broker or later.
func handleByController(b *Broker, r *Request) {
	b.propose(r, r.Respond)
}

// propose hands the body of r to the controller and its answer to respond. Nothing of r is touched while it waits.
func (b *Broker) propose(r *Request, respond func(message.Response)) {
	b.controller.Submit(r.Body, func(resp message.Response, err error) {
		if err != nil {
			r.Close(err)
			return
		}
		respond(resp)
	})
}
