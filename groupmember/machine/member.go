package machine

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client/machine"
)

// Config is what a Member needs to know; package groupmember fills it from its own Config.
type Config struct {
	GroupID    string
	InstanceID string // empty for a dynamic member
	// MemberID is what the member calls itself with the consumer protocol: a random UUID in Kafka's text form.
	MemberID string
	Topics   []string
	Regex    string
	Rack     string

	Protocol       Protocol
	Assignors      []Assignor // classic
	RemoteAssignor string     // consumer, empty for the coordinator's choice

	Session   time.Duration // session.timeout.ms
	Heartbeat time.Duration // heartbeat.interval.ms
	Rebalance time.Duration // max.poll.interval.ms

	RetryBackoff    time.Duration
	RetryBackoffMax time.Duration
	Seed            uint64 // of the jitter of back-offs
}

// rules is what differs between the two protocols. Its methods run inside Member.Step.
type rules interface {
	// where is the state while the coordinator is known and nothing special is under way.
	where() State
	// advance does what can be done now; it is called after every event.
	advance(now time.Time, eff *Effects)
	// answered takes the answer to a request that is still wanted.
	answered(now time.Time, req *Request, resp any, eff *Effects)
	// interrupted: the coordinator is gone, and with it the requests in flight.
	interrupted()
	// reset: the membership is void.
	reset()
	// subscribed: what is wanted changed.
	subscribed()
	// rejoin: a rebalance is asked for.
	rejoin(reason string)
	// topology: there is a new view.
	topology(eff *Effects)
	// farewell makes the request that says good-bye, nil if none is needed.
	farewell(stay bool) *Request
	// owes tells that others wait for what this member has.
	owes() bool
	// due is the next time at which advance does something, beside what Member.Deadline knows.
	due(earliest func(time.Time))
}

// Member decides what a member of a group does. One owner calls Step, with a time that does not run backwards; it is
// not safe for concurrent use.
type Member struct {
	cfg     Config
	rules   rules
	backoff machine.Backoff
	rand    machine.Rand

	state  State
	reason string // of the next transition
	view   View   // nil before the first TopologyChanged

	started, leaving, stay, stalled, ended bool

	coordinator int32 // -1 unknown
	finding     bool  // a look-up is under way
	failures    int   // in a row
	retryAt     time.Time
	inFlight    [kinds]*Request

	topics   []string
	regex    string
	resolved bool // topics are known, also with a regex

	generation Generation
	alive      time.Time // when the coordinator last heard of us for certain; zero when not a member
	nextBeat   time.Time
	owned      []TopicPartition // what the owner has, sorted
	revoking   *Revocation      // waits for the owner
	serial     uint64
	began      time.Time // of the rebalance under way, zero if none
	leaveBy    time.Time // the farewell is sent and answered by then or not at all; zero before it
	again      time.Time // a step was cut short and is to go on at once; else zero
}

// New makes a member that does nothing before Started.
func New(cfg Config) *Member {
	m := &Member{
		cfg: cfg, backoff: machine.Backoff{First: cfg.RetryBackoff, Most: cfg.RetryBackoffMax}, rand: machine.NewRand(cfg.Seed),
		coordinator: -1, topics: slices.Clone(cfg.Topics), regex: cfg.Regex,
	}
	if cfg.Protocol == Classic {
		m.useClassic()
	} else {
		m.useConsumer()
	}
	return m
}

func (m *Member) useClassic() {
	m.generation = Generation{ID: NoGeneration, InstanceID: m.cfg.InstanceID, Protocol: Classic}
	m.resolved = m.regex == "" // else the owner looks for the topics
	m.rules = newClassic(m)
}

func (m *Member) useConsumer() {
	m.generation = Generation{ID: NoGeneration, MemberID: m.cfg.MemberID, InstanceID: m.cfg.InstanceID, Protocol: Consumer}
	m.resolved = true // the coordinator matches the regex
	m.rules = newConsumer(m)
}

// State is where the member is.
func (m *Member) State() State { return m.state }

// Generation identifies the membership.
func (m *Member) Generation() Generation { return m.generation }

// Owned is what the owner has, sorted; not to be written to.
func (m *Member) Owned() []TopicPartition { return m.owned }

// Topics is what is subscribed to by name, sorted after the first change; not to be written to.
func (m *Member) Topics() []string { return m.topics }

// Coordinator is the broker that coordinates the group, -1 when unknown.
func (m *Member) Coordinator() int32 { return m.coordinator }

