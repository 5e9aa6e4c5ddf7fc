package controller

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// The operations of IncrementalAlterConfigs.
const (
	opSet      int8 = 0
	opDelete   int8 = 1
	opAppend   int8 = 2
	opSubtract int8 = 3
)

var opNames = map[int8]string{opAppend: "APPEND", opSubtract: "SUBTRACT"}

// minISR is the config that ELR depends on: changing it forgets the eligible replicas, and while ELR is on it has to be
// set for the cluster and for no single broker.
const minISR = "min.insync.replicas"

func configRecord(r config.Resource, name string, value *string) image.Record {
	return image.Record{Record: &logrecord.ConfigRecord{ResourceType: int8(r.Type), ResourceName: r.Name, Name: name, Value: value}}
}

// alteration collects the changes of one request, resource by resource. A resource that fails leaves no records.
type alteration struct {
	c       *Controller
	view    View
	layers  *config.Layers
	records []image.Record
}

func (c *Controller) alter(v View) *alteration {
	return &alteration{c: c, view: v, layers: c.layers(v.Image)}
}

func (c *Controller) incrementalAlterConfigs(v View, r *message.IncrementalAlterConfigsRequest) Result {
	resp := &message.IncrementalAlterConfigsResponse{}
	a := c.alter(v)
	unknownOp := false
	for _, res := range r.Resources {
		for _, op := range res.Configs {
			unknownOp = unknownOp || op.ConfigOperation < opSet || op.ConfigOperation > opSubtract
		}
	}
	counts := make(map[config.Resource]int)
	for _, res := range r.Resources {
		counts[config.Resource{Type: config.ResourceType(res.ResourceType), Name: res.ResourceName}]++
	}
	for _, res := range r.Resources {
		resource := config.Resource{Type: config.ResourceType(res.ResourceType), Name: res.ResourceName}
		var err apiError
		switch {
		case unknownOp: // Apache Kafka trips over it and fails the whole request, without a text
			err = apiError{code: errcode.UnknownServerError}
		case counts[resource] > 1:
			err = refuse(errcode.InvalidRequest, "Duplicate resource.")
		default:
			err = a.incremental(resource, res.Configs)
		}
		resp.Responses = append(resp.Responses, message.IncrementalAlterConfigsResponseAlterConfigsResourceResponse{
			ErrorCode: int16(err.code), ErrorMessage: err.message, ResourceType: res.ResourceType, ResourceName: res.ResourceName})
	}
	return a.result(r.ValidateOnly, resp)
}

func (c *Controller) alterConfigs(v View, r *message.AlterConfigsRequest) Result {
	resp := &message.AlterConfigsResponse{}
	a := c.alter(v)
	counts := make(map[config.Resource]int)
	for _, res := range r.Resources {
		counts[config.Resource{Type: config.ResourceType(res.ResourceType), Name: res.ResourceName}]++
	}
	for _, res := range r.Resources {
		resource := config.Resource{Type: config.ResourceType(res.ResourceType), Name: res.ResourceName}
		var err apiError
		if counts[resource] > 1 {
			err = refuse(errcode.InvalidRequest, "Duplicate resource.")
		} else {
			err = a.replace(resource, res.Configs)
		}
		resp.Responses = append(resp.Responses, message.AlterConfigsResponseAlterConfigsResourceResponse{
			ErrorCode: int16(err.code), ErrorMessage: err.message, ResourceType: res.ResourceType, ResourceName: res.ResourceName})
	}
	return a.result(r.ValidateOnly, resp)
}

func (a *alteration) result(validateOnly bool, resp message.Response) Result {
	if validateOnly {
		a.records = nil
	}
	return Result{Records: a.records, Response: resp}
}

// change is one config that gets another value; nil removes it.
type change struct {
	name  string
	value *string
}

// incremental applies operations to the configs of a resource as they are. Broker configs get a record even when the
// value stays: that is how an administrator makes brokers read their key stores again.
func (a *alteration) incremental(r config.Resource, ops []message.IncrementalAlterConfigsRequestAlterableConfig) apiError {
	current := a.view.Image.Configs(r)
	var changes []change
	for _, op := range ops {
		old, had := current[op.Name]
		var value *string
		switch op.ConfigOperation {
		case opSet:
			value = op.Value
		case opAppend, opSubtract:
			k, known := lookup(r.Type, op.Name)
			if !known || k.Type != config.List {
				return refuse(errcode.InvalidConfig, "Can't %s to key %s because its type is not LIST.", opNames[op.ConfigOperation], op.Name)
			}
			joined := editList(listOf(k, old, had), op.ConfigOperation == opAppend, op.Value)
			value = &joined
		}
		if r.Type != config.BrokerResource && same(value, old, had) {
			continue
		}
		changes = append(changes, change{op.Name, value})
	}
	return a.propose(r, changes)
}

func lookup(t config.ResourceType, name string) (*config.Key, bool) {
	if def := config.KeysOf(t); def != nil {
		return def.Lookup(name)
	}
	return nil, false
}

func same(value *string, old string, had bool) bool {
	if value == nil {
		return !had
	}
	return had && *value == old
}

