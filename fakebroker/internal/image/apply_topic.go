package image

import (
	"fmt"
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// PartitionChangeRecord fields that say "as it was".
const (
	noLeaderChange   int32 = -2
	noRecoveryChange int8  = -1
)

func (d *Delta) editTopics() {
	if d.topics == nil {
		d.topics, d.names = d.img.topics.Edit(), d.img.names.Edit()
	}
	if d.changedTopics == nil {
		d.changedTopics = make(map[wire.UUID]bool)
	}
}

func (d *Delta) setTopic(t *Topic) {
	d.editTopics()
	d.topics.Set(t.ID, t)
	d.names.Set(t.Name, t)
	d.changedTopics[t.ID] = true
}

// own returns a topic that this delta may write into: a copy, made when the topic first changes.
func (d *Delta) own(id wire.UUID) (*Topic, error) {
	d.editTopics()
	t, ok := d.topics.Get(id)
	if !ok {
		return nil, fmt.Errorf("no topic with id %s", id)
	}
	if !d.changedTopics[id] {
		t = &Topic{Name: t.Name, ID: t.ID, Partitions: slices.Clone(t.Partitions)}
		d.setTopic(t)
	}
	return t, nil
}

func (d *Delta) topic(r *logrecord.TopicRecord) error {
	d.editTopics()
	if old, ok := d.names.Get(r.Name); ok {
		return fmt.Errorf("topic %q is there already, with id %s", r.Name, old.ID)
	}
	d.setTopic(&Topic{Name: r.Name, ID: r.TopicId})
	d.setSimilar(r.Name, true)
	return nil
}

// removeTopic takes the topic's configs with it, as Apache Kafka's images do: no ConfigRecord says so.
func (d *Delta) removeTopic(r *logrecord.RemoveTopicRecord) error {
	t, err := d.own(r.TopicId)
	if err != nil {
		return err
	}
	d.topics.Delete(t.ID)
	d.names.Delete(t.Name)
	d.setSimilar(t.Name, false)
	d.removeConfigs(config.Resource{Type: config.TopicResource, Name: t.Name})
	return nil
}

// setSimilar keeps the index behind Image.Similar. Groups are tiny: a second name only comes in by way of the one request that
// creates both.
func (d *Delta) setSimilar(name string, there bool) {
	if !hasCollisionChars(name) {
		return
	}
	if d.similar == nil {
		d.similar = d.img.similar.Edit()
	}
	key := unified(name)
	old, _ := d.similar.Get(key)
	group := slices.DeleteFunc(slices.Clone(old), func(n string) bool { return n == name })
	if there {
		group = append(group, name)
	}
	if len(group) == 0 {
		d.similar.Delete(key)
		return
	}
	d.similar.Set(key, group)
}

func (d *Delta) partition(r *logrecord.PartitionRecord) error {
	t, err := d.own(r.TopicId)
	if err != nil {
		return err
	}
	if r.PartitionId < 0 || int(r.PartitionId) > len(t.Partitions)+maxGap {
		return fmt.Errorf("partition %d of topic %q, which has %d", r.PartitionId, t.Name, len(t.Partitions))
	}
	for int(r.PartitionId) >= len(t.Partitions) {
		t.Partitions = append(t.Partitions, nil)
	}
	t.Partitions[r.PartitionId] = &Partition{
		ID: r.PartitionId, Replicas: r.Replicas, Directories: assignments(r.Directories, len(r.Replicas)), ISR: r.Isr,
		Leader: r.Leader, LeaderEpoch: r.LeaderEpoch, PartitionEpoch: r.PartitionEpoch,
		AddingReplicas: r.AddingReplicas, RemovingReplicas: r.RemovingReplicas,
		ELR: r.EligibleLeaderReplicas, LastKnownELR: r.LastKnownElr, LeaderRecoveryState: r.LeaderRecoveryState,
	}
	return nil
}

// maxGap bounds how far ahead of its predecessors a partition record may be, so that a broken log cannot ask for
// gigabytes.
const maxGap = 1 << 20

// assignments fills up log dirs of a log that is older than KIP-858 with "not assigned".
func assignments(dirs []wire.UUID, replicas int) []wire.UUID {
	if len(dirs) == 0 {
		return make([]wire.UUID, replicas)
	}
	return dirs
}

func (d *Delta) partitionChange(r *logrecord.PartitionChangeRecord) error {
	t, err := d.own(r.TopicId)
	if err != nil {
		return err
	}
	old := t.Partition(r.PartitionId)
	if old == nil {
		return fmt.Errorf("no partition %d in topic %q, which has %d", r.PartitionId, t.Name, len(t.Partitions))
	}
	t.Partitions[r.PartitionId] = old.merge(r)
	return nil
}

// merge returns the registration after a change: absent fields stay, the partition epoch always grows, the leader epoch
// grows when the record names a leader (the same one too: that is how a controller bumps it).
func (p *Partition) merge(r *logrecord.PartitionChangeRecord) *Partition {
	next := *p
	next.PartitionEpoch++
	if r.Leader != noLeaderChange {
		next.Leader = r.Leader
		next.LeaderEpoch++
	}
	if r.LeaderRecoveryState != noRecoveryChange {
		next.LeaderRecoveryState = r.LeaderRecoveryState
	}
	pick := func(field *[]int32, value []int32) {
		if value != nil {
			*field = value
		}
	}
	pick(&next.Replicas, r.Replicas)
	pick(&next.ISR, r.Isr)
	pick(&next.AddingReplicas, r.AddingReplicas)
	pick(&next.RemovingReplicas, r.RemovingReplicas)
	pick(&next.ELR, r.EligibleLeaderReplicas)
	pick(&next.LastKnownELR, r.LastKnownElr)
	if r.Directories != nil {
		next.Directories = r.Directories
	}
	return &next
}

// clearElr forgets the eligible replicas of one topic, or of all when no name is given.
func (d *Delta) clearElr(r *logrecord.ClearElrRecord) error {
	d.editTopics()
	if r.TopicName != "" {
		t, ok := d.names.Get(r.TopicName)
		if !ok {
			return fmt.Errorf("no topic %q", r.TopicName)
		}
		return d.clearElrOf(t.ID)
	}
	for id := range d.topics.Map().All() {
		if err := d.clearElrOf(id); err != nil {
			return err
		}
	}
	return nil
}

func (d *Delta) clearElrOf(id wire.UUID) error {
	t, err := d.own(id)
	if err != nil {
		return err
	}
	for i, p := range t.Partitions {
		if p != nil && len(p.ELR)+len(p.LastKnownELR) > 0 {
			next := *p
			next.ELR, next.LastKnownELR = nil, nil
			t.Partitions[i] = &next
		}
	}
	return nil
}
