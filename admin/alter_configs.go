package admin

import (
	"context"

	"github.com/ottla-kafka/ottla/wire/message"
)

// ConfigChange changes one configuration of one resource; the others stay as they are.
type ConfigChange struct {
	Resource Resource
	Op       ConfigOp
	Name     string
	Value    string // ignored by DeleteConfig
}

// AlteredConfigs is a row of AlterConfigs: a resource's changes are taken all or none.
type AlteredConfigs struct {
	Resource Resource
	Err      error
}

// AlterConfigs changes configurations incrementally (KIP-339, brokers from 2.3 on). There is a row for each resource, in the
// order of their first changes.
func (a *Admin) AlterConfigs(ctx context.Context, changes ...ConfigChange) ([]AlteredConfigs, error) {
	return a.alterConfigs(ctx, changes, false)
}

// ValidateConfigs checks whether AlterConfigs would succeed, and changes nothing. It takes brokers from 2.3 on too.
func (a *Admin) ValidateConfigs(ctx context.Context, changes ...ConfigChange) ([]AlteredConfigs, error) {
	return a.alterConfigs(ctx, changes, true)
}

func (a *Admin) alterConfigs(ctx context.Context, changes []ConfigChange, validateOnly bool) ([]AlteredConfigs, error) {
	entries := map[Resource][]message.IncrementalAlterConfigsRequestAlterableConfig{}
	var resources []Resource
	for _, c := range changes {
		if _, seen := entries[c.Resource]; !seen {
			resources = append(resources, c.Resource)
		}
		entries[c.Resource] = append(entries[c.Resource], c.alterable())
	}
	errs := a.rounds(ctx, len(resources), throttled, func(ctx context.Context, left []int, errs []error) {
		targets, groups := byTarget(resources, left)
		for _, target := range targets {
			req := message.NewIncrementalAlterConfigsRequest()
			req.ValidateOnly = validateOnly
			for _, i := range groups[target] {
				req.Resources = append(req.Resources, message.IncrementalAlterConfigsRequestAlterConfigsResource{
					ResourceType: int8(resources[i].Type), ResourceName: resources[i].Name, Configs: entries[resources[i]]})
			}
			resp, err := request[*message.IncrementalAlterConfigsResponse](ctx, a, target, req)
			if err != nil {
				setAll(errs, groups[target], err)
				continue
			}
			answers := byName(resp.Responses, func(r message.IncrementalAlterConfigsResponseAlterConfigsResourceResponse) Resource {
				return Resource{ResourceType(r.ResourceType), r.ResourceName}
			})
			for _, i := range groups[target] {
				if r, ok := answers[resources[i]]; ok {
					errs[i] = rowError("alter configs of", resources[i].String(), r.ErrorCode, r.ErrorMessage)
				} else {
					errs[i] = leftOut("alter configs of", resources[i].String())
				}
			}
		}
	})
	rows := make([]AlteredConfigs, len(resources))
	for i, err := range errs {
		rows[i] = AlteredConfigs{resources[i], err}
	}
	return rows, outcome(ctx, errs)
}

// alterable is the wire form; the value of a deletion is null.
func (c ConfigChange) alterable() message.IncrementalAlterConfigsRequestAlterableConfig {
	out := message.IncrementalAlterConfigsRequestAlterableConfig{Name: c.Name, ConfigOperation: int8(c.Op)}
	if c.Op != DeleteConfig {
		out.Value = new(c.Value)
	}
	return out
}
