package machine

import (
	"fmt"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// topology takes a new picture of the cluster to every partition.
func (f *Fetcher) topology(v View, eff *Effects) {
	f.view = v
	for _, p := range f.parts {
		f.place(p, eff)
	}
	for _, b := range f.brokers {
		if !v.Broker(b.id) && !b.inFlight {
			b.session.lost()
		}
	}
	eff.Wake = true
}

// place applies the present picture to one partition.
func (f *Fetcher) place(p *partition, eff *Effects) {
	id, code, known := f.view.Topic(p.Topic)
	if known && code == errcode.None && !id.IsZero() && id != p.topicID {
		if !p.topicID.IsZero() && p.state != halted {
			f.replaced(p, id, eff)
			if p.state == halted {
				return
			}
		}
		if p.topicID.IsZero() || p.state != halted {
			p.topicID = id
		}
	}
	if p.preferred >= 0 && !f.view.Broker(p.preferred) {
		p.dropPreferred(eff)
	}
	l := f.view.Leader(p.TopicPartition)
	if l.Broker < 0 || (l.Epoch >= 0 && l.Epoch < p.leaderEpoch) {
		return // none, or older than what we know: brokers learn of changes one after the other
	}
	newer := l.Epoch > p.leaderEpoch
	if l.Broker != p.leader || newer {
		p.retryAt = zeroTime // a change is what a waiting partition hopes for
	}
	if newer && p.leaderEpoch >= 0 && p.state == fetching && p.next.Epoch >= 0 {
		p.state = validating // KIP-320: has the new leader what we read from the old one?
	}
	p.leader, p.leaderEpoch = l.Broker, l.Epoch
}

// replaced decides what to do about a topic of the same name and another id.
func (f *Fetcher) replaced(p *partition, id [16]byte, eff *Effects) {
	err := &ReplacedError{Topic: p.Topic, Old: p.topicID, New: id, Position: p.next}
	eff.Notices = append(eff.Notices, Notice{Kind: NoticeReplaced, TopicPartition: p.TopicPartition, Broker: -1,
		Old: p.next, New: Position{-1, -1}, Reason: fmt.Sprintf("topic id was %s and is %s", err.Old, err.New), Err: err})
	if !f.cfg.Adopt {
		f.halt(p, err, eff)
		return
	}
	// All of the new topic is news, so it is read from its start. What was delivered of the old one stays good,
	// while requests in flight name the old id: their answers must not count.
	p.leader, p.leaderEpoch = -1, -1
	p.next = Position{-1, -1}
	p.preferred = -1
	p.resolve(Earliest, "the topic was replaced")
}

func (p *partition) dropPreferred(eff *Effects) {
	if p.preferred < 0 {
		return
	}
	p.preferred = -1
	eff.Notices = append(eff.Notices, Notice{Kind: NoticeReplica, TopicPartition: p.TopicPartition, Broker: -1,
		Old: p.next, New: p.next, Reason: "fetching from the leader again"})
}
