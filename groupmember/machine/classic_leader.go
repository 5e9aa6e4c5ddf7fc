package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/wire/message"
)

// leadership is what the leader of a generation knows.
type leadership struct {
	members []Subscription
	topics  []string // that some member subscribes to, sorted
	skip    bool     // the coordinator has the assignment already (KIP-814)
	until   time.Time
	known   map[string]TopicRacks // what the assignment was based on
	racks   bool                  // some member tells its rack
}

// lead begins to decide.
func (c *classic) lead(now time.Time, resp *message.JoinGroupResponse, eff *Effects) {
	l := &leadership{skip: resp.SkipAssignment, until: now.Add(decideWithin)}
	topics := map[string]bool{}
	for i := range resp.Members {
		r := &resp.Members[i]
		s, err := ParseSubscription(r.Metadata)
		if err != nil {
			c.end(c.refused("JoinGroup", fmt.Errorf("member %q: %w", r.MemberId, err), ""), ErrLost, eff)
			return
		}
		s.MemberID = r.MemberId
		if r.GroupInstanceId != nil {
			s.InstanceID = *r.GroupInstanceId
		}
		l.racks = l.racks || s.Rack != ""
		l.members = append(l.members, s)
		for _, t := range s.Topics {
			topics[t] = true
		}
	}
	slices.SortFunc(l.members, func(a, b Subscription) int { return cmp.Compare(a.MemberID, b.MemberID) })
	l.topics = slices.Sorted(maps.Keys(topics))
	c.leader, c.phase = l, deciding
	for _, t := range c.topics {
		topics[t] = true
	}
	eff.Track = slices.Sorted(maps.Keys(topics))
}

// decide runs the assignor once metadata of all topics is here.
func (c *classic) decide(now time.Time, eff *Effects) {
	l := c.leader
	if now.Before(c.retryAt) || !now.After(l.until) && now != l.until && !l.complete(c.view) {
		return
	}
	l.known = l.look(c.view)
	if l.skip {
		c.sync(now, nil, eff)
		return
	}
	i := slices.IndexFunc(c.cfg.Assignors, func(a Assignor) bool { return a.Name() == c.assignor })
	if i < 0 {
		c.end(c.refused("JoinGroup", fmt.Errorf("the coordinator chose the assignor %q, which this member did not offer", c.assignor), ""), ErrLost, eff)
		return
	}
	var topics []TopicRacks
	for _, name := range l.topics {
		if t, exists := l.known[name]; exists {
			topics = append(topics, t)
		}
	}
	result, err := c.cfg.Assignors[i].Assign(topics, l.members)
	if err != nil {
		c.phase, c.Member.reason = out, fmt.Sprintf("assignor %q failed: %v", c.assignor, err)
		c.retry(now)
		return
	}
	var assignments []message.SyncGroupRequestAssignment
	for i := range l.members {
		id := l.members[i].MemberID
		assignments = append(assignments, message.SyncGroupRequestAssignment{MemberId: id, Assignment: AppendAssignment(nil, subscriptionVersion, result[id], nil)})
	}
	c.sync(now, assignments, eff)
}

// complete tells whether metadata has an answer for each topic.
func (l *leadership) complete(v View) bool {
	for _, name := range l.topics {
		if v == nil {
			return false
		}
		if _, _, known := v.Topic(name); !known {
			return false
		}
	}
	return true
}

// look takes what matters out of a view.
func (l *leadership) look(v View) map[string]TopicRacks {
	known := map[string]TopicRacks{}
	for _, name := range l.topics {
		if v == nil {
			break
		}
		if t, exists, _ := v.Topic(name); exists {
			known[name] = t
		}
	}
	return known
}

// outdated tells whether topics came, went or grew since the assignment, or replicas moved between racks where
// members tell theirs.
func (l *leadership) outdated(v View) bool {
	if l.known == nil || !l.complete(v) {
		return false
	}
	return !maps.EqualFunc(l.known, l.look(v), func(a, b TopicRacks) bool {
		return len(a.Racks) == len(b.Racks) && (!l.racks || slices.EqualFunc(a.Racks, b.Racks, sameRacks))
	})
}

func sameRacks(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// topology looks whether a leader has to distribute anew.
func (c *classic) topology(*Effects) {
	if c.leader != nil && c.phase == in && c.wish == "" && c.leader.outdated(c.view) {
		c.wish = "topics or partitions changed"
	}
}
