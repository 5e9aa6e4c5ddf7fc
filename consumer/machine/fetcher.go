package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// Config is what a Fetcher needs to know; package consumer fills it from its own Config.
type Config struct {
	MaxBytes          int32         // fetch.max.bytes: of one answer
	MaxPartitionBytes int32         // max.partition.fetch.bytes: of one partition in one answer
	MaxWait           time.Duration // fetch.max.wait.ms
	Reset             Where         // auto.offset.reset
	Adopt             bool          // go on with a topic that took the place of the old one
	ReplicaExpiry     time.Duration // how long a preferred replica is used before the leader is asked again
	APITimeout        time.Duration // a partition without progress for so long is reported (default.api.timeout.ms)
	Standstill        time.Duration // a last stable offset that stands still for so long is told of; zero: never
	RetryBackoff      time.Duration
	RetryBackoffMax   time.Duration
	Seed              uint64 // of the jitter of back-offs
}

// View is a picture of the cluster. It does not change; a new one arrives with TopologyChanged.
type View interface {
	// Topic is what is known of a topic; known is false before any answer named it.
	Topic(name string) (id wire.UUID, code errcode.Code, known bool)
	// Leader is the leader of a partition; Broker is -1 when there is none.
	Leader(tp TopicPartition) Leader
	// Broker tells whether the cluster has a broker of that id at present.
	Broker(id int32) bool
}

// Leader is who leads a partition, since when.
type Leader struct {
	Broker int32
	Epoch  int32 // -1 unknown
	Code   errcode.Code
}

// Event is something that happened; see the types that implement it.
type Event interface{ event() }

// What the application asks for. A generation is returned in Effects.Voided for each partition whose buffered
// data is void from now on.
type (
	// Added starts reading a partition. It is ignored if the partition is read already.
	Added struct {
		TopicPartition
		Start Where
	}
	// Removed stops reading a partition.
	Removed struct{ TopicPartition }
	// Sought goes on elsewhere; it also takes a halted partition up again.
	Sought struct {
		TopicPartition
		To Where
	}
	// Paused and Resumed: a paused partition keeps its position and is not fetched.
	Paused  struct{ TopicPartition }
	Resumed struct{ TopicPartition }
	// Drained: the application is done with a delivered chunk, or with a delivery without data.
	Drained struct {
		TopicPartition
		Generation uint32
		Bytes      int
	}
	// Broken: a delivered chunk cannot be read from Position on.
	Broken struct {
		TopicPartition
		Generation uint32
		Position   Position
		Err        error
	}
	// Closed ends everything; only requests that close sessions come out.
	Closed struct{}
	// Woke: time to look what can be sent. The driver steps it at Deadline and after any Effects with Wake set.
	Woke struct{}
)

// What the cluster says.
type (
	// TopologyChanged brings a new picture of the cluster.
	TopologyChanged struct{ View View }
	// FetchReceived is the answer to the one fetch in flight at that broker. Parts are in the order of the answer.
	FetchReceived struct {
		Broker    int32
		Code      errcode.Code // of the whole answer
		SessionID int32
		Parts     []FetchedPart
	}
	// FetchFailed: the fetch in flight at that broker has no answer.
	FetchFailed struct {
		Broker int32
		Err    error
	}
	// OffsetsReceived answers a Lookup of kind ListOffsets; Found has one entry for each of Lookup.Parts. Err is
	// set, and Found empty, when there was no answer.
	OffsetsReceived struct {
		Lookup *Lookup
		Found  []FoundOffset
		Err    error
	}
	// EpochEndsReceived answers a Lookup of kind OffsetForLeaderEpoch in the same way.
	EpochEndsReceived struct {
		Lookup *Lookup
		Ends   []EpochEnd
		Err    error
	}
)

func (Added) event()             {}
func (Removed) event()           {}
func (Sought) event()            {}
func (Paused) event()            {}
func (Resumed) event()           {}
func (Drained) event()           {}
func (Broken) event()            {}
func (Closed) event()            {}
func (Woke) event()              {}
func (TopologyChanged) event()   {}
func (FetchReceived) event()     {}
func (FetchFailed) event()       {}
func (OffsetsReceived) event()   {}
func (EpochEndsReceived) event() {}

