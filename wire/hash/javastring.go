package hash

// JavaString computes what Java's String.hashCode returns for s: over UTF-16 units, so that a character beyond the basic
// plane counts as its two surrogates. Invalid UTF-8 counts as U+FFFD.
func JavaString(s string) int32 {
	var h uint32
	for _, r := range s {
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + uint32(0xd800+r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + uint32(r)
	}
	return int32(h)
}

// CoordinatorPartition returns the partition of n that holds the state of a group id, transactional id or
// "group:topicId:partition" (share groups): __consumer_offsets, __transaction_state, __share_group_state. Its leader is
// the coordinator. n must be positive.
func CoordinatorPartition(key string, n int32) int32 {
	h := JavaString(key)
	switch {
	case h == -1<<31: // has no absolute value; Kafka's Utils.abs makes it 0
		h = 0
	case h < 0:
		h = -h
	}
	return h % n
}
