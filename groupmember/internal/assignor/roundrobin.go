package assignor

import "slices"

// Assign deals the partitions of all topics, in order, to the members in turn; members that do not subscribe to a topic
// are passed over.
func (RoundRobin) Assign(topics []topicRacks, members []subscription) (map[string][]partition, error) {
	out, ring := empty(members), ordered(members)
	turn := 0
	for _, t := range byName(topics) {
		if !slices.ContainsFunc(ring, func(m subscription) bool { return slices.Contains(m.Topics, t.Name) }) {
			continue
		}
		for p := range t.Racks {
			for !slices.Contains(ring[turn].Topics, t.Name) {
				turn = (turn + 1) % len(ring)
			}
			id := ring[turn].MemberID
			out[id] = append(out[id], partition{Topic: t.Name, Partition: int32(p)})
			turn = (turn + 1) % len(ring)
		}
	}
	return out, nil
}
