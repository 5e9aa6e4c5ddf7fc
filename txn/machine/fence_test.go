package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire/message"
)

// Each line was seen at Apache Kafka 4.4, with transaction.version 1 and 2 alike: our epoch is 4, transaction.timeout.ms is
// a minute.
func TestBlame(t *testing.T) {
	for _, x := range []struct {
		what    string
		id      int64
		epoch   int16
		state   string
		timeout time.Duration
		open    time.Duration
		by      Cause
	}{
		{"the coordinator aborted what took too long", 7, 5, "CompleteAbort", time.Minute, 70 * time.Second, Timeout},
		{"it is at it", 7, 5, "PrepareAbort", time.Minute, 70 * time.Second, Timeout},
		{"a new instance has aborted our transaction, and has its epoch", 7, 6, "Empty", time.Minute, time.Second, NewInstance},
		{"it is aborting", 7, 5, "PrepareAbort", time.Minute, time.Second, NewInstance},
		{"it came while no transaction was open", 7, 5, "Empty", time.Minute, 0, NewInstance},
		{"it works", 7, 6, "Ongoing", time.Minute, time.Second, NewInstance},
		{"it came after the timeout", 7, 6, "Empty", time.Minute, 70 * time.Second, NewInstance},
		{"epochs were used up", 8, 0, "Ongoing", time.Minute, time.Second, NewInstance},
		{"Admin.fenceProducers registers with its own timeout", 7, 5, "Empty", 30 * time.Second, 0, Admin},
		{"our own epoch", 7, 4, "Ongoing", time.Minute, time.Second, Unknown},
	} {
		m := New(Config{ID: "tx", Timeout: time.Minute})
		m.producerID, m.epoch = 7, 4
		s := &message.DescribeTransactionsResponseTransactionState{ProducerId: x.id, ProducerEpoch: x.epoch, TransactionState: x.state, TransactionTimeoutMs: int32(x.timeout.Milliseconds())}
		require.Equal(t, x.by, m.blame(s, x.open), x.what)
	}
	m := New(Config{ID: "tx", Timeout: time.Minute})
	require.Equal(t, Timeout, m.blame(nil, 2*time.Minute), "our own clock, where the coordinator cannot be asked")
	require.Equal(t, Unknown, m.blame(nil, time.Second))
}
