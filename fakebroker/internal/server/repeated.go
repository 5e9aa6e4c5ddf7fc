package server

// Requests may name a topic or a partition twice. Apache Kafka collects them in maps, by topic and partition: a topic
// named twice is answered once, and of a partition named twice the last mention counts. The functions here do that, and
// leave everything else, in practice every request, as it is.

// mergeTopics joins entries of one topic into the first of them; absorb moves what the later one names.
func mergeTopics[T any, K comparable](topics []T, key func(*T) K, absorb func(into, from *T)) []T {
	if distinct(len(topics), func(i int) K { return key(&topics[i]) }) {
		return topics
	}
	var merged []T
	at := make(map[K]int)
	for i := range topics {
		k := key(&topics[i])
		if j, ok := at[k]; ok {
			absorb(&merged[j], &topics[i])
			continue
		}
		at[k] = len(merged)
		merged = append(merged, topics[i])
	}
	return merged
}

// lastOfEach keeps the last mention of each partition, in the place of the first.
func lastOfEach[P any](parts []P, index func(*P) int32) []P {
	if distinct(len(parts), func(i int) int32 { return index(&parts[i]) }) {
		return parts
	}
	var kept []P
	at := make(map[int32]int)
	for i := range parts {
		k := index(&parts[i])
		if j, ok := at[k]; ok {
			kept[j] = parts[i]
			continue
		}
		at[k] = len(kept)
		kept = append(kept, parts[i])
	}
	return kept
}

// distinct reports whether n keys all differ. Few keys are compared with each other, which costs no memory.
func distinct[K comparable](n int, key func(i int) K) bool {
	if n <= 16 {
		for i := 1; i < n; i++ {
			for j := range i {
				if key(i) == key(j) {
					return false
				}
			}
		}
		return true
	}
	seen := make(map[K]struct{}, n)
	for i := range n {
		seen[key(i)] = struct{}{}
	}
	return len(seen) == n
}
