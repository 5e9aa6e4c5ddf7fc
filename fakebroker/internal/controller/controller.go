package controller

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Options are what a Controller goes by.
type Options struct {
	NodeID    int32
	ClusterID string // registrations of other clusters' brokers are refused; "" accepts all
	// Config holds the server properties; dynamic configs come from the image of each View.
	Config *config.Layers
	// NewUUID makes topic ids. It must not return ids that mean something (zero, the metadata topic's).
	NewUUID func() wire.UUID
	// Rand returns a number in [0, n): where the placement of a topic's replicas starts.
	Rand func(n int) int
}

// Controller proposes changes of metadata. It holds no state of its own: everything it knows is in the View, so one that
// becomes active needs nothing but the image.
type Controller struct {
	opts Options
}

// New returns a controller.
func New(opts Options) *Controller { return &Controller{opts: opts} }

// View is what a request is judged against: the image including everything proposed so far, committed or not, and the
// offset that the next record will get.
type View struct {
	Image      *image.Image
	NextOffset int64
}

// Result is a proposal. The records must be appended together or not at all; without records the response holds already.
type Result struct {
	Records  []image.Record
	Response message.Response
}

// Handle proposes what req asks for. It changes nothing. Requests are taken in their newest version; what a client may do
// at all (authorization) was decided before. An error means that req is not a request for controllers.
func (c *Controller) Handle(_ time.Time, v View, req message.Request) (Result, error) {
	switch r := req.(type) {
	case *message.CreateTopicsRequest:
		return c.createTopics(v, r), nil
	case *message.DeleteTopicsRequest:
		return c.deleteTopics(v, r), nil
	case *message.CreatePartitionsRequest:
		return c.createPartitions(v, r), nil
	case *message.IncrementalAlterConfigsRequest:
		return c.incrementalAlterConfigs(v, r), nil
	case *message.AlterConfigsRequest:
		return c.alterConfigs(v, r), nil
	case *message.AllocateProducerIdsRequest:
		return c.allocateProducerIDs(v, r), nil
	case *message.BrokerRegistrationRequest:
		return c.registerBroker(v, r), nil
	case *message.BrokerHeartbeatRequest:
		return c.heartbeat(v, r), nil
	case *message.UnregisterBrokerRequest:
		return c.unregisterBroker(v, r), nil
	case *message.ControllerRegistrationRequest:
		return c.registerController(v, r), nil
	case *message.UpdateFeaturesRequest:
		return c.updateFeatures(v, r), nil
	}
	return Result{}, fmt.Errorf("controller: %T is no request for a controller", req)
}

// layers returns the configs of this node as of the image.
func (c *Controller) layers(i *image.Image) *config.Layers {
	own := config.Resource{Type: config.BrokerResource, Name: fmt.Sprint(c.opts.NodeID)}
	all := config.Resource{Type: config.BrokerResource}
	return c.opts.Config.With(i.Configs(own), i.Configs(all))
}

// apiError is a refusal on its way into a response: code and text for the client. The zero value is success. A nil
// message is null on the wire.
type apiError struct {
	code    errcode.Code
	message *string
}

func refuse(code errcode.Code, format string, args ...any) apiError {
	msg := fmt.Sprintf(format, args...)
	return apiError{code: code, message: &msg}
}

func (e apiError) failed() bool { return e.code != errcode.None }
