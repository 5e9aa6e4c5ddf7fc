package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/groupmember/machine"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// ledger knows what was processed and committed, and holds the run to it.
type ledger struct {
	w         *world
	times     map[part]map[int64]int // how often each record was processed
	frontier  map[part]int64         // everything below was processed
	committed map[part]int64
	bad       map[part]bool // a claim on it ended badly: its records may be repeated
	repeats   map[part]int64
	lives     map[part]bool // read by somebody who was not given it, because its topic was replaced
	late      bool          // what is being handled was given up by its sender

	groupEpoch int32            // of the last record; -1 after the group's end
	peak       int32            // the highest there ever was
	members    map[string]int32 // member epochs
	ends       int              // of the group: numbers begin anew
	told       map[string]told
	dirty      bool // the log has grown since the last look
	looks      int
}

// told is the generation that a node was in.
type told struct {
	id   int32
	ends int
}

func (l *ledger) init(w *world) {
	*l = ledger{w: w, times: map[part]map[int64]int{}, frontier: map[part]int64{}, committed: map[part]int64{}, bad: map[part]bool{},
		repeats: map[part]int64{}, lives: map[part]bool{}, groupEpoch: -1, members: map[string]int32{}, told: map[string]told{}}
}

// Why a record may be processed again.
const (
	lost        = "lost"
	crashed     = "crashed, cut off or standing still"
	undrained   = "given up undrained"
	uncommitted = "given up uncommitted"
	overrun     = "committed by a request that came too late"
	replaced    = "the topic was deleted and made again"
)

// badly notes that a claim on a partition did not end well. In a clean seed none may, but for topics that were replaced.
func (l *ledger) badly(p part, why string) {
	if why != replaced && l.w.exact() {
		if _, there := l.w.topics.nameOf(p.id); there {
			l.w.Fail("nothing crashed, and partition %d (topic %s) is %s", p.index, p.id, why)
		}
	}
	l.bad[p] = true
	l.lives[p] = l.lives[p] || why == replaced
	l.w.Sometimes("claim ended badly: " + why)
}

// exact tells whether every record of this seed is processed exactly once: nothing crashed. A coordinator that goes away
// forgets a generation that is not in the log yet, which costs cooperative members their partitions, and classic ones in
// the downgrade of a group; those of Apache Kafka too.
func (w *world) exact() bool {
	coordinator := w.menu.moves || w.menu.brokers
	return w.menu.clean && w.fleet.name != "mixed" && !(coordinator && (w.fleet.name == "cooperative" || w.fleet.name == "rolling"))
}

// processed notes a record; late means that it does not count, because its claim is over.
func (l *ledger) processed(p part, offset int64, late bool) {
	if late {
		l.bad[p] = true
		return
	}
	t := l.times[p]
	if t == nil {
		t = map[int64]int{}
		l.times[p] = t
	}
	if t[offset]++; t[offset] > 1 {
		l.repeats[p] = offset
		l.w.Sometimes("record processed again")
	}
	for t[l.frontier[p]] > 0 {
		l.frontier[p]++
	}
}

// claimed checks G1 when a node is given a partition.
func (l *ledger) claimed(n *node, c *claim) {
	w := l.w
	if n.paused || n.mute || n.deaf {
		l.badly(c.part, crashed)
	}
	for _, other := range w.nodes {
		held := other.claims[c.tp]
		if other == n || other.dead || held == nil || held.adopted || held.part.id != c.part.id {
			continue
		}
		a, b := n.m.Generation(), other.m.Generation()
		if a.Protocol == machine.Classic && b.Protocol == machine.Classic {
			if a.ID == b.ID && w.counted(b.MemberID) && w.counted(a.MemberID) {
				w.Fail("G1: %s is given to %s and held by %s, both in generation %d", c.tp, n.name, other.name, a.ID)
			}
			w.Sometimes("a member of an older generation still held a partition")
			continue
		}
		if w.counted(a.MemberID) && w.counted(b.MemberID) && !other.paused {
			w.Fail("G1: %s is given to %s (epoch %d) and held by %s (epoch %d), both are in the group", c.tp, n.name, a.ID, other.name, b.ID)
		}
		w.Sometimes("a fenced member still held a partition")
	}
}

// counted tells whether the coordinator has a member in the group.
func (w *world) counted(member string) bool {
	b := w.brokers
	if b.shard == nil {
		return false
	}
	d := b.peek(b.shard, group.DescribeConsumer{Group: groupID}, 1).(message.ConsumerGroupDescribeResponseDescribedGroup)
	for i := range d.Members {
		if d.Members[i].MemberId == member {
			return true
		}
	}
	c := b.peek(b.shard, group.Describe{Group: groupID}, 6).(message.DescribeGroupsResponseDescribedGroup)
	for i := range c.Members {
		if c.Members[i].MemberId == member {
			return true
		}
	}
	return false
}

