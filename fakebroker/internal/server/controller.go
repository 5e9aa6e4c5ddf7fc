package server

import (
	"github.com/ottla-kafka/ottla/wire/message"
)

// Controller is where handlers send what changes metadata. The broker holds it in-process for now; later it may be
// reached over the inter-broker channel, which is why a handler may not look behind it.
type Controller interface {
	// Submit proposes req (CreateTopics, DeleteTopics, IncrementalAlterConfigs, AllocateProducerIds, ...) at its newest
	// version. done runs exactly once, from the controller's goroutine, after the resulting records are committed,
	// applied to the image and published to this broker (its partitions exist when done runs); it must not block. Err
	// is set when there is no active controller or it is closing. req belongs to the controller until done.
	Submit(req message.Request, done func(resp message.Response, err error))
}
