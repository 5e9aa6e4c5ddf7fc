package machine

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// View is a picture of the cluster. It does not change; a new one arrives with TopologyChanged.
type View interface {
	// Topic is what is known of a topic: exists is false when the cluster has none of that name, known is false
	// before any answer named it.
	Topic(name string) (topic TopicRacks, exists, known bool)
	// Name is the name of a topic id.
	Name(id wire.UUID) (string, bool)
}

// Event is something that happened; see the types that implement it.
type Event interface{ event() }

// What the owner asks for.
type (
	// Started begins. Nothing happens before.
	Started struct{}
	// Subscribed changes what is wanted. Regex is for the consumer protocol alone; with the classic one the owner
	// finds the topics and gives them by name.
	Subscribed struct {
		Topics []string
		Regex  string
	}
	// Revoked confirms the revocation of that number.
	Revoked struct{ Serial uint64 }
	// Rejoin asks for a rebalance.
	Rejoin struct{ Reason string }
	// Suspected asks for a heartbeat now, because a commit was refused.
	Suspected struct{}
	// Stall says that the owner does not process; Resume that it does again.
	Stall  struct{}
	Resume struct{}
	// Leave ends the member in good order. With Stay a static member stays in the group, unless others wait for
	// something it has.
	Leave struct{ Stay bool }
	// Abandon ends the member at once; nothing more is sent.
	Abandon struct{}
	// Woke: time has passed. The driver steps it at Deadline.
	Woke struct{}
)

// What the cluster says.
type (
	// CoordinatorFound answers Effects.FindCoordinator.
	CoordinatorFound struct{ Broker int32 }
	// CoordinatorFailed answers it too; Final says that trying again cannot help.
	CoordinatorFailed struct {
		Err   error
		Final bool
	}
	// Answered is the answer to a request.
	Answered struct {
		Request  *Request
		Response message.Response
	}
	// Failed says that a request has no answer. Final: trying again cannot help. Unsupported: the broker does not
	// know the request, or not in a version that will do.
	Failed struct {
		Request     *Request
		Err         error
		Final       bool
		Unsupported bool
	}
	// TopologyChanged brings a new picture of the cluster.
	TopologyChanged struct{ View View }
)

func (Started) event()           {}
func (Subscribed) event()        {}
func (Revoked) event()           {}
func (Rejoin) event()            {}
func (Suspected) event()         {}
func (Stall) event()             {}
func (Resume) event()            {}
func (Leave) event()             {}
func (Abandon) event()           {}
func (Woke) event()              {}
func (CoordinatorFound) event()  {}
func (CoordinatorFailed) event() {}
func (Answered) event()          {}
func (Failed) event()            {}
func (TopologyChanged) event()   {}

// Effects is what a step wants done, in this order: what is lost is told before anything is sent or given anew, and
// a revocation before an assignment.
type Effects struct {
	Transitions     []Transition
	Lost            []Loss
	Revoke          *Revocation
	Assigned        *Assignment
	Rebalanced      time.Duration // how long the rebalance took that ended with this step, zero if none did
	Track           []string      // all topics whose metadata is needed from now on; nil means as before
	FindNames       []wire.UUID   // topic ids that an assignment names and View does not know
	FindCoordinator bool
	Send            []*Request
	Ended           bool
	Err             error // with Ended: why, nil when the owner wanted it
}

// Loss tells of partitions that are gone.
type Loss struct {
	Parts []TopicPartition
	Cause error
}

// Revocation asks the owner to give up partitions and to confirm with Revoked.
type Revocation struct {
	Serial uint64
	Parts  []TopicPartition
}

// Assignment tells of new partitions and of the generation.
type Assignment struct {
	Generation Generation
	Added, All []TopicPartition
}

// Request is one request to the coordinator. Its answer comes back with it in Answered or Failed.
type Request struct {
	Broker     int32
	Body       message.Request
	MinVersion int16
	Timeout    time.Duration // zero: request.timeout.ms
	// Held says that the broker may hold back the answer for long (JoinGroup, SyncGroup) and reads nothing behind the
	// request meanwhile: it needs a connection that nothing else waits for.
	Held bool

	kind       kind
	sent       time.Time
	generation Generation
	owned      []TopicPartition // what a heartbeat of the consumer protocol told, nil for nothing
	full       bool             // it told everything
	parting    bool             // it ends a former life before the next one
}

// kind is what a request is for; at most one of each is in flight.
type kind uint8

const (
	kindJoin kind = iota
	kindSync
	kindBeat
	kindLeave
	kinds
)

// Append appends the body in a version, in the shape that version has.
func (r *Request) Append(dst []byte, version int16) ([]byte, error) {
	switch body := r.Body.(type) {
	case *message.JoinGroupRequest:
		if version < 5 && body.GroupInstanceId != nil {
			return dst, fmt.Errorf("group.instance.id (%q) takes brokers from 2.3 on", *body.GroupInstanceId)
		}
	case *message.LeaveGroupRequest:
		if version < 3 {
			old := *body
			old.MemberId, old.Members = old.Members[0].MemberId, nil
			return old.AppendTo(dst, version)
		}
	}
	return r.Body.AppendTo(dst, version)
}
