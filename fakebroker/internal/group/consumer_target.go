package group

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/group/assignor"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
)

// A change is a consumer group with the change that a request proposes: one member in the place of another, or fewer.
// Hashes and targets are made of it before anything is in the log.
type change struct {
	m           *Machine
	id          string
	c           *consumerGroup
	updated     *consumerMember                  // joins, or stands for the member of the same id
	gone        map[string]bool                  // leave, or are replaced by updated
	moved       string                           // gone static member whose target updated takes over
	regexes     map[string]*resolvedRegex        // as they will be; nil: as they are
	epoch       int32                            // of the group, after the change
	hash        int64                            // likewise
	target      map[string]map[wire.UUID][]int32 // likewise
	targetEpoch int32                            // likewise
}

func (m *Machine) changeOf(id string, c *consumerGroup) *change {
	return &change{m: m, id: id, c: c, gone: make(map[string]bool), epoch: c.epoch, hash: c.hash, target: c.target, targetEpoch: c.targetEpoch}
}

// members are those after the change, by id.
func (ch *change) members() []*consumerMember {
	all := make([]*consumerMember, 0, len(ch.c.members)+1)
	for _, x := range ch.c.members {
		if !ch.gone[x.id] && (ch.updated == nil || x.id != ch.updated.id) {
			all = append(all, x)
		}
	}
	if ch.updated != nil {
		all = append(all, ch.updated)
	}
	slices.SortFunc(all, func(a, b *consumerMember) int { return compare(a.id, b.id) })
	return all
}

// reads calls f with each topic that a member reads after the change.
func (ch *change) reads(x *consumerMember, f func(topic string)) {
	for _, t := range x.topics {
		f(t)
	}
	if x.regex == "" {
		return
	}
	all := ch.regexes
	if all == nil {
		all = ch.c.regexes
	}
	if r := all[x.regex]; r != nil {
		for _, t := range r.topics {
			f(t)
		}
	}
}

// topics are those that exist of what the members read.
func (ch *change) topics(members []*consumerMember) map[string]*image.Topic {
	topics := make(map[string]*image.Topic)
	for _, x := range members {
		ch.reads(x, func(name string) {
			if _, ok := topics[name]; !ok {
				if t := ch.m.env.Image.Topic(name); t != nil {
					topics[name] = t
				}
			}
		})
	}
	return topics
}

// rehash works out the hash and reports whether it is another one.
func (ch *change) rehash() bool {
	topics := ch.topics(ch.members())
	names := make([]string, 0, len(topics))
	for name := range topics {
		names = append(names, name)
	}
	slices.Sort(names)
	img := ch.m.env.Image
	hash := hashTopics(names, func(name string) int64 { t := topics[name]; return hashTopic(t.ID, name, racksOf(img, t)) })
	differs := hash != ch.hash
	ch.hash = hash
	return differs
}

// bump begins a new epoch of the group.
func (ch *change) bump(out *coordinator.Result) {
	ch.epoch++
	recordEpoch(ch.id, ch.epoch, ch.hash, out)
}

// assign makes a new target if the epoch has one to come, and the last one is old enough.
func (ch *change) assign(now time.Time, out *coordinator.Result) {
	interval := ch.m.consumerSettings(ch.id).assignmentInterval
	if ch.epoch <= ch.targetEpoch || ch.c.targetAt > 0 && now.UnixMilli()-ch.c.targetAt < interval.Milliseconds() {
		if ch.moved != "" {
			if t := ch.c.target[ch.moved]; t != nil {
				recordTarget(ch.id, ch.updated.id, t, out)
				ch.target = with(ch.target, ch.updated.id, t)
			}
		}
		return
	}
	members := ch.members()
	topics := ch.topics(members)
	spec := &assignor.Spec{Topics: make(map[wire.UUID]int32, len(topics))}
	for _, t := range topics {
		spec.Topics[t.ID] = int32(len(t.Partitions))
	}
	for _, x := range members {
		a := assignor.Member{ID: x.id, Instance: x.instance, Current: assignor.Partitions(ch.targetOf(x.id))}
		seen := make(map[string]bool)
		ch.reads(x, func(name string) {
			if t := topics[name]; t != nil && !seen[name] {
				seen[name] = true
				a.Topics = append(a.Topics, t.ID)
			}
		})
		spec.Members = append(spec.Members, a)
	}
	assign, _ := assignor.Named(ch.assignor(members))
	result := assign(spec)
	ch.target = make(map[string]map[wire.UUID][]int32, len(result))
	for _, x := range members {
		t := map[wire.UUID][]int32(result[x.id])
		ch.target[x.id] = t
		if before, ok := ch.c.target[x.id]; !ok || !sameTarget(before, t) {
			recordTarget(ch.id, x.id, t, out)
		}
	}
	ch.targetEpoch = ch.epoch
	recordTargetEpoch(ch.id, ch.epoch, now.UnixMilli(), out)
}

// targetOf is the target that the assignor starts from.
func (ch *change) targetOf(member string) map[wire.UUID][]int32 {
	if ch.moved != "" && member == ch.updated.id {
		return ch.c.target[ch.moved]
	}
	return ch.c.target[member]
}

// assignor is the one that most members ask for; without a wish the first of group.consumer.assignors.
func (ch *change) assignor(members []*consumerMember) string {
	return ch.m.preferredAssignor(members)
}

func (m *Machine) preferredAssignor(members []*consumerMember) string {
	votes := make(map[string]int)
	for _, x := range members {
		if x.assignor != nil {
			votes[*x.assignor]++
		}
	}
	best := ""
	for _, name := range m.set.assignors {
		if votes[name] > votes[best] {
			best = name
		}
	}
	if best == "" && len(m.set.assignors) > 0 {
		return m.set.assignors[0]
	}
	return best
}

func with(t map[string]map[wire.UUID][]int32, member string, v map[wire.UUID][]int32) map[string]map[wire.UUID][]int32 {
	n := make(map[string]map[wire.UUID][]int32, len(t)+1)
	for k, x := range t {
		n[k] = x
	}
	n[member] = v
	return n
}

func sameTarget(a, b map[wire.UUID][]int32) bool {
	if len(a) != len(b) {
		return false
	}
	for topic, p := range a {
		if !slices.Equal(p, b[topic]) {
			return false
		}
	}
	return true
}

// topicsChanged has the groups that read a changed topic compare hashes at the next heartbeat, and those with patterns
// look for new topics.
func (m *Machine) topicsChanged(now time.Time, changes []image.TopicChange, _ *coordinator.Result) {
	for _, g := range m.sorted() {
		if g.consumer == nil {
			continue
		}
		for _, t := range changes {
			if !g.consumer.stale && g.consumer.subscribed(t.Name()) {
				g.consumer.stale = true
				break
			}
		}
		m.watchRegexes(now, g)
	}
}
