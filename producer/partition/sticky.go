package partition

// Load is what the sticky partitioner may consider about one partition when it moves on.
type Load struct {
	Partition int32
	// Queued is the number of batches that wait for its broker.
	Queued int
	// Rack is that of the leader, empty when unknown.
	Rack string
	// Stalled: its broker took nothing for partitioner.availability.timeout.ms although there was something.
	Stalled bool
}

// Next draws the partition that records without a key go to from now on. u is uniform in [0,1). When adaptive,
// a partition is the more likely the shorter its queue is (KIP-794): its weight is one more than the longest
// queue minus its own. Stalled partitions are left out, and with rack set those led elsewhere, unless nothing
// is left then (partitioner.rack.aware, KIP-1123). loads must not be empty; it may be reordered.
func Next(loads []Load, u float64, adaptive bool, rack string) int32 {
	loads = narrow(loads, func(l Load) bool { return !l.Stalled })
	if rack != "" {
		loads = narrow(loads, func(l Load) bool { return l.Rack == rack })
	}
	if !adaptive {
		return loads[int(u*float64(len(loads)))].Partition
	}
	longest := 0
	for _, l := range loads {
		longest = max(longest, l.Queued)
	}
	total := 0
	for _, l := range loads {
		total += longest + 1 - l.Queued
	}
	at := int(u * float64(total))
	for _, l := range loads {
		if at -= longest + 1 - l.Queued; at < 0 {
			return l.Partition
		}
	}
	return loads[len(loads)-1].Partition
}

// narrow keeps those that fit, or all when none does.
func narrow(loads []Load, fits func(Load) bool) []Load {
	n := 0
	for i, l := range loads {
		if fits(l) {
			loads[i], loads[n] = loads[n], loads[i]
			n++
		}
	}
	if n == 0 {
		return loads
	}
	return loads[:n]
}
