package txn

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Nobody tells a pipe that positions have moved over markers, so it looks; once in a second when nothing ever comes.
func TestAnIdlePipeLooksEverLessOften(t *testing.T) {
	waits := func(every time.Duration) (ms []int64) {
		p := &pipe{o: PipeOptions{CommitEvery: every}}
		for p.idle = range 6 {
			ms = append(ms, p.wait().Milliseconds())
		}
		return ms
	}
	require.Equal(t, []int64{100, 200, 400, 800, 1000, 1000}, waits(100*time.Millisecond))
	require.Equal(t, []int64{2000, 2000, 2000, 2000, 2000, 2000}, waits(2*time.Second))
}