// listOf splits the value that a list operation starts from: what is set, else the default of the table.
func listOf(k *config.Key, old string, had bool) (parts []string) {
	if !had {
		if k.Default == nil {
			return nil
		}
		old = *k.Default
	}
	for _, p := range strings.Split(old, ",") {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

func editList(parts []string, add bool, value *string) string {
	if value != nil {
		for _, p := range strings.Split(*value, ",") {
			at := slices.Index(parts, p)
			switch {
			case add && at < 0:
				parts = append(parts, p)
			case !add && at >= 0:
				parts = slices.Delete(parts, at, at+1)
			}
		}
	}
	return strings.Join(parts, ",")
}

// replace makes the configs of a resource what the request says: those it does not name are removed.
func (a *alteration) replace(r config.Resource, configs []message.AlterConfigsRequestAlterableConfig) apiError {
	current := a.view.Image.Configs(r)
	var changes []change
	named := make(map[string]bool, len(configs))
	for _, c := range configs {
		named[c.Name] = true
		old, had := current[c.Name]
		if r.Type == config.BrokerResource || !same(c.Value, old, had) {
			changes = append(changes, change{c.Name, c.Value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(current)) {
		if !named[name] {
			changes = append(changes, change{name, nil})
		}
	}
	return a.propose(r, changes)
}

// propose checks what a resource's configs would become, then that the resource exists, in Apache Kafka's order.
func (a *alteration) propose(r config.Resource, changes []change) apiError {
	next := make(map[string]string)
	maps.Copy(next, a.view.Image.Configs(r))
	for _, c := range changes {
		if err := a.checkMinISR(r, c); err.failed() {
			return err
		}
		if c.value == nil {
			delete(next, c.name)
		} else {
			next[c.name] = *c.value
		}
	}
	if err := a.check(r, next); err.failed() {
		return err
	}
	if err := a.exists(r); err.failed() {
		return err
	}
	for _, c := range changes {
		a.records = append(a.records, configRecord(r, c.name, c.value))
		if c.name == minISR {
			a.clearELR(r)
		}
	}
	return apiError{}
}

func (a *alteration) elr() bool { return a.view.Image.Feature(image.ELRFeature) > 0 }

func (a *alteration) checkMinISR(r config.Resource, c change) apiError {
	if r.Type != config.BrokerResource || c.name != minISR || !a.elr() {
		return apiError{}
	}
	if r.Name != "" {
		return refuse(errcode.InvalidConfig, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
	}
	if c.value == nil {
		return refuse(errcode.InvalidConfig, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
	}
	return apiError{}
}

// clearELR: with another minimum the eligible replicas may not be what they were noted for.
func (a *alteration) clearELR(r config.Resource) {
	if !a.elr() || r.Type != config.TopicResource && r.Type != config.BrokerResource {
		return
	}
	name := ""
	if r.Type == config.TopicResource {
		name = r.Name
	}
	a.records = append(a.records, image.Record{Record: &logrecord.ClearElrRecord{TopicName: name}})
}

func (a *alteration) check(r config.Resource, next map[string]string) apiError {
	switch r.Type {
	case config.TopicResource:
		if r.Name == "" {
			return refuse(errcode.InvalidRequest, "Default topic resources are not allowed.")
		}
		if why := ValidateTopicName(r.Name); why != "" {
			return refuse(errcode.InvalidTopicException, "%s", why)
		}
		return invalidConfig(a.layers.CheckTopic(next))
	case config.BrokerResource:
		return checkBrokerName(r.Name)
	case config.GroupResource:
		if r.Name == "" {
			return refuse(errcode.InvalidRequest, "Default group resources are not allowed.")
		}
		return invalidConfig(a.layers.CheckGroup(next))
	case config.ClientMetricsResource:
		if r.Name == "" {
			return refuse(errcode.InvalidRequest, "Subscription name can't be empty")
		}
		bad, err := config.CheckClientMetrics(next)
		if bad {
			return refuse(errcode.InvalidRequest, "%s", err)
		}
		return invalidConfig(err)
	}
	return refuse(errcode.InvalidRequest, "Unknown resource type %s", r.Type)
}

func invalidConfig(err error) apiError {
	if err == nil {
		return apiError{}
	}
	return refuse(errcode.InvalidConfig, "%s", err)
}

func checkBrokerName(name string) apiError {
	if name == "" {
		return apiError{}
	}
	switch id, err := strconv.ParseInt(name, 10, 32); {
	case err != nil:
		return refuse(errcode.InvalidRequest, "Unable to parse broker name as a base 10 number.")
	case id < 0:
		return refuse(errcode.InvalidRequest, "Invalid negative broker ID.")
	}
	return apiError{}
}

func (a *alteration) exists(r config.Resource) apiError {
	switch r.Type {
	case config.TopicResource:
		if a.view.Image.Topic(r.Name) == nil {
			return refuse(errcode.UnknownTopicOrPartition, "The topic '%s' does not exist.", r.Name)
		}
	case config.BrokerResource:
		if id, _ := strconv.ParseInt(r.Name, 10, 32); r.Name != "" && a.view.Image.Broker(int32(id)) == nil {
			return refuse(errcode.BrokerIdNotRegistered, "No broker with id %s found.", r.Name)
		}
	}
	return apiError{}
}
