package assignor

// Range gives each topic's partitions to its subscribers in contiguous ranges. Topics with equally many partitions and the
// same subscribers are cut alike, so that partition n of each goes to the same member. Static members come first, by
// instance id, so that their ranges do not depend on member ids that change with a restart.
func Range(s *Spec) map[string]Partitions {
	result := make(map[string]Partitions, len(s.Members))
	for i := range s.Members {
		result[s.Members[i].ID] = make(Partitions)
	}
	subscribed := make([]map[int]bool, 0)
	topics := s.topics()
	index := make(map[[16]byte]int, len(topics))
	for i, t := range topics {
		index[t] = i
		subscribed = append(subscribed, make(map[int]bool))
	}
	for i := range s.Members {
		for _, t := range s.Members[i].Topics {
			if n, ok := index[t]; ok {
				subscribed[n][i] = true
			}
		}
	}
	order := s.ordered()
	for n, t := range topics {
		members := int32(len(subscribed[n]))
		if members == 0 {
			continue
		}
		quota, extra, next := s.Topics[t]/members, s.Topics[t]%members, int32(0)
		for _, i := range order {
			if !subscribed[n][i] {
				continue
			}
			take := quota
			if extra > 0 {
				take++
				extra--
			}
			if take > 0 {
				result[s.Members[i].ID][t] = span(next, next+take)
			}
			next += take
		}
	}
	return result
}

func span(from, to int32) []int32 {
	s := make([]int32, 0, to-from)
	for p := from; p < to; p++ {
		s = append(s, p)
	}
	return s
}
