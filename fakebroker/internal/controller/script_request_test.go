package controller

import (
	"strconv"
	"strings"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// request reads one line of a script.
func (s *script) request(verb string, args []string) message.Request {
	switch verb {
	case "create":
		return s.create(args)
	case "grow":
		return grow(args)
	case "delete":
		r := message.NewDeleteTopicsRequest()
		for _, name := range args {
			if id, ok := strings.CutPrefix(name, "id:"); ok {
				r.Topics = append(r.Topics, message.DeleteTopicState{TopicId: s.topicID(id)})
				continue
			}
			r.Topics = append(r.Topics, message.DeleteTopicState{Name: &name})
		}
		return r
	case "set", "del", "append", "subtract":
		return incremental(verb, args)
	case "replace":
		r := message.NewAlterConfigsRequest()
		res := message.AlterConfigsRequestAlterConfigsResource{ResourceType: resourceType(args[0]), ResourceName: resourceName(args[1])}
		for _, kv := range args[2:] {
			k, v, _ := strings.Cut(kv, "=")
			res.Configs = append(res.Configs, message.AlterConfigsRequestAlterableConfig{Name: k, Value: &v})
		}
		r.Resources = append(r.Resources, res)
		return r
	case "feature":
		return feature(args)
	}
	return s.brokerRequest(verb, number(args[0]))
}

func (s *script) brokerRequest(verb string, id int32) message.Request {
	switch verb {
	case "ids":
		return &message.AllocateProducerIdsRequest{BrokerId: id, BrokerEpoch: s.img.Broker(id).Epoch}
	case "unregister":
		return &message.UnregisterBrokerRequest{BrokerId: id}
	case "clean":
		return s.registration(id, s.img.Broker(id).Epoch)
	case "unclean":
		return s.registration(id, -1)
	}
	r := s.beat(id)
	switch verb {
	case "fence":
		r.WantFence = true
	case "stop":
		r.WantShutDown = true
	case "unfence":
	case "behind":
		r.CurrentMetadataOffset = 0
	case "stale":
		r.BrokerEpoch--
	default:
		s.t.Fatalf("unknown request %q", verb)
	}
	return r
}

func (s *script) topicID(name string) wire.UUID {
	if t := s.img.Topic(name); t != nil {
		return t.ID
	}
	return wire.UUID{15: 0x99}
}

func (s *script) create(args []string) message.Request {
	r := message.NewCreateTopicsRequest()
	var t *message.CreatableTopic
	for i, a := range args {
		k, v, ok := strings.Cut(a, "=")
		switch {
		case a == "validate":
			r.ValidateOnly = true
		case a == "+":
			t = nil
		case t == nil:
			r.Topics = append(r.Topics, message.CreatableTopic{Name: strings.Trim(a, `"`), NumPartitions: -1, ReplicationFactor: -1})
			t = &r.Topics[len(r.Topics)-1]
		case k == "partitions":
			t.NumPartitions = number(v)
		case k == "rf":
			t.ReplicationFactor = int16(number(v))
		case k == "assign":
			for p, ids := range lists(v) {
				t.Assignments = append(t.Assignments, message.CreatableReplicaAssignment{PartitionIndex: int32(p), BrokerIds: ids})
			}
		case ok:
			t.Configs = append(t.Configs, message.CreatableTopicConfig{Name: k, Value: &v})
		default:
			s.t.Fatalf("argument %d of create: %q", i, a)
		}
	}
	return r
}

func grow(args []string) message.Request {
	r := message.NewCreatePartitionsRequest()
	t := message.CreatePartitionsTopic{Name: args[0]}
	for _, a := range args[1:] {
		k, v, _ := strings.Cut(a, "=")
		switch k {
		case "count":
			t.Count = number(v)
		case "assign":
			for _, ids := range lists(v) {
				t.Assignments = append(t.Assignments, message.CreatePartitionsAssignment{BrokerIds: ids})
			}
		case "validate":
			r.ValidateOnly = true
		}
	}
	r.Topics = append(r.Topics, t)
	return r
}

func incremental(verb string, args []string) message.Request {
	op := map[string]int8{"set": opSet, "del": opDelete, "append": opAppend, "subtract": opSubtract}[verb]
	r := message.NewIncrementalAlterConfigsRequest()
	res := message.IncrementalAlterConfigsRequestAlterConfigsResource{ResourceType: resourceType(args[0]), ResourceName: resourceName(args[1])}
	for _, kv := range args[2:] {
		if kv == "validate" {
			r.ValidateOnly = true
			continue
		}
		k, v, _ := strings.Cut(kv, "=")
		c := message.IncrementalAlterConfigsRequestAlterableConfig{Name: k, ConfigOperation: op, Value: &v}
		if op == opDelete {
			c.Value = nil
		}
		res.Configs = append(res.Configs, c)
	}
	r.Resources = append(r.Resources, res)
	return r
}

func feature(args []string) message.Request {
	r := message.NewUpdateFeaturesRequest()
	u := message.FeatureUpdateKey{Feature: args[0], MaxVersionLevel: int16(number(args[1])), UpgradeType: upgradeOnly}
	if len(args) > 2 {
		u.UpgradeType = map[string]int8{"safe": safeDowngrade, "unsafe": unsafeDowngrade}[args[2]]
	}
	r.FeatureUpdates = append(r.FeatureUpdates, u)
	return r
}

func resourceType(s string) int8 {
	return map[string]int8{"topic": 2, "broker": 4, "metrics": 16, "group": 32}[s]
}

func resourceName(s string) string { return strings.Trim(s, `"`) }

func number(s string) int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		panic(err)
	}
	return int32(n)
}

// lists reads 1,2;2,3.
func lists(s string) (all [][]int32) {
	for _, one := range strings.Split(s, ";") {
		var ids []int32
		for _, id := range strings.Split(one, ",") {
			if id != "" {
				ids = append(ids, number(id))
			}
		}
		all = append(all, ids)
	}
	return all
}
