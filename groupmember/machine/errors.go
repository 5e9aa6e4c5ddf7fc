package machine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

var (
	// ErrLost is the cause when partitions are gone without having been given up.
	ErrLost = errors.New("partition lost")
	// ErrFenced is the cause when another process took over the group.instance.id.
	ErrFenced = errors.New("fenced: another member has the same group.instance.id")
	// ErrClosed is the cause when the owner ended the member without waiting.
	ErrClosed = errors.New("group member is closed")
	// ErrStalled is the cause when the owner stopped to process. It matches ErrLost.
	ErrStalled = fmt.Errorf("%w: left the group because nothing was processed within max.poll.interval.ms", ErrLost)
)

// GroupError is the final error of a member: which group refused what, and why.
type GroupError struct {
	Group string
	Op    string // Kafka's name of the request
	Text  string // what the broker said beside the code, may be empty
	Hint  string // what to do
	Err   error  // an errcode.Code or what the connection said
}

func (e *GroupError) Error() string {
	s := fmt.Sprintf("group %q: ", e.Group)
	if text := e.Err.Error(); strings.HasPrefix(text, e.Op) { // the connection's error names the request already
		s += text
	} else {
		s += e.Op + ": " + text
	}
	if e.Text != "" {
		s += ": " + e.Text
	}
	if e.Hint != "" {
		s += "; hint: " + e.Hint
	}
	return s
}

// Unwrap is the cause.
func (e *GroupError) Unwrap() error { return e.Err }

// hints say what to do about codes that end a member.
var hints = map[errcode.Code]string{
	errcode.InconsistentGroupProtocol: "all members of a group need an assignor in common: see partition.assignment.strategy",
	errcode.InvalidSessionTimeout:     "session.timeout.ms has to be between the broker's group.min.session.timeout.ms and group.max.session.timeout.ms",
	errcode.GroupMaxSizeReached:       "the broker's group.max.size members are in the group already",
	errcode.GroupAuthorizationFailed:  "this principal needs READ on the group",
	errcode.TopicAuthorizationFailed:  "this principal needs DESCRIBE on all topics that it subscribes to",
	errcode.UnsupportedAssignor:       "the coordinator does not know this group.remote.assignor",
	errcode.UnreleasedInstanceId:      "a member with the same group.instance.id is in the group; stop it, or wait for its session to end",
	errcode.UnsupportedVersion:        "the cluster does not speak this group.protocol",
	errcode.GroupIdNotFound:           "the group uses the other group.protocol and cannot be converted",
}
