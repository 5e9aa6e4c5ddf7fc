package fakebroker

import (
	"context"

	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/fakebroker/internal/server"
)

// A Group is a consumer group as the coordinator sees it at one moment. Its fields:
//
//	ID              string
//	Type            string        "classic" or "consumer", "" for a group that is not there
//	State           a string      by Kafka's name, as for GroupIs; "Dead" for a group that is not there
//	ProtocolType    string        "consumer" for consumers of either protocol
//	Protocol        string        the assignor: of a classic group the chosen one, of a consumer group the broker's
//	Generation      int32         of a classic group; the epoch of a consumer group
//	AssignmentEpoch int32         the epoch that the target of a consumer group was made for
//	Leader          string        member id, classic groups only
//	Members         []GroupMember
//	Offsets         []GroupOffset what is committed
//	History         []GroupEvent  oldest first; the oldest are dropped after a thousand or so
type Group = group.View

// A GroupMember is one member of a Group. Its fields; partitions have a Topic and a Partition:
//
//	ID, InstanceID string   member id; group.instance.id, "" for a dynamic member
//	ClientID, Host string
//	Epoch          int32    the member epoch of a consumer group, the generation of a classic one
//	State          string   "stable", "unrevoked" or "unreleased" in a consumer group; "joining", "syncing" or "stable" in a
//	                        classic one
//	Classic        bool     it speaks the classic protocol
//	Topics         []string that it is subscribed to by name
//	Regex          string   that it is subscribed to by pattern
//	Assigned       list of partitions
//	Revoking       list of partitions that it was told to give up, and has not yet
//	Target         list of partitions, consumer groups only
type GroupMember = group.Member

// A GroupOffset is one committed offset of a Group. Its fields:
//
//	Topic       string
//	Partition   int32
//	Offset      int64     of the next record to read
//	LeaderEpoch int32     -1 unknown
//	Metadata    string    the member's own
//	CommittedAt time.Time
type GroupOffset = group.Offset

// A GroupEvent is one line of a Group's history. Its fields:
//
//	At         time.Time
//	Cause      GroupCause
//	Member     string     whose doing it was, "" for nobody's
//	Instance   string     the member's group.instance.id
//	Reason     string     what the member gave as its reason (KIP-800), or more words on the cause
//	Generation int32      the group's generation or epoch before the event
type GroupEvent = group.Event

// GroupCause says why a group rebalanced, or what became of it: a text such as "member joined".
type GroupCause = group.Cause

// The causes in a group's history.
const (
	MemberJoined         = group.MemberJoined
	MemberLeft           = group.MemberLeft
	MemberRejoined       = group.MemberRejoined
	StaticMemberReplaced = group.StaticMemberReplaced
	SessionTimeout       = group.SessionTimeout
	PollIntervalExceeded = group.PollIntervalExceeded // the member left and said so
	RebalanceTimeout     = group.RebalanceTimeout     // the member did not join, or revoke, in time
	SyncTimeout          = group.SyncTimeout
	SubscriptionChanged  = group.SubscriptionChanged
	PartitionsChanged    = group.PartitionsChanged // of a subscribed topic: more of them, or the topic came or went
	MemberFenced         = group.MemberFenced      // by Cluster.FenceMember
	RebalanceForced      = group.Forced            // by Cluster.ForceRebalance
	GroupWriteFailed     = group.WriteFailed       // to __consumer_offsets
	GroupBalanced        = group.Balanced          // the rebalance is over: every member has, or can ask for, its part
	GroupConverted       = group.Converted         // between the classic and the consumer protocol
)

// A GroupCheck is something that AwaitGroup can wait for.
type GroupCheck func(*Group) bool

// GroupIs waits for a state by its Kafka name: Empty, PreparingRebalance, CompletingRebalance, Assigning, Reconciling,
// Stable, Dead.
func GroupIs(state string) GroupCheck {
	return func(g *Group) bool { return string(g.State) == state }
}

// GroupHas waits for a number of members.
func GroupHas(members int) GroupCheck {
	return func(g *Group) bool { return len(g.Members) == members }
}

// GroupSaw waits until the history has an event of a cause.
func GroupSaw(cause GroupCause) GroupCheck {
	return func(g *Group) bool {
		for i := range g.History {
			if g.History[i].Cause == cause {
				return true
			}
		}
		return false
	}
}

// GroupCommitted waits until the group has committed an offset, or a higher one.
func GroupCommitted(topic string, partition int32, offset int64) GroupCheck {
	return func(g *Group) bool {
		for i := range g.Offsets {
			if o := &g.Offsets[i]; o.Topic == topic && o.Partition == partition {
				return o.Offset >= offset
			}
		}
		return false
	}
}

// Group returns a group; one that does not exist has state "Dead", and is no error. An error means that its coordinator cannot be asked: the broker is stopped, or still loading it.
func (k *Cluster) Group(ctx context.Context, id string) (g *Group, err error) {
	err = k.with(ctx, func(ctx context.Context, b *server.Broker) (err error) {
		g, err = b.Group(ctx, id)
		return about("group", id, err)
	})
	return g, err
}

// Groups returns the ids of all groups, sorted.
func (k *Cluster) Groups(ctx context.Context) (ids []string, err error) {
	err = k.with(ctx, func(ctx context.Context, b *server.Broker) (err error) {
		ids, err = b.Groups(ctx)
		return err
	})
	return ids, err
}

// AwaitGroup returns when all checks hold for a group at the same moment, with the group as it was then, or when ctx ends.
// Nothing is polled.
func (k *Cluster) AwaitGroup(ctx context.Context, id string, checks ...GroupCheck) (g *Group, err error) {
	err = k.with(ctx, func(ctx context.Context, b *server.Broker) (err error) {
		g, err = b.AwaitGroup(ctx, id, func(g *Group) bool {
			for _, check := range checks {
				if !check(g) {
					return false
				}
			}
			return true
		})
		return err
	})
	return g, err
}

// ForceRebalance has a group with members rebalance: a classic group prepares one, a consumer group gets a new epoch.
func (k *Cluster) ForceRebalance(ctx context.Context, id string) error {
	return k.commandGroup(ctx, id, group.ForceRebalance{Group: id})
}

// FenceMember takes a member out of a group without a word to it: its next request is answered with UNKNOWN_MEMBER_ID.
// The member is named by its id or its group.instance.id.
func (k *Cluster) FenceMember(ctx context.Context, id, member string) error {
	return k.commandGroup(ctx, id, group.FenceMember{Group: id, Member: member})
}

// ExpireSession ends a member's session now, as if it had been silent for session.timeout.ms. The member is named by its
// id or its group.instance.id.
func (k *Cluster) ExpireSession(ctx context.Context, id, member string) error {
	return k.commandGroup(ctx, id, group.ExpireSession{Group: id, Member: member})
}

func (k *Cluster) commandGroup(ctx context.Context, id string, body any) error {
	return k.with(ctx, func(ctx context.Context, b *server.Broker) error {
		return about("group", id, b.CommandGroup(ctx, id, body))
	})
}

// ReloadCoordinator has the coordinator of a group resign and load its state from __consumer_offsets again. Members whose
// requests wait get NOT_COORDINATOR; a classic group that was rebalancing goes back to its last generation. The history
// begins anew.
func (k *Cluster) ReloadCoordinator(ctx context.Context, id string) error {
	return k.with(ctx, func(ctx context.Context, b *server.Broker) error { return b.ReloadCoordinator(ctx, id) })
}
