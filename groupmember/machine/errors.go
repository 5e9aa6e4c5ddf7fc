package machine

import (
	"errors"
	"fmt"
)

var (
	// ErrLost is the cause when partitions are gone without having been given up.
	ErrLost = errors.New("partition lost")
	// ErrFenced is the cause when another process took over the group.instance.id.
	ErrFenced = errors.New("fenced: another member has the same group.instance.id")
	// ErrStalled is the cause when the owner stopped to process. It wraps ErrLost.
	ErrStalled = fmt.Errorf("%w: left the group because nothing was processed within max.poll.interval.ms", ErrLost)
)
