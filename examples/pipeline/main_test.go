package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/producer"
)

// Two runs with the same id, one after the other: the second goes on where the first stopped.
func TestPipelineGoesOnWhereItStopped(t *testing.T) {
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	k := fakebroker.Start(t, fakebroker.Listen("127.0.0.1:0"), fakebroker.Topic("in", 1), fakebroker.Topic("out", 1),
		fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	p, err := producer.Dial(k.Addrs())
	require.NoError(t, err)
	defer p.Close(context.Background())
	c, err := consumer.Dial(k.Addrs(), consumer.Assign("out", 0), consumer.StartAt(consumer.Earliest), consumer.WithIsolation(consumer.ReadCommitted))
	require.NoError(t, err)
	defer c.Close(context.Background())

	var got, want []string
	for round := range 2 {
		for i := range 10 {
			_, err := p.Send(ctx, producer.Record{Topic: "in", Value: fmt.Appendf(nil, "line %d of %d", i, round)})
			require.NoError(t, err)
			want = append(want, fmt.Sprintf("LINE %d OF %d", i, round))
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- run(running, k.Addrs()[0], "capitals-1", "capitals", "in", "out") }()
		for len(got) < len(want) {
			rs, err := c.Poll(ctx, 0)
			require.NoError(t, err)
			for _, r := range rs {
				got = append(got, string(r.Value))
			}
		}
		stop()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	require.Equal(t, want, got)
}
