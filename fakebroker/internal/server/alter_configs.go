package server

import (
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// handleAlterConfigs is the old form of IncrementalAlterConfigs: what a resource is not given it loses.
func handleAlterConfigs(b *Broker, r *Request) {
	req := r.Body.(*message.AlterConfigsRequest)
	named := make([]config.Resource, len(req.Resources))
	for i := range req.Resources {
		named[i] = config.Resource{Type: config.ResourceType(req.Resources[i].ResourceType), Name: req.Resources[i].ResourceName}
	}
	forward, join := divided(named, req.Resources, func(i int) *refusal { return b.checkReplacement(named[i], req.Resources[i].Configs) },
		func(r config.Resource, f *refusal) message.AlterConfigsResponseAlterConfigsResourceResponse {
			return message.AlterConfigsResponseAlterConfigsResourceResponse{
				ErrorCode: int16(f.code), ErrorMessage: f.message(), ResourceType: int8(r.Type), ResourceName: r.Name}
		})
	respond := func(controlled []message.AlterConfigsResponseAlterConfigsResourceResponse) {
		r.Respond(&message.AlterConfigsResponse{Responses: join(controlled)})
	}
	if len(forward) == 0 {
		respond(nil)
		return
	}
	r.Body = &message.AlterConfigsRequest{ValidateOnly: req.ValidateOnly, Resources: forward}
	b.propose(r, func(resp message.Response) { respond(resp.(*message.AlterConfigsResponse).Responses) })
}

func (b *Broker) checkReplacement(r config.Resource, configs []message.AlterConfigsRequestAlterableConfig) *refusal {
	props := make(map[string]string, len(configs))
	seen := make(map[string]bool, len(configs))
	var null []string
	for _, c := range configs {
		if seen[c.Name] {
			return refusef(errcode.InvalidRequest, "Error due to duplicate config keys")
		}
		seen[c.Name] = true
		if c.Value == nil {
			null = append(null, c.Name)
			continue
		}
		props[c.Name] = *c.Value
	}
	if len(null) > 0 {
		return refusef(errcode.InvalidRequest, "Null value not supported for : %s", strings.Join(null, ", "))
	}
	switch r.Type {
	case config.BrokerResource:
		if r.Name != "" {
			if refused := b.isThisNode(r.Name); refused != nil {
				return refused
			}
		}
		return b.checkBrokerProps(r, props)
	case config.TopicResource, config.ClientMetricsResource, config.GroupResource:
		return nil
	}
	return refusef(errcode.InvalidRequest, "Unknown resource type %d", int8(r.Type))
}
