package fakebroker

import (
	"context"
	"errors"
	"fmt"

	"github.com/ottla-kafka/ottla/fakebroker/internal/server"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// CreateTopic makes a topic, as an admin client would, and returns when it can be used. The error wraps the
// errcode.Code that a client would get.
func (k *Cluster) CreateTopic(ctx context.Context, t TopicSpec) error {
	return k.createTopics(ctx, []TopicSpec{t}, false)
}

func (k *Cluster) createTopics(ctx context.Context, topics []TopicSpec, mayExist bool) error {
	if len(topics) == 0 {
		return nil
	}
	req := message.NewCreateTopicsRequest()
	for _, t := range topics {
		ct := message.CreatableTopic{Name: t.Name, NumPartitions: int32(t.Partitions), ReplicationFactor: 1}
		for name, value := range t.Configs {
			ct.Configs = append(ct.Configs, message.CreatableTopicConfig{Name: name, Value: &value})
		}
		req.Topics = append(req.Topics, ct)
	}
	var resp message.Response
	err := k.with(ctx, func(ctx context.Context, b *server.Broker) (err error) {
		resp, err = b.Propose(ctx, req)
		return err
	})
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	created, ok := resp.(*message.CreateTopicsResponse)
	if !ok {
		return fmt.Errorf("create topics: the controller answered with %T", resp)
	}
	var errs []error
	for i := range created.Topics {
		t := &created.Topics[i]
		code := errcode.Code(t.ErrorCode)
		if code == errcode.None || mayExist && code == errcode.TopicAlreadyExists {
			continue
		}
		text := ""
		if t.ErrorMessage != nil {
			text = ": " + *t.ErrorMessage
		}
		errs = append(errs, fmt.Errorf("create topic %q: %w%s", t.Name, code, text))
	}
	return errors.Join(errs...)
}
