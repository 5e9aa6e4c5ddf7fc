package groupmember

import (
	"errors"

	"github.com/ottla-kafka/ottla/groupmember/machine"
)

// What ends the life of a claim (context.Cause), a member, or a call.
var (
	// ErrRevoked is the cause when a rebalance takes a partition away in good order.
	ErrRevoked = errors.New("partition revoked by a rebalance")
	// ErrLost is the cause when a partition is gone without having been given up: the session ended, the member
	// was removed from the group, or the coordinator fenced its generation. Others may own it already.
	ErrLost = machine.ErrLost
	// ErrFenced is the cause when another process took over this member's group.instance.id. It is final.
	ErrFenced = machine.ErrFenced
	// ErrClosed is the cause when this member was closed or has left.
	ErrClosed = machine.ErrClosed
	// ErrNotOwned is the error of a commit for a partition that this member does not hold (any more).
	ErrNotOwned = errors.New("partition is not held by this member")
	// ErrStalled is the cause when the owner told that it stopped to process (max.poll.interval.ms): the member
	// has left the group until Resume. It matches ErrLost too.
	ErrStalled = machine.ErrStalled
)