// generation checks G4 for what a member was told.
func (l *ledger) generation(n *node, before, now machine.Generation) {
	if now.ID == machine.NoGeneration || now.ID == before.ID && now.MemberID == before.MemberID {
		return
	}
	if now.Protocol == machine.Classic && n.m.State() != machine.Stable {
		return // a generation is in the log, and so for good, only when its assignment is
	}
	if last, ok := l.told[n.name]; ok && last.ends == l.ends && now.ID < last.id {
		l.w.Fail("G4: %s was in generation %d and is in %d", n.name, last.id, now.ID)
	}
	if now.Protocol == machine.Consumer && now.ID > l.peak { // the answer may be older than the group's present life
		l.w.Fail("G4: %s is in epoch %d, the group was never in more than %d", n.name, now.ID, l.peak)
	}
	l.told[n.name] = told{now.ID, l.ends}
}

// written checks what a coordinator writes.
func (l *ledger) written(key, value logrecord.Record) {
	l.dirty = true
	switch k := key.(type) {
	case *logrecord.OffsetCommitKey:
		if v, ok := value.(*logrecord.OffsetCommitValue); ok {
			l.commit(part{v.TopicId, k.Partition}, v.Offset)
		}
	case *logrecord.GroupMetadataKey:
		v, ok := value.(*logrecord.GroupMetadataValue)
		if !ok {
			l.end()
			return
		}
		l.grow(v.Generation)
	case *logrecord.ConsumerGroupMetadataKey:
		v, ok := value.(*logrecord.ConsumerGroupMetadataValue)
		if !ok {
			l.end()
			return
		}
		l.grow(v.Epoch)
	case *logrecord.ConsumerGroupTargetAssignmentMetadataKey:
		if v, ok := value.(*logrecord.ConsumerGroupTargetAssignmentMetadataValue); ok && v.AssignmentEpoch > l.groupEpoch {
			l.w.Fail("G4: assignment epoch %d, group epoch %d", v.AssignmentEpoch, l.groupEpoch)
		}
	case *logrecord.ConsumerGroupCurrentMemberAssignmentKey:
		v, ok := value.(*logrecord.ConsumerGroupCurrentMemberAssignmentValue)
		if !ok || v.MemberEpoch < 0 {
			delete(l.members, k.MemberId)
			return
		}
		if v.MemberEpoch > l.groupEpoch {
			l.w.Fail("G4: member epoch %d of %s, group epoch %d", v.MemberEpoch, k.MemberId, l.groupEpoch)
		}
		if v.MemberEpoch < l.members[k.MemberId] {
			l.w.Fail("G4: member epoch of %s goes from %d to %d", k.MemberId, l.members[k.MemberId], v.MemberEpoch)
		}
		l.members[k.MemberId] = v.MemberEpoch
	}
}

// grow takes the group's number. The end of one kind of group and the start of another are one batch, so what was the
// last number stays in force until then.
func (l *ledger) grow(id int32) {
	if id < l.groupEpoch {
		l.w.Fail("G4: the group goes from %d to %d", l.groupEpoch, id)
	}
	l.groupEpoch, l.peak = id, max(l.peak, id)
}

func (l *ledger) end() {
	l.groupEpoch = -1
	l.ends++
	clear(l.members)
}

// commit checks G2.
func (l *ledger) commit(p part, offset int64) {
	w := l.w
	if _, there := w.topics.nameOf(p.id); !there {
		return
	}
	if offset > l.frontier[p] {
		w.Fail("offset %d of partition %d (topic %s) is committed, %d is not processed", offset, p.index, p.id, l.frontier[p])
	}
	if offset < l.committed[p] {
		if !l.late && !l.lives[p] {
			w.Fail("G2: the committed offset of partition %d (topic %s) goes back from %d to %d", p.index, p.id, l.committed[p], offset)
		}
		w.Sometimes("a commit that came too late set the offset back")
		l.badly(p, overrun)
	}
	l.committed[p] = offset
}

// truncated: the log has lost its end, which nobody was told of.
func (l *ledger) truncated(b *brokers) {
	w := l.w
	told, ends := l.told, l.ends
	l.groupEpoch = -1
	clear(l.members)
	clear(l.committed)
	for i, e := range b.log {
		key, err := logrecord.ReadKey(logrecord.GroupLog, e.key)
		if err != nil {
			w.Fail("record %d: %v", i, err)
		}
		value, _, err := logrecord.ReadValue(logrecord.GroupLog, key.APIKey(), e.value)
		if err != nil {
			w.Fail("record %d: %v", i, err)
		}
		l.late = true // it was checked when it was written
		l.written(key, value)
		l.late = false
	}
	l.told, l.ends = told, ends
}

// check is called after every event; what costs more than a little is looked at now and then.
func (w *world) check() {
	l := &w.ledger
	if l.dirty && w.Steps%97 == 0 {
		l.dirty = false
		w.replayed()
	}
}