// Step takes one event and says what is to be done about it.
func (m *Member) Step(now time.Time, ev Event) Effects {
	var eff Effects
	if m.ended {
		return eff
	}
	m.again = time.Time{}
	m.take(now, ev, &eff)
	if m.started && !m.ended {
		m.advance(now, &eff)
	}
	if to := m.where(); to != m.state {
		eff.Transitions = append(eff.Transitions, Transition{From: m.state, To: to, Generation: m.generation, Reason: m.reason, At: now})
		m.state = to
	}
	return eff
}

// take applies the event.
func (m *Member) take(now time.Time, ev Event, eff *Effects) {
	switch ev := ev.(type) {
	case Started:
		m.started, m.reason = true, "started"
		eff.Track = m.wanted()
	case Subscribed:
		m.subscribe(ev, eff)
	case Revoked:
		m.confirmed(ev)
	case Rejoin:
		m.rules.rejoin(ev.Reason)
	case Suspected:
		m.nextBeat = now
	case Stall:
		m.stall(now, eff)
	case Resume:
		if m.stalled {
			m.stalled, m.reason = false, "resumed"
		}
	case Leave:
		if !m.leaving {
			m.leaving, m.reason = true, "asked to leave"
			m.stay = ev.Stay && m.cfg.InstanceID != "" && !m.rules.owes()
		}
	case Abandon:
		m.end(nil, ErrClosed, eff)
	case CoordinatorFound:
		m.finding, m.coordinator, m.reason = false, ev.Broker, "coordinator found"
	case CoordinatorFailed:
		m.coordinatorFailed(now, ev, eff)
	case Answered:
		if m.accept(ev.Request) {
			m.rules.answered(now, ev.Request, ev.Response, eff)
		}
	case Failed:
		if m.accept(ev.Request) {
			m.failed(now, ev, eff)
		}
	case TopologyChanged:
		m.view = ev.View
		m.rules.topology(eff)
	}
}

// accept takes an answer out of flight; false when nobody waits for it any more.
func (m *Member) accept(req *Request) bool {
	if m.inFlight[req.kind] != req {
		return false
	}
	m.inFlight[req.kind] = nil
	return true
}

// subscribe changes what is wanted.
func (m *Member) subscribe(ev Subscribed, eff *Effects) {
	topics := slices.Compact(slices.Sorted(slices.Values(ev.Topics)))
	if m.resolved && ev.Regex == m.regex && slices.Equal(topics, slices.Compact(slices.Sorted(slices.Values(m.topics)))) {
		return
	}
	m.topics, m.regex, m.resolved = topics, ev.Regex, true
	m.rules.subscribed()
	eff.Track = m.wanted()
}

// wanted is what metadata is needed of because of the subscription.
func (m *Member) wanted() []string { return append([]string{}, m.topics...) }

// where is the state that follows from everything.
func (m *Member) where() State {
	switch {
	case m.ended:
		return Ended
	case m.leaving:
		return Leaving
	case m.stalled:
		return Stalled
	case !m.started:
		return Unknown
	case m.coordinator < 0:
		return FindingCoordinator
	}
	return m.rules.where()
}

// advance does what can be done now, whatever the last event was. What decides is the state alone, so an event that
// came early, late or twice cannot make a step be left out.
func (m *Member) advance(now time.Time, eff *Effects) {
	if m.expired(now) {
		m.lose(ErrLost, "no heartbeat within session.timeout.ms", eff)
		if c, ok := m.rules.(*consumer); ok {
			c.former = true
		}
	}
	if m.leaving && m.depart(now, eff) {
		return
	}
	if m.stalled {
		return
	}
	if m.coordinator < 0 {
		if !m.finding && !now.Before(m.retryAt) {
			m.finding, eff.FindCoordinator = true, true
		}
		return
	}
	m.rules.advance(now, eff)
}

// send puts a request into flight.
func (m *Member) send(now time.Time, req *Request, eff *Effects) {
	req.Broker, req.sent, req.generation = m.coordinator, now, m.generation
	m.inFlight[req.kind] = req
	eff.Send = append(eff.Send, req)
}

// Deadline is when Woke has to be stepped next; zero when only events can change something.
func (m *Member) Deadline() time.Time {
	var out time.Time
	earliest := func(t time.Time) {
		if !t.IsZero() && (out.IsZero() || t.Before(out)) {
			out = t
		}
	}
	if m.ended || !m.started {
		return out
	}
	earliest(m.again)
	if !m.alive.IsZero() {
		earliest(m.alive.Add(m.cfg.Session))
	}
	earliest(m.leaveBy)
	if m.stalled || m.inFlight[kindLeave] != nil {
		return out
	}
	if m.coordinator < 0 {
		if !m.finding {
			earliest(m.retryAt)
		}
		return out
	}
	m.rules.due(earliest)
	return out
}
