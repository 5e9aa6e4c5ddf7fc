package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/consumer"
)

// TestSwitchingBetweenWaysOfReadingLosesAndRepeatsNothing reads with one consumer in all ways by turns, each broken off at
// a moment of chance. What a way has not done the next one gets.
func TestSwitchingBetweenWaysOfReadingLosesAndRepeatsNothing(t *testing.T) {
	const n = 800
	for seed := range uint64(20) {
		withFleet(t, 3, func(t *testing.T, fl *fleet) {
			rnd := rand.New(rand.NewPCG(seed, 2))
			write(t, fl.cl, "orders", 0, n)
			a := fl.member(consumer.MaxBytes(20000, 1+rnd.IntN(5000)), consumer.AutoCommit(time.Duration(rnd.IntN(50))*time.Millisecond))
			done := map[string]int{}
			var mu sync.Mutex
			note := func(r consumer.Record) int {
				mu.Lock()
				defer mu.Unlock()
				done[string(r.Value)]++
				return len(done)
			}
			for round := 0; note(consumer.Record{}) <= n; round++ {
				require.Less(t, round, 5000, "seed %d: %d of %d", seed, len(done)-1, n)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rnd.IntN(15))*time.Millisecond)
				readRound(t, rnd, ctx, a, note)
				cancel()
			}
			delete(done, "")
			for v, times := range done {
				require.Equal(t, 1, times, "seed %d: value %s", seed, v)
			}
			require.NoError(t, a.Commit(within(t, time.Minute)))
			sum := int64(0)
			for _, o := range fl.committed(0, 1, 2) {
				sum += o
			}
			require.EqualValues(t, n, sum, "seed %d", seed)
		})
	}
}

// readRound reads in one way until ctx ends; what it notes is done.
func readRound(t *testing.T, rnd *rand.Rand, ctx context.Context, a *consumer.Consumer, note func(consumer.Record) int) {
	fine := func(err error) {
		require.True(t, err == nil || errors.Is(err, context.DeadlineExceeded), "%v", err)
	}
	switch rnd.IntN(4) {
	case 0:
		rs, err := a.Poll(ctx, 1+rnd.IntN(40))
		fine(err)
		for _, r := range rs {
			note(r)
		}
	case 1:
		stop := rnd.IntN(40)
		for r, err := range a.Records(ctx) {
			fine(err)
			if err != nil {
				return
			}
			note(r)
			if stop--; stop <= 0 {
				return
			}
		}
	case 2:
		wait := time.Duration(rnd.IntN(3)) * time.Millisecond
		fine(a.Run(ctx, func(ctx context.Context, r consumer.Record) error {
			time.Sleep(wait)
			note(r)
			return nil
		}, consumer.Concurrency(1), consumer.Buffer(1+rnd.IntN(60))))
	case 3:
		wait := time.Duration(rnd.IntN(3)) * time.Millisecond
		fine(a.Serve(ctx, func(ctx context.Context, claim *consumer.Claim) error {
			for r, err := range claim.Records(ctx) {
				fine(err)
				time.Sleep(wait)
				note(r)
			}
			return nil
		}))
	}
}

// TestRandomFleetProcessesEverythingOnce lets members of all kinds come and go in good order while records are written: each
// is processed exactly once, and no partition is in two hands.
func TestRandomFleetProcessesEverythingOnce(t *testing.T) {
	for seed := range uint64(12) {
		withFleet(t, 5, func(t *testing.T, fl *fleet) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			var l ledger
			var mu sync.Mutex
			owner := map[consumer.TopicPartition]int{}
			assignor := []string{"range", "cooperative-sticky", "sticky", "roundrobin"}[rnd.IntN(4)]
			type running struct {
				c    *consumer.Consumer
				stop func()
			}
			var members []running
			id := 0
			start := func() {
				id++
				me := id
				mode := []string{"records", "poll", "batches", "run"}[rnd.IntN(4)]
				protocol := consumer.Assignors(assignor)
				if seed%3 == 2 {
					protocol = consumer.GroupProtocol("consumer")
				}
				c := fl.member(protocol, consumer.AutoCommit(50*time.Millisecond), consumer.OnAssigned(func(_ context.Context, parts []consumer.TopicPartition) {
					mu.Lock()
					defer mu.Unlock()
					for _, p := range parts {
						require.Zero(t, owner[p], "seed %d: %s has two owners", seed, p)
						owner[p] = me
					}
				}), consumer.OnRevoked(func(_ context.Context, parts []consumer.TopicPartition) {
					mu.Lock()
					defer mu.Unlock()
					for _, p := range parts {
						require.Equal(t, me, owner[p], "seed %d", seed)
						delete(owner, p)
					}
				}))
				ctx, cancel := context.WithCancel(context.Background())
				var group sync.WaitGroup
				wait := time.Duration(rnd.IntN(1500)) * time.Microsecond
				group.Go(func() {
					readAs(t, mode, ctx, c, func(r consumer.Record) { time.Sleep(wait); l.add(r) })
				})
				members = append(members, running{c, func() {
					if mode == "poll" { // Close cannot know whether what Poll returned is done
						cancel()
						group.Wait()
					}
					require.NoError(t, c.Close(context.Background()))
					group.Wait()
					cancel()
				}})
			}
			n := 0
			start()
			for range 12 {
				write(t, fl.cl, "orders", n, 60)
				n += 60
				time.Sleep(time.Duration(rnd.IntN(700)) * time.Millisecond)
				switch {
				case len(members) > 1 && rnd.IntN(2) == 0:
					i := rnd.IntN(len(members))
					members[i].stop()
					members = append(members[:i], members[i+1:]...)
				case len(members) < 5:
					start()
				}
			}
			require.Eventually(t, func() bool { return l.len() == n }, 2*time.Minute, 100*time.Millisecond, fmt.Sprint("seed ", seed))
			for _, m := range members {
				m.stop()
			}
			l.once(t, n)
		})
	}
}
