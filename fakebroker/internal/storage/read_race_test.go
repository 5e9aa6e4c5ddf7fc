package storage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
)

// A reader looks at the offsets first and at the bytes afterwards; what is appended in between is not for it, whatever it
// would see next: here a record of a transaction that is going to be aborted.
func TestAReadGivesNothingThatCameAfterItBegan(t *testing.T) {
	for _, rolls := range []bool{false, true} {
		for _, maxBytes := range []int{1, 100, 1 << 20} {
			t.Run(fmt.Sprint(rolls, maxBytes), func(t *testing.T) {
				l := openTest(t, vfs.NewMem(), DefaultLogConfig())
				appendOK(t, l, batchOf("a"))
				appendOK(t, l, batchOf("b"))
				l.SetHighWatermark(2)
				p := l.view()
				if rolls {
					require.NoError(t, l.Roll(t0))
				}
				appendOK(t, l, produced{values: []string{"open"}, id: 1, txn: true}.bytes())
				l.SetHighWatermark(3)
				for _, bound := range []Bound{BoundStable, BoundHighWatermark, BoundLogEnd} {
					var got []string
					for from := int64(0); from < 2; {
						d, err := l.read(&p, from, maxBytes, bound, true)
						require.NoError(t, err)
						b, err := d.Records.AppendTo(nil)
						require.NoError(t, err)
						got = append(got, values(t, wholeBatches(b))...)
						require.Greater(t, d.NextOffset, from)
						from = d.NextOffset
					}
					require.Equal(t, []string{"a", "b"}, got)
				}
			})
		}
	}
}
