package group

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/hash"
)

// State is the state of a group, in Kafka's words.
type State string

// The states of groups. A classic group is in the first four; a consumer group is Empty, Assigning, Reconciling or Stable.
//
// Transitions of a classic group (the causes are in history.go):
//
//	Empty                ─ first member joins ──────────────────────────────► PreparingRebalance
//	PreparingRebalance   ─ all have joined, or the join timer fires ────────► CompletingRebalance
//	PreparingRebalance   ─ nobody is left ──────────────────────────────────► Empty
//	CompletingRebalance  ─ the leader's assignment is in the log ───────────► Stable
//	CompletingRebalance  ─ a member joins, leaves or fails; sync timer ─────► PreparingRebalance
//	Stable               ─ a member joins, leaves, fails or changes; sync timer ► PreparingRebalance
//	(any)                ─ tombstone ───────────────────────────────────────► gone
const (
	Empty               State = "Empty"
	PreparingRebalance  State = "PreparingRebalance"
	CompletingRebalance State = "CompletingRebalance"
	Stable              State = "Stable"
	Assigning           State = "Assigning"
	Reconciling         State = "Reconciling"
	// Dead is what descriptions say of a group that does not exist.
	Dead State = "Dead"
)

// consumerProtocol is the protocol type of consumers; Kafka Connect and others have theirs.
const consumerProtocol = "consumer"

// A classicGroup is a group of the classic protocol: the members choose one protocol, one of them (the leader) makes the
// assignment, and the coordinator hands it out.
//
// Durable are generation, protocol, leader, and each member's metadata and assignment: what the last GroupMetadata record
// says. Who joins at the moment is not: after a restart members find out by their heartbeats and join again.
type classicGroup struct {
	state        State
	since        int64 // ms, when the state was entered
	generation   int32
	protocolType string // "" while nobody has joined
	protocol     string // chosen one; "" while there is none
	hasProtocol  bool
	leader       string // member id, "" for none

	members  []*classicMember // in order of joining; the first one that is there leads
	byID     map[string]*classicMember
	static   map[string]string // instance id -> member id
	pending  map[string]bool   // member ids that were given out and have not been used
	unsynced map[string]bool   // who still has to sync in this generation

	initial  bool // the rebalance under way began in Empty
	newcomer bool // somebody joined during the initial delay
	delayMs  int64
	counts   map[string]int // partitions of each subscribed topic at the last rebalance
}

// A protocol is one way of assigning that a member supports, with its metadata for it.
type protocol struct {
	name     string
	metadata []byte
}

// A classicMember is a member of a classic group.
type classicMember struct {
	id                   string
	instance             *string
	clientID, clientHost string
	rebalanceMs          int32
	sessionMs            int32
	protocols            []protocol
	assignment           []byte

	joining coordinator.Ticket // of a JoinGroup that waits
	syncing coordinator.Ticket // of a SyncGroup that waits
	isNew   bool               // its first JoinGroup has not been answered
}

func newClassicGroup() *classicGroup {
	return &classicGroup{
		state:    Empty,
		since:    -1,
		byID:     make(map[string]*classicMember),
		static:   make(map[string]string),
		pending:  make(map[string]bool),
		unsynced: make(map[string]bool),
	}
}

func (c *classicGroup) member(id string) *classicMember { return c.byID[id] }

// validate reports whether a member, named by id and perhaps by instance, is in the group (KIP-345): an instance that
// has another member id by now fences the old one.
func (c *classicGroup) validate(id string, instance *string) errcode.Code {
	if instance != nil {
		current, ok := c.static[*instance]
		switch {
		case !ok:
			return errcode.UnknownMemberId
		case current != id:
			return errcode.FencedInstanceId
		}
	}
	if c.byID[id] == nil {
		return errcode.UnknownMemberId
	}
	return errcode.None
}

func (c *classicGroup) add(m *classicMember) {
	if len(c.members) == 0 && c.protocolType == "" {
		c.protocolType = consumerProtocol
	}
	c.members = append(c.members, m)
	c.byID[m.id] = m
	if m.instance != nil {
		c.static[*m.instance] = m.id
	}
	if c.leader == "" {
		c.leader = m.id
	}
	delete(c.pending, m.id)
}

func (c *classicGroup) remove(id string) *classicMember {
	m := c.byID[id]
	if m == nil {
		return nil
	}
	delete(c.byID, id)
	delete(c.unsynced, id)
	c.members = slices.DeleteFunc(c.members, func(x *classicMember) bool { return x == m })
	if m.instance != nil && c.static[*m.instance] == id {
		delete(c.static, *m.instance)
	}
	if c.leader == id {
		c.leader = ""
		if len(c.members) > 0 {
			c.leader = c.members[0].id
		}
	}
	return m
}

// joined counts the members whose JoinGroup waits.
func (c *classicGroup) joined() int {
	n := 0
	for _, m := range c.members {
		if m.joining != coordinator.NoTicket {
			n++
		}
	}
	return n
}

func (c *classicGroup) allJoined() bool { return c.joined() == len(c.members) && len(c.pending) == 0 }

// rebalanceMs is the longest of the members' rebalance timeouts.
func (c *classicGroup) rebalanceMs() int32 {
	longest := int32(0)
	for _, m := range c.members {
		longest = max(longest, m.rebalanceMs)
	}
	return longest
}

// supports reports whether a member with these protocols can be in the group.
func (c *classicGroup) supports(protocolType string, names []protocol) bool {
	if c.state == Empty || len(c.members) == 0 {
		return protocolType != "" && len(names) > 0
	}
	return protocolType == c.protocolType && slices.ContainsFunc(names, func(p protocol) bool { return c.all(p.name) })
}

// all reports whether every member supports a protocol.
func (c *classicGroup) all(name string) bool {
	for _, m := range c.members {
		if m.metadata(name) == nil {
			return false
		}
	}
	return true
}

// choose lets each member vote for the first of its protocols that all support. Of equally many votes the name wins that
// comes first in a hash table of Java's, so that a group settles on the same protocol as with Apache Kafka.
func (c *classicGroup) choose() string {
	votes := make(map[string]int)
	for _, m := range c.members {
		for _, p := range m.protocols {
			if c.all(p.name) {
				votes[p.name]++
				break
			}
		}
	}
	best, most := "", 0
	for name, n := range votes {
		if n > most || n == most && javaBefore(name, best) {
			best, most = name, n
		}
	}
	return best
}

// javaBefore orders strings as a java.util.HashMap of the initial size, 16, iterates over them; names in the same bucket go
// by the alphabet, where Java's go by age.
func javaBefore(a, b string) bool {
	bucket := func(s string) uint32 {
		h := uint32(hash.JavaString(s))
		return (h ^ h>>16) & 15
	}
	return cmp.Or(cmp.Compare(bucket(a), bucket(b)), strings.Compare(a, b)) < 0
}

// metadata is what the member says for a protocol, nil if it does not support it.
func (m *classicMember) metadata(name string) []byte {
	for i := range m.protocols {
		if m.protocols[i].name == name {
			return m.protocols[i].metadata
		}
	}
	return nil
}

func (m *classicMember) sameProtocols(p []protocol) bool {
	return slices.EqualFunc(m.protocols, p, func(a, b protocol) bool { return a.name == b.name && string(a.metadata) == string(b.metadata) })
}
