package timeline

import (
	"math/bits"
	"slices"
)

// Edit collects a batch of changes to a Map. It copies a node when it first changes it and writes in place after
// that. One goroutine owns an Edit; the Map it came from stays readable by all.
type Edit[K comparable, V any] struct {
	m     Map[K, V]
	owner *owner
}

// Edit starts a batch of changes.
func (m Map[K, V]) Edit() *Edit[K, V] { return &Edit[K, V]{m: m, owner: new(owner)} }

// Map returns the changed map. The Edit may go on afterwards: what it then changes is copied again, so the returned
// map stays as it is.
func (e *Edit[K, V]) Map() Map[K, V] {
	e.owner = new(owner)
	return e.m
}

// Len is the number of keys as of now.
func (e *Edit[K, V]) Len() int { return e.m.n }

// Get reads through the changes made so far.
func (e *Edit[K, V]) Get(key K) (V, bool) { return e.m.Get(key) }

// Set gives key the value.
func (e *Edit[K, V]) Set(key K, value V) {
	h := e.m.hash(key)
	if e.m.root == nil {
		e.m.root = &node[K, V]{owner: e.owner}
	}
	root, added := e.set(e.m.root, 0, slot[K, V]{hash: h, key: key, value: value})
	e.m.root = root
	if added {
		e.m.n++
	}
}

// Delete removes key; it reports whether it was there.
func (e *Edit[K, V]) Delete(key K) bool {
	if _, ok := e.m.Get(key); !ok {
		return false // nothing is copied for a key that is not there
	}
	root := e.delete(e.m.root, 0, e.m.hash(key), key)
	if len(root.slots) == 0 {
		root = nil
	}
	e.m.root = root
	e.m.n--
	return true
}

// own returns n itself if this edit made it, else a copy that it may write into.
func (e *Edit[K, V]) own(n *node[K, V]) *node[K, V] {
	if n.owner == e.owner {
		return n
	}
	return &node[K, V]{owner: e.owner, bitmap: n.bitmap, slots: slices.Clone(n.slots)}
}

func (e *Edit[K, V]) set(n *node[K, V], shift int, leaf slot[K, V]) (*node[K, V], bool) {
	n = e.own(n)
	bit := uint32(1) << (leaf.hash >> shift & levelMask)
	at := bits.OnesCount32(n.bitmap & (bit - 1))
	if n.bitmap&bit == 0 {
		n.bitmap |= bit
		n.slots = slices.Insert(n.slots, at, leaf)
		return n, true
	}
	s := &n.slots[at]
	if s.child != nil {
		child, added := e.set(s.child, shift+levelBits, leaf)
		s.child = child
		return n, added
	}
	if s.hash == leaf.hash {
		return n, s.put(leaf)
	}
	// Two hashes share the bits so far: push the old leaf one level down, beside the new one. They differ somewhere
	// in 64 bits, so this ends within 13 levels.
	child, _ := e.set(&node[K, V]{owner: e.owner}, shift+levelBits, *s)
	child, _ = e.set(child, shift+levelBits, leaf)
	n.slots[at] = slot[K, V]{child: child}
	return n, true
}

// put stores leaf in a slot of the same hash; it reports whether the key is new.
func (s *slot[K, V]) put(leaf slot[K, V]) bool {
	if s.key == leaf.key {
		s.value = leaf.value
		return false
	}
	s.collided = slices.Clone(s.collided) // may be shared with an older version of the node
	for i := range s.collided {
		if s.collided[i].key == leaf.key {
			s.collided[i].value = leaf.value
			return false
		}
	}
	s.collided = append(s.collided, entry[K, V]{leaf.key, leaf.value})
	return true
}

// delete removes a key that is known to be there, and the branches that become empty.
func (e *Edit[K, V]) delete(n *node[K, V], shift int, h uint64, key K) *node[K, V] {
	n = e.own(n)
	bit := uint32(1) << (h >> shift & levelMask)
	at := bits.OnesCount32(n.bitmap & (bit - 1))
	s := &n.slots[at]
	if s.child != nil {
		s.child = e.delete(s.child, shift+levelBits, h, key)
		if len(s.child.slots) > 0 {
			return n
		}
	} else if len(s.collided) > 0 {
		s.remove(key)
		return n
	}
	n.bitmap &^= bit
	n.slots = slices.Delete(n.slots, at, at+1)
	return n
}

func (s *slot[K, V]) remove(key K) {
	rest := slices.Clone(s.collided)
	if s.key == key {
		s.key, s.value = rest[0].key, rest[0].value
		rest = rest[1:]
	} else {
		rest = slices.DeleteFunc(rest, func(e entry[K, V]) bool { return e.key == key })
	}
	s.collided = rest
}