// Effects is what a step wants done, in this order: Voided first, so that nothing old is handed out after what
// is delivered; Deliver; then the requests. Nothing is sent unless a Woke was stepped.
type Effects struct {
	Voided  []Voided   // partitions whose buffered data must not be handed out any more
	Deliver []Delivery // for the application, after what was delivered before
	Notices []Notice
	Track   []string // topics to keep metadata of
	Untrack []string
	Leaders []LeaderHint // leaders that answers named (KIP-951)
	Refresh bool         // ask for new metadata
	Lookups []*Lookup
	Fetches []*Fetch
	Wake    bool // step Woke soon
}

// Voided says that data of older generations than Generation is void.
type Voided struct {
	TopicPartition
	Generation uint32
}

// Delivery is one of: data (Chunk not nil), an error of the partition (Failure), a new position (Moved).
type Delivery struct {
	TopicPartition
	Generation uint32
	Chunk      *Chunk
	Failure    *Failure
	Moved      *Position
}

// LeaderHint is what an answer said about a new leader.
type LeaderHint struct {
	TopicPartition
	TopicID wire.UUID
	Leader  Leader
}

// Fetch is one fetch request. At most one is in flight for a broker.
type Fetch struct {
	Broker    int32
	SessionID int32
	Epoch     int32
	MaxBytes  int32 // the answer is not to be larger, except by the rest of one batch
	MaxWait   time.Duration
	ByID      bool // all parts have topic ids; if not, a version before 13 must be used
	Final     bool // only closes the session; its answer is of no interest
	Parts     []FetchPart
	Forget    []Forgotten
}

// Fetcher reads a set of partitions. One owner calls Step, with a time that does not run backwards; it is not
// safe for concurrent use.
type Fetcher struct {
	cfg     Config
	backoff machine.Backoff
	rand    machine.Rand
	parts   []*partition // in order of addition
	byName  map[TopicPartition]*partition
	topics  map[string]int // number of partitions read of each topic
	brokers []*broker      // by id
	view    View           // nil before the first TopologyChanged
	served  uint64         // counts answers with data, for fairness
	closed  bool
}

// broker is what the fetcher knows of one broker.
type broker struct {
	id       int32
	session  *session
	inFlight bool
	retryAt  time.Time // not before, after a failure or a throttle
	failures int       // in a row
}

// New makes a fetcher that reads nothing yet.
func New(cfg Config) *Fetcher {
	return &Fetcher{
		cfg:     cfg,
		backoff: machine.Backoff{First: cfg.RetryBackoff, Most: cfg.RetryBackoffMax},
		rand:    machine.NewRand(cfg.Seed),
		byName:  map[TopicPartition]*partition{},
		topics:  map[string]int{},
	}
}

// Step takes one event and says what is to be done about it.
func (f *Fetcher) Step(now time.Time, ev Event) Effects {
	var eff Effects
	if f.closed {
		return eff
	}
	switch ev := ev.(type) {
	case Woke:
		f.plan(now, &eff)
	case FetchReceived:
		f.fetched(now, ev, &eff)
	case Drained:
		f.drained(ev, &eff)
	case Added:
		f.add(now, ev, &eff)
	case Removed:
		f.remove(ev.TopicPartition, &eff)
	case Sought:
		f.seek(ev, &eff)
	case Paused:
		f.pause(ev.TopicPartition, true, &eff)
	case Resumed:
		f.pause(ev.TopicPartition, false, &eff)
	case Broken:
		f.broken(now, ev, &eff)
	case TopologyChanged:
		f.topology(ev.View, &eff)
	case FetchFailed:
		f.fetchFailed(now, ev, &eff)
	case OffsetsReceived:
		f.offsets(now, ev, &eff)
	case EpochEndsReceived:
		f.epochEnds(now, ev, &eff)
	case Closed:
		f.close(&eff)
	}
	return eff
}

// broker finds or makes the state of a broker.
func (f *Fetcher) broker(id int32) *broker {
	i, ok := slices.BinarySearchFunc(f.brokers, id, func(b *broker, id int32) int { return cmp.Compare(b.id, id) })
	if !ok {
		f.brokers = slices.Insert(f.brokers, i, &broker{id: id, session: newSession()})
	}
	return f.brokers[i]
}

func less(a, b TopicPartition) bool {
	if a.Topic != b.Topic {
		return a.Topic < b.Topic
	}
	return a.Partition < b.Partition
}

func sortBy[T any](s []T, before func(a, b T) bool) {
	slices.SortFunc(s, func(a, b T) int {
		switch {
		case before(a, b):
			return -1
		case before(b, a):
			return 1
		}
		return 0
	})
}
