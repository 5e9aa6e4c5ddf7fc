package server

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// The operations of IncrementalAlterConfigs.
const (
	alterSet      int8 = 0
	alterDelete   int8 = 1
	alterAppend   int8 = 2
	alterSubtract int8 = 3
)

// handleIncrementalAlterConfigs checks what only the broker itself can know (its own configs, loggers), hands the rest to
// the controller, and puts the answers together in the order of the request.
func handleIncrementalAlterConfigs(b *Broker, r *Request) {
	req := r.Body.(*message.IncrementalAlterConfigsRequest)
	named := make([]config.Resource, len(req.Resources))
	for i := range req.Resources {
		named[i] = config.Resource{Type: config.ResourceType(req.Resources[i].ResourceType), Name: req.Resources[i].ResourceName}
	}
	forward, join := divided(named, req.Resources, func(i int) *refusal { return b.checkIncremental(named[i], req.Resources[i].Configs) },
		func(r config.Resource, f *refusal) message.IncrementalAlterConfigsResponseAlterConfigsResourceResponse {
			return message.IncrementalAlterConfigsResponseAlterConfigsResourceResponse{
				ErrorCode: int16(f.code), ErrorMessage: f.message(), ResourceType: int8(r.Type), ResourceName: r.Name}
		})
	respond := func(controlled []message.IncrementalAlterConfigsResponseAlterConfigsResourceResponse) {
		r.Respond(&message.IncrementalAlterConfigsResponse{Responses: join(controlled)})
	}
	if len(forward) == 0 {
		respond(nil)
		return
	}
	r.Body = &message.IncrementalAlterConfigsRequest{ValidateOnly: req.ValidateOnly, Resources: forward}
	b.propose(r, func(resp message.Response) { respond(resp.(*message.IncrementalAlterConfigsResponse).Responses) })
}

// checkIncremental is what happens to a resource before the controller sees it.
func (b *Broker) checkIncremental(r config.Resource, ops []message.IncrementalAlterConfigsRequestAlterableConfig) *refusal {
	seen := make(map[string]bool, len(ops))
	var null []string
	for _, op := range ops {
		if seen[op.Name] {
			return refusef(errcode.InvalidRequest, "Error due to duplicate config keys")
		}
		seen[op.Name] = true
		if op.Value == nil && op.ConfigOperation != alterDelete {
			null = append(null, op.Name)
		}
	}
	if len(null) > 0 {
		return refusef(errcode.InvalidRequest, "Null value not supported for : %s", strings.Join(null, ", "))
	}
	switch r.Type {
	case config.BrokerLoggerResource:
		if refused := b.isThisNode(r.Name); refused != nil {
			return refused
		}
		return alterLoggers(ops)
	case config.BrokerResource:
		if r.Name != "" {
			if refused := b.isThisNode(r.Name); refused != nil {
				return refused
			}
		}
		props, refused := b.brokerPropsAfter(r, ops)
		if refused != nil {
			return refused
		}
		return b.checkBrokerProps(r, props)
	case config.TopicResource, config.ClientMetricsResource, config.GroupResource:
		return nil
	}
	return refusef(errcode.InvalidRequest, "Unknown resource type %d", int8(r.Type))
}

func (b *Broker) isThisNode(name string) *refusal {
	id, err := strconv.ParseInt(name, 10, 32)
	switch {
	case err != nil:
		return refusef(errcode.InvalidRequest, "Node id must be an integer, but it is: %s", name)
	case int32(id) != b.opts.NodeID:
		return refusef(errcode.InvalidRequest, "Unexpected broker id, expected %d, but received %s", b.opts.NodeID, name)
	}
	return nil
}

// alterLoggers: the level of our one logger belongs to whoever started the broker, so there is nothing to alter.
func alterLoggers(ops []message.IncrementalAlterConfigsRequestAlterableConfig) *refusal {
	for _, op := range ops {
		switch {
		case op.ConfigOperation == alterAppend || op.ConfigOperation == alterSubtract:
			name := map[int8]string{alterAppend: "APPEND", alterSubtract: "SUBTRACT"}[op.ConfigOperation]
			return refusef(errcode.InvalidRequest, "%s operation is not allowed for the BROKER_LOGGER resource", name)
		case op.ConfigOperation != alterSet && op.ConfigOperation != alterDelete:
			return refusef(errcode.InvalidRequest, "Unknown operation type %d is not allowed for the BROKER_LOGGER resource", op.ConfigOperation)
		case op.Name != rootLogger:
			return refusef(errcode.InvalidConfig, "Logger %s does not exist!", op.Name)
		case op.ConfigOperation == alterDelete:
			return refusef(errcode.InvalidRequest, "Removing the log level of the root logger is not allowed")
		default:
			return refusef(errcode.InvalidRequest, "The level of this broker's logger is set by the slog handler it was started with")
		}
	}
	return &refusal{}
}

// brokerPropsAfter are the dynamic configs that the resource would have after the operations.
func (b *Broker) brokerPropsAfter(r config.Resource, ops []message.IncrementalAlterConfigsRequestAlterableConfig) (map[string]string, *refusal) {
	props := maps.Clone(b.Image().Configs(r))
	if props == nil {
		props = make(map[string]string)
	}
	for _, op := range ops {
		switch op.ConfigOperation {
		case alterSet:
			props[op.Name] = *op.Value
		case alterDelete:
			delete(props, op.Name)
		case alterAppend, alterSubtract:
			k, ok := config.BrokerKeys().Lookup(config.BaseName(op.Name))
			if !ok || k.Type != config.List {
				what := map[int8]string{alterAppend: "append", alterSubtract: "subtract"}[op.ConfigOperation]
				return nil, refusef(errcode.InvalidConfig, "Config value %s is not allowed for config key: %s", what, op.Name)
			}
			props[op.Name] = editedList(props[op.Name], *op.Value, op.ConfigOperation == alterAppend)
		default:
			return nil, refusef(errcode.InvalidRequest, "Unknown operations type %d", op.ConfigOperation)
		}
	}
	return props, nil
}

func editedList(old, value string, add bool) string {
	parts := config.SplitList(old)
	for _, p := range config.SplitList(value) {
		at := slices.Index(parts, p)
		switch {
		case add && at < 0:
			parts = append(parts, p)
		case !add && at >= 0:
			parts = slices.Delete(parts, at, at+1)
		}
	}
	return strings.Join(parts, ",")
}

func (b *Broker) checkBrokerProps(r config.Resource, props map[string]string) *refusal {
	if err := b.Config().CheckBroker(props, r.Name != ""); err != nil {
		return &refusal{errcode.InvalidRequest, fmt.Sprint(err)}
	}
	return nil
}
