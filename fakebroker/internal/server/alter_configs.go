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
	answers := make([]*refusal, len(req.Resources)) // nil: for the controller
	resources := make([]config.Resource, len(req.Resources))
	for i := range req.Resources {
		resources[i] = config.Resource{Type: config.ResourceType(req.Resources[i].ResourceType), Name: req.Resources[i].ResourceName}
	}
	refuseRepeated(resources, answers)
	forward := &message.AlterConfigsRequest{ValidateOnly: req.ValidateOnly}
	for i := range req.Resources {
		if answers[i] == nil {
			answers[i] = b.checkReplacement(resources[i], req.Resources[i].Configs)
		}
		if answers[i] == nil {
			forward.Resources = append(forward.Resources, req.Resources[i])
		}
	}
	respond := func(controlled []message.AlterConfigsResponseAlterConfigsResourceResponse) {
		resp := &message.AlterConfigsResponse{}
		for i, a := range answers {
			if a == nil {
				resp.Responses = append(resp.Responses, controlled[0])
				controlled = controlled[1:]
				continue
			}
			resp.Responses = append(resp.Responses, message.AlterConfigsResponseAlterConfigsResourceResponse{
				ErrorCode: int16(a.code), ErrorMessage: a.message(), ResourceType: int8(resources[i].Type), ResourceName: resources[i].Name})
		}
		r.Respond(resp)
	}
	if len(forward.Resources) == 0 {
		respond(nil)
		return
	}
	r.Body = forward
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
