package groupmember

import (
	"regexp"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// view is a picture of the cluster as the machine wants it.
type view struct{ *client.Topology }

// Topic is what is known of a topic.
func (v view) Topic(name string) (topic machine.TopicRacks, exists, known bool) {
	t := v.Topology.Topic(name)
	if t == nil {
		return topic, false, false
	}
	if len(t.Partitions) == 0 {
		return topic, false, true
	}
	topic = machine.TopicRacks{Name: name, Racks: make([][]string, len(t.Partitions))}
	for i := range t.Partitions {
		for _, r := range t.Partitions[i].Replicas {
			topic.Racks[i] = append(topic.Racks[i], v.Brokers[r].Rack)
		}
	}
	return topic, true, true
}

// Name is the name of a topic id.
func (v view) Name(id wire.UUID) (string, bool) {
	if t := v.TopicByID(id); t != nil && t.Name != "" {
		return t.Name, true
	}
	return "", false
}

// track makes the client keep metadata of these topics and, beside those found by id, no others.
func (m *Member) track(topics []string) {
	want := make(map[string]bool, len(topics))
	for _, t := range topics {
		want[t] = true
		if !m.tracked[t] {
			m.tracked[t] = true
			m.cl.AddTopics(t)
		}
	}
	for t := range m.tracked {
		if !want[t] {
			delete(m.tracked, t)
			m.cl.RemoveTopics(t)
		}
	}
}

// untrack gives all topics back, at the end.
func (m *Member) untrack() {
	m.track([]string{})
	m.mu.Lock()
	names := m.byID
	m.byID = nil
	m.mu.Unlock()
	m.cl.RemoveTopics(names...)
}

// findNames asks for the names of topic ids and then tracks those topics, so that the next topology has them.
func (m *Member) findNames(ids []wire.UUID) {
	req := message.NewMetadataRequest()
	req.AllowAutoTopicCreation = false
	for _, id := range ids {
		req.Topics = append(req.Topics, message.MetadataRequestTopic{TopicId: id})
	}
	m.group.Go(func() { // ends with m.ctx
		resp, err := m.cl.Request(m.ctx, client.AnyBroker().Versions(12, 0), req)
		if err != nil {
			m.cl.Logger().Warn("kafka group member: names of assigned topics are not known yet", "group", m.cfg.GroupID, "topics", len(ids), "error", err)
			return // the machine asks again
		}
		for _, t := range resp.(*message.MetadataResponse).Topics {
			if t.Name != nil && t.ErrorCode == 0 {
				m.found(*t.Name)
			}
		}
	})
}

// found tracks a topic that was found by its id, and remembers to give it back at the end. It is tracked first: the end
// may come at any moment, and then gives back what is remembered.
func (m *Member) found(name string) {
	m.cl.AddTopics(name)
	m.mu.Lock()
	again := m.ended || slices.Contains(m.byID, name)
	if !again {
		m.byID = append(m.byID, name)
	}
	m.mu.Unlock()
	if again {
		m.cl.RemoveTopics(name)
		m.cl.RefreshMetadata()
	}
}

// discover looks for topics that match the pattern, for the classic protocol.
func (m *Member) discover() {
	timer := time.NewTimer(m.cfg.DiscoverEvery)
	defer timer.Stop()
	for {
		m.discoverOnce()
		timer.Reset(m.cfg.DiscoverEvery)
		select {
		case <-m.ctx.Done():
			return
		case <-m.look:
		case <-timer.C:
		}
	}
}

func (m *Member) discoverSoon() { signal(m.look) }

func (m *Member) discoverOnce() {
	m.mu.Lock()
	pattern := m.pattern
	m.mu.Unlock()
	if pattern == nil {
		return // subscribed by name meanwhile
	}
	req := message.NewMetadataRequest()
	req.Topics = nil // no list means all topics
	resp, err := m.cl.Request(m.ctx, client.AnyBroker().Versions(1, 0), req)
	if err != nil {
		m.cl.Logger().Warn("kafka group member: topics cannot be listed", "group", m.cfg.GroupID, "pattern", pattern.String(), "error", err)
		return
	}
	topics := []string{}
	for _, t := range resp.(*message.MetadataResponse).Topics {
		if t.Name != nil && t.ErrorCode == 0 && !(t.IsInternal && m.cfg.ExcludeInternal) && pattern.MatchString(*t.Name) {
			topics = append(topics, *t.Name)
		}
	}
	m.mu.Lock()
	still := m.pattern == pattern
	m.mu.Unlock()
	if still {
		m.step(machine.Subscribed{Topics: topics, Regex: pattern.String()})
	}
}

// whole makes an expression match names as a whole. It must compile.
func whole(re2 string) *regexp.Regexp { return regexp.MustCompile("^(?:" + re2 + ")$") }
