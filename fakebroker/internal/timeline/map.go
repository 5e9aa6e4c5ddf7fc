package timeline

import (
	"iter"
	"math/bits"
)

// The map is a hash array mapped trie: each level takes 5 bits of the hash, a node keeps only its used slots in a
// slice, and a bitmap says which of the 32 they are.
//
//	level 0   bitmap 1010…   slots [ leaf(k,v) | node ]
//	level 1                              └ bitmap … slots [ leaf | leaf ]
//
// Two keys whose 64-bit hashes are equal end in a collision leaf, a short list searched one by one.
const (
	levelBits = 5
	levelMask = 1<<levelBits - 1
)

// Map is an immutable map. The zero Map has no hash function and may only be replaced; make one with NewMap.
type Map[K comparable, V any] struct {
	root *node[K, V]
	n    int
	hash func(K) uint64
}

type node[K comparable, V any] struct {
	owner  *owner // the edit that may still write into this node; nil = shared for ever
	bitmap uint32
	slots  []slot[K, V]
}

// slot is either a branch (child != nil) or a leaf; collided holds further leaves of exactly the same hash.
type slot[K comparable, V any] struct {
	child    *node[K, V]
	hash     uint64
	key      K
	value    V
	collided []entry[K, V]
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// owner identifies one edit; it has a field because pointers to empty structs may be equal.
type owner struct{ _ byte }

// NewMap returns an empty map that places keys by hash, one of this package's functions as a rule.
func NewMap[K comparable, V any](hash func(K) uint64) Map[K, V] { return Map[K, V]{hash: hash} }

// Len is the number of keys.
func (m Map[K, V]) Len() int { return m.n }

// Get returns the value of key and whether it is there.
func (m Map[K, V]) Get(key K) (V, bool) {
	var zero V
	if m.root == nil {
		return zero, false
	}
	h := m.hash(key)
	n := m.root
	for shift := 0; ; shift += levelBits {
		bit := uint32(1) << (h >> shift & levelMask)
		if n.bitmap&bit == 0 {
			return zero, false
		}
		s := &n.slots[bits.OnesCount32(n.bitmap&(bit-1))]
		if s.child != nil {
			n = s.child
			continue
		}
		return s.get(h, key)
	}
}

func (s *slot[K, V]) get(h uint64, key K) (v V, ok bool) {
	if s.hash != h {
		return v, false
	}
	if s.key == key {
		return s.value, true
	}
	for i := range s.collided {
		if s.collided[i].key == key {
			return s.collided[i].value, true
		}
	}
	return v, false
}

// All walks the entries in hash order: the same for the same set of keys, in whatever order they were set (keys of
// equal hash excepted).
func (m Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		if m.root != nil {
			m.root.walk(yield)
		}
	}
}

func (n *node[K, V]) walk(yield func(K, V) bool) bool {
	for i := range n.slots {
		s := &n.slots[i]
		if s.child != nil {
			if !s.child.walk(yield) {
				return false
			}
			continue
		}
		if !yield(s.key, s.value) {
			return false
		}
		for _, e := range s.collided {
			if !yield(e.key, e.value) {
				return false
			}
		}
	}
	return true
}

// Set returns a map in which key has value. For more than one change use Edit.
func (m Map[K, V]) Set(key K, value V) Map[K, V] {
	e := m.Edit()
	e.Set(key, value)
	return e.Map()
}

// Delete returns a map without key.
func (m Map[K, V]) Delete(key K) Map[K, V] {
	e := m.Edit()
	e.Delete(key)
	return e.Map()
}
