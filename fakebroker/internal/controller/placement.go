package controller

import (
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Ids of log dirs that say something about a replica instead of naming a dir (KIP-858).
var (
	dirUnassigned = wire.UUID{}      // the broker chooses
	dirMigrating  = wire.UUID{15: 2} // the broker has never told its dirs
)

// place chooses brokers for n new partitions. Brokers are put in a ring in which neighbours are of different racks as
// far as possible; partition p is led by the (start+p)-th and followed by those after it, the distance growing with each
// turn of the ring so that a broker's followers are spread over all others. Fenced brokers only follow, and only where
// the active ones are too few.
func (c *Controller) place(i *image.Image, n int, factor int) ([][]int32, string) {
	active, fenced := usable(i)
	switch {
	case len(active) == 0:
		return nil, "All brokers are currently fenced or have all their log directories cordoned."
	case factor > len(active)+len(fenced):
		return nil, "The target replication factor of " + itoa(factor) + " cannot be reached because only " +
			itoa(len(active)+len(fenced)) + " broker(s) are registered or some brokers have all their log directories cordoned."
	}
	start := c.opts.Rand(len(active))
	all := make([]int32, 0, n*factor)
	placed := make([][]int32, n)
	for p := range placed {
		from := len(all)
		lead := (start + p) % len(active)
		all = append(all, active[lead])
		turn := p / len(active)
		for k := 1; k < factor && k < len(active); k++ {
			// Every other broker once, beginning turn places further on.
			step := (turn+k-1)%(len(active)-1) + 1
			all = append(all, active[(lead+step)%len(active)])
		}
		for k := 0; len(all)-from < factor; k++ {
			all = append(all, fenced[(p+k)%len(fenced)])
		}
		placed[p] = all[from:len(all):len(all)]
	}
	return placed, ""
}

// usable returns the brokers that take new replicas, active and fenced ones, each as a ring over the racks.
func usable(i *image.Image) (active, fenced []int32) {
	var a, f []*image.Broker
	for _, b := range i.Brokers() {
		switch {
		case len(b.Directories) > 0 && allCordoned(b):
		case b.Active():
			a = append(a, b)
		default:
			f = append(f, b)
		}
	}
	return ring(a), ring(f)
}

func allCordoned(b *image.Broker) bool {
	for _, d := range b.Directories {
		if !slices.Contains(b.CordonedDirectories, d) {
			return false
		}
	}
	return true
}

// ring interleaves the racks: one broker of each rack in turn, racks and brokers in ascending order.
func ring(brokers []*image.Broker) []int32 {
	byRack := make(map[string][]int32)
	var racks []string
	for _, b := range brokers {
		rack := ""
		if b.Rack != nil {
			rack = "r" + *b.Rack // "" is no rack, which is not the rack ""
		}
		if byRack[rack] == nil {
			racks = append(racks, rack)
		}
		byRack[rack] = append(byRack[rack], b.ID)
	}
	slices.Sort(racks)
	ids := make([]int32, 0, len(brokers))
	for turn := 0; len(ids) < len(brokers); turn++ {
		for _, r := range racks {
			if turn < len(byRack[r]) {
				ids = append(ids, byRack[r][turn])
			}
		}
	}
	return ids
}

// directory is the log dir that a new replica on a broker is assigned to: the only one there is, else the broker's choice.
func directory(i *image.Image, broker int32) wire.UUID {
	b := i.Broker(broker)
	switch {
	case b == nil || len(b.Directories) == 0:
		return dirMigrating
	case len(b.Directories) == 1:
		return b.Directories[0]
	}
	return dirUnassigned
}

// newPartition is the registration of a new partition on these replicas: those active are in sync, the first of them
// leads. It returns nil when none is active.
func newPartition(i *image.Image, id int32, replicas []int32) *image.Partition {
	p := &image.Partition{ID: id, Replicas: replicas, Directories: make([]wire.UUID, len(replicas))}
	for n, r := range replicas {
		p.Directories[n] = directory(i, r)
		if b := i.Broker(r); b != nil && b.Active() {
			p.ISR = append(p.ISR, r)
		}
	}
	if len(p.ISR) == 0 {
		return nil
	}
	p.Leader = p.ISR[0]
	return p
}

// checkAssignment checks a manual assignment; factor 0 accepts any number of replicas.
func checkAssignment(i *image.Image, replicas []int32, factor int) apiError {
	if len(replicas) == 0 {
		return refuse(errcode.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Sorted(slices.Values(replicas))
	for n, id := range sorted {
		if i.Broker(id) == nil {
			return refuse(errcode.InvalidReplicaAssignment,
				"The manual partition assignment includes broker %d, but no such broker is registered.", id)
		}
		if n > 0 && sorted[n-1] == id {
			return refuse(errcode.InvalidReplicaAssignment,
				"The manual partition assignment includes the broker %d more than once.", id)
		}
	}
	if factor != 0 && len(replicas) != factor {
		return refuse(errcode.InvalidReplicaAssignment,
			"The manual partition assignment includes a partition with %d replica(s), but this is not consistent with previous partitions, which have %d replica(s).",
			len(replicas), factor)
	}
	return apiError{}
}
