package machine

import (
	"math"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// FetchPart is one partition of a fetch request.
type FetchPart struct {
	TopicPartition
	TopicID      wire.UUID // zero when the broker is too old to have ids
	Offset       int64
	LeaderEpoch  int32 // current leader epoch as we know it, -1 unknown
	FetchedEpoch int32 // epoch of the last batch before Offset, -1 unknown
	MaxBytes     int32

	generation uint32 // of the partition when the request was made: an older answer is void
}

// same tells whether b asks the broker for nothing that a has not asked already.
func (a FetchPart) same(b FetchPart) bool {
	return a.Offset == b.Offset && a.LeaderEpoch == b.LeaderEpoch && a.FetchedEpoch == b.FetchedEpoch &&
		a.MaxBytes == b.MaxBytes && a.TopicID == b.TopicID
}

// Forgotten is a partition that an incremental request takes out of the session.
type Forgotten struct {
	TopicPartition
	TopicID wire.UUID
}

// Fetch session ids and epochs (KIP-227).
//
//	id 0, epoch  0   make a session
//	id 0, epoch -1   no session wanted
//	id n, epoch  0   close n and make another
//	id n, epoch -1   close n
//	id n, epoch  e   go on; e grows by one with each request, and wraps from the largest int32 to 1
const (
	noSession    int32 = 0
	epochInitial int32 = 0
	epochFinal   int32 = -1
)

// session is what one broker and we agree on: which partitions are fetched, from where. It is also the only
// place that knows what an answer of partitions is an answer to, so it exists for brokers that give no session
// id as well; then every request is a full one.
type session struct {
	id, epoch int32
	byID      bool // its partitions are named by topic id
	parts     map[TopicPartition]FetchPart
	names     map[wire.UUID]string
}

func newSession() *session {
	return &session{parts: map[TopicPartition]FetchPart{}, names: map[wire.UUID]string{}}
}

// next is the request that makes the broker fetch exactly want. What the broker knows already is left out of
// it, unless the session starts with this request.
func (s *session) next(want []FetchPart) (id, epoch int32, send []FetchPart, forget []Forgotten) {
	byID := usesIDs(want)
	if byID != s.byID && s.epoch != epochInitial {
		s.epoch = epochInitial // a session speaks names or ids for all its life
	}
	s.byID = byID
	full := s.epoch == epochInitial
	old := s.parts
	s.parts = make(map[TopicPartition]FetchPart, len(want))
	clear(s.names)
	for _, w := range want {
		was, known := old[w.TopicPartition]
		if known && was.TopicID != w.TopicID {
			forget = append(forget, Forgotten{w.TopicPartition, was.TopicID})
			known = false
		}
		if full || !known || !was.same(w) {
			send = append(send, w)
		}
		s.parts[w.TopicPartition] = w
		s.names[w.TopicID] = w.Topic
		delete(old, w.TopicPartition)
	}
	if full {
		return s.id, epochInitial, send, nil
	}
	return s.id, s.epoch, send, append(forget, leftovers(old)...)
}

// leftovers lists the partitions of a map in an order that does not depend on the map.
func leftovers(m map[TopicPartition]FetchPart) []Forgotten {
	out := make([]Forgotten, 0, len(m))
	for tp, p := range m {
		out = append(out, Forgotten{tp, p.TopicID})
	}
	sortBy(out, func(a, b Forgotten) bool { return less(a.TopicPartition, b.TopicPartition) })
	return out
}

func usesIDs(want []FetchPart) bool {
	for _, w := range want {
		if w.TopicID.IsZero() {
			return false
		}
	}
	return true
}

// received moves on after an answer without an error at its top. id is the session the broker gave, 0 for none.
func (s *session) received(id int32) {
	switch {
	case id == noSession:
		s.id, s.epoch = noSession, epochInitial
	case s.epoch == math.MaxInt32:
		s.id, s.epoch = id, 1
	default:
		s.id, s.epoch = id, s.epoch+1
	}
}

// refused moves on after an answer with an error at its top. It tells whether the error was about the session
// itself, which is nobody's fault and needs no back-off the first time.
func (s *session) refused(code errcode.Code) (about bool) {
	s.epoch = epochInitial
	switch code {
	case errcode.FetchSessionIdNotFound:
		s.id = noSession
		return true
	case errcode.InvalidFetchSessionEpoch, errcode.FetchSessionTopicIdError:
		return true
	}
	return false
}

// lost moves on when there was no answer: whether the broker saw the request is unknown, so the session is
// closed by the request that makes the next one.
func (s *session) lost() { s.epoch = epochInitial }

// part finds what an answer of a partition is an answer to.
func (s *session) part(topic string, id wire.UUID, partition int32) (FetchPart, bool) {
	if topic == "" {
		topic = s.names[id]
	}
	p, ok := s.parts[TopicPartition{Topic: topic, Partition: partition}]
	return p, ok
}