// replayed checks G6: the state of the coordinator is what its log says.
func (w *world) replayed() {
	b := w.brokers
	if b.shard == nil {
		return
	}
	w.ledger.looks++
	fresh := b.fresh(b.log)
	live := b.snapshot(b.shard)
	if strings.HasPrefix(live, "classic PreparingRebalance") || strings.HasPrefix(live, "classic CompletingRebalance") {
		w.Sometimes("looked at a coordinator in a classic rebalance")
		return // who joins is not durable
	}
	if strings.HasPrefix(live, "classic Empty") && b.refused {
		return // that the last member left could not be written, which does no harm: it is how Kafka does it
	}
	if again := b.snapshot(fresh); live != again {
		w.Fail("G6: the coordinator says\n%s\nthe replay of its log\n%s", live, again)
	}
}

// snapshot is what a machine answers about the group, and the durable state of a consumer group as it is in memory.
func (b *brokers) snapshot(m *group.Machine) string {
	offsets := b.peek(m, group.FetchOffsets{Group: message.OffsetFetchRequestGroup{GroupId: groupID, MemberEpoch: -1}}, 9).(message.OffsetFetchResponseGroup)
	tail := ""
	for _, t := range offsets.Topics {
		for _, p := range t.Partitions {
			tail += fmt.Sprintf("%s-%d %d\n", t.Name, p.PartitionIndex, p.CommittedOffset)
		}
	}
	d := b.peek(m, group.DescribeConsumer{Group: groupID}, 1).(message.ConsumerGroupDescribeResponseDescribedGroup)
	if d.ErrorCode == 0 {
		return fmt.Sprintf("consumer %s\n%s", d.GroupState, dump(reflect.ValueOf(m).Elem().FieldByName("groups").MapIndex(reflect.ValueOf(groupID)).Elem().FieldByName("consumer"))) + tail
	}
	c := b.peek(m, group.Describe{Group: groupID}, 6).(message.DescribeGroupsResponseDescribedGroup)
	s := fmt.Sprintf("classic %s %s %s %d\n", c.GroupState, c.ProtocolType, c.ProtocolData, c.ErrorCode)
	slices.SortFunc(c.Members, func(a, b message.DescribedGroupMember) int { return strings.Compare(a.MemberId, b.MemberId) })
	for _, x := range c.Members {
		s += fmt.Sprintf("%s %v %s %x %x\n", x.MemberId, text(x.GroupInstanceId), x.ClientId, x.MemberMetadata, x.MemberAssignment)
	}
	return s + tail
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// volatile are the fields of a consumer group that are not in its log.
var volatile = []string{"stale"}

// dump writes a value and all it leads to, maps in order.
func dump(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return dump(v.Elem())
	case reflect.Struct:
		s := "{"
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !slices.Contains(volatile, name) {
				s += name + ":" + dump(v.Field(i)) + " "
			}
		}
		return s + "}\n"
	case reflect.Map:
		var lines []string
		for it := v.MapRange(); it.Next(); {
			if it.Value().Kind() == reflect.Map && it.Value().Len() == 0 {
				continue
			}
			lines = append(lines, dump(it.Key())+"="+dump(it.Value()))
		}
		slices.Sort(lines)
		return "{" + strings.Join(lines, " ") + "}"
	case reflect.Slice, reflect.Array:
		s := "["
		for i := range v.Len() {
			s += dump(v.Index(i)) + " "
		}
		return s + "]"
	}
	return fmt.Sprint(v)
}

// settled tells why the group is not at rest: each partition has exactly one owner, and all members are stable.
func (w *world) settled() error {
	want, have := map[machine.TopicPartition]bool{}, map[machine.TopicPartition]string{}
	for name, n := range w.topics.counts() {
		for i := range n {
			want[machine.TopicPartition{Topic: name, Partition: int32(i)}] = true
		}
	}
	for _, n := range w.live() {
		if n.m.State() != machine.Stable {
			return fmt.Errorf("%s is %s", n.name, n.m.State())
		}
		for _, c := range n.sorted() {
			if other := have[c.tp]; other != "" {
				return fmt.Errorf("%s has two owners, %s and %s", c.tp, other, n.name)
			}
			have[c.tp] = n.name
			if !want[c.tp] {
				return fmt.Errorf("%s owns %s, which is not there", n.name, c.tp)
			}
		}
	}
	if len(have) != len(want) {
		return fmt.Errorf("%d of %d partitions have an owner", len(have), len(want))
	}
	return nil
}

// complete checks at the end that everything was processed and committed, and repeated only where it may be.
func (w *world) complete() {
	l := &w.ledger
	for _, p := range w.topics.parts() {
		if end := w.topics.end[p]; l.frontier[p] < end {
			w.Fail("record %d of %d of partition %d (topic %s) was never processed", l.frontier[p], end, p.index, p.id)
		} else if l.committed[p] != end {
			w.Fail("all %d records of partition %d (topic %s) are processed, %d are committed", end, p.index, p.id, l.committed[p])
		}
	}
	var list []part
	for p := range l.repeats {
		list = append(list, p)
	}
	for _, p := range sortParts(list) {
		if !l.bad[p] {
			w.Fail("record %d of partition %d (topic %s) was processed twice, and no claim on it ended badly (clean %t)", l.repeats[p], p.index, p.id, w.menu.clean)
		}
	}
}
