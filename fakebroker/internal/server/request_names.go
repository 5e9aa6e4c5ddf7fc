package server

import (
	"reflect"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// requestNames are the names in a request that fault rules choose by.
type requestNames struct {
	topics, groups, transactionalIDs []string
}

// namesOf finds the names in any request. It goes by the names of the fields, which are Apache Kafka's, so that an API that
// is added is seen without further ado; a test holds it against every API that is served. Only rules that ask for names
// pay for this.
func (b *Broker) namesOf(req message.Request) requestNames {
	var n requestNames
	switch req := req.(type) {
	case *message.FindCoordinatorRequest:
		keys := req.CoordinatorKeys
		if req.CoordinatorKey != "" {
			keys = append(keys[:len(keys):len(keys)], req.CoordinatorKey)
		}
		switch req.KeyType {
		case groupKey:
			n.groups = keys
		case transactionKey:
			n.transactionalIDs = keys
		}
	case *message.DescribeConfigsRequest:
		for i := range req.Resources {
			n.resource(req.Resources[i].ResourceType, req.Resources[i].ResourceName)
		}
	case *message.AlterConfigsRequest:
		for i := range req.Resources {
			n.resource(req.Resources[i].ResourceType, req.Resources[i].ResourceName)
		}
	case *message.IncrementalAlterConfigsRequest:
		for i := range req.Resources {
			n.resource(req.Resources[i].ResourceType, req.Resources[i].ResourceName)
		}
	default:
		n.find(b, reflect.ValueOf(req).Elem(), false)
	}
	return n
}

// resource takes the name of a config resource.
func (n *requestNames) resource(kind int8, name string) {
	switch config.ResourceType(kind) {
	case config.TopicResource:
		n.topics = append(n.topics, name)
	case config.GroupResource:
		n.groups = append(n.groups, name)
	}
}

// find looks through the fields of v, which is an element of a list of topics if topic is set.
func (n *requestNames) find(b *Broker, v reflect.Value, topic bool) {
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		switch f := field.Interface().(type) {
		case string:
			n.take(name, f, topic)
		case *string:
			if f != nil {
				n.take(name, *f, topic)
			}
		case []string:
			n.takeAll(name, f)
		case wire.UUID:
			if t := b.table.identified(f); t != nil && name == "TopicId" {
				n.topics = append(n.topics, t.name)
			}
		default:
			if name == "ForgottenTopicsData" || name == "UnknownTags" { // a fetch is not about those
				continue
			}
			n.descend(b, field, strings.Contains(name, "Topic"))
		}
	}
}

func (n *requestNames) descend(b *Broker, v reflect.Value, topics bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n.descend(b, v.Elem(), topics)
		}
	case reflect.Struct:
		n.find(b, v, topics)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range v.Len() {
				n.find(b, v.Index(i), topics)
			}
		}
	}
}

func (n *requestNames) take(field, value string, topic bool) {
	switch {
	case value == "":
	case field == "Topic", field == "TopicName", topic && field == "Name":
		n.topics = append(n.topics, value)
	case field == "GroupId":
		n.groups = append(n.groups, value)
	case strings.HasSuffix(field, "TransactionalId"):
		n.transactionalIDs = append(n.transactionalIDs, value)
	}
}

func (n *requestNames) takeAll(field string, values []string) {
	switch field {
	case "TopicNames", "SubscribedTopicNames":
		n.topics = append(n.topics, values...)
	case "Groups", "GroupIds", "GroupsNames":
		n.groups = append(n.groups, values...)
	case "TransactionalIds":
		n.transactionalIDs = append(n.transactionalIDs, values...)
	}
}
