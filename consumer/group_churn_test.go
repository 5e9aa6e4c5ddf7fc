package consumer_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

var churnSeed = flag.Uint64("churn.seed", 0, "run TestChurnLosesNothing with this seed alone")

// churn is a fleet to which everything happens that may happen to one.
type churn struct {
	*fleet
	rnd      *rand.Rand
	seed     uint64
	protocol consumer.Option

	mu        sync.Mutex
	processed map[consumer.TopicPartition]map[int64]int
	distinct  int
	members   []*churnMember
}

type churnMember struct {
	cl     *client.Client
	c      *consumer.Consumer
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func (f *churn) process(r consumer.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.processed[r.TopicPartition()]
	if p == nil {
		p = map[int64]int{}
		f.processed[r.TopicPartition()] = p
	}
	if p[r.Offset]++; p[r.Offset] == 1 {
		f.distinct++
	}
}

func (f *churn) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.distinct
}

// join starts a member that reads in a way of chance until it is told to end. Errors that pass are no reason to stop.
func (f *churn) join() {
	cl, err := client.New(client.Cluster(f.k))
	require.NoError(f.t, err)
	c, err := consumer.New(cl, consumer.Group("g"), consumer.Subscribe("orders"), consumer.OnReset(consumer.Earliest), f.protocol,
		consumer.SessionTimeout(6*time.Second, time.Second), consumer.AutoCommit(time.Duration(50+f.rnd.IntN(500))*time.Millisecond),
		consumer.MaxPollInterval(30*time.Second, consumer.Leave), consumer.DrainTimeout(20*time.Second))
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	m := &churnMember{cl: cl, c: c, cancel: cancel}
	mode, wait := f.rnd.IntN(4), time.Duration(f.rnd.IntN(2000))*time.Microsecond
	see := func(r consumer.Record) { time.Sleep(wait); f.process(r) }
	m.ended.Go(func() {
		for ctx.Err() == nil {
			var err error
			switch mode {
			case 0:
				for r, e := range c.Records(ctx) {
					if err = e; err == nil {
						see(r)
					}
				}
			case 1:
				var rs []consumer.Record
				rs, err = c.Poll(ctx, 20)
				for _, r := range rs {
					see(r)
				}
			case 2:
				err = c.Run(ctx, func(_ context.Context, r consumer.Record) error { see(r); return nil }, consumer.Concurrency(4))
			case 3:
				err = c.Serve(ctx, func(ctx context.Context, claim *consumer.Claim) error {
					for r, err := range claim.Records(ctx) {
						if err == nil {
							see(r)
						}
					}
					return nil
				})
			}
			if errors.Is(err, consumer.ErrClosed) {
				return
			}
		}
	})
	f.members = append(f.members, m)
}

// leave ends a member, in good order or as if its process had died.
func (f *churn) leave(i int, crash bool) {
	m := f.members[i]
	f.members = append(f.members[:i], f.members[i+1:]...)
	if crash {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		m.c.Close(ctx) // says nothing to anybody
	} else {
		m.c.Close(context.Background())
	}
	m.cancel()
	m.ended.Wait()
	m.c.Close(context.Background())
	require.NoError(f.t, m.cl.Close(context.Background()))
}

// check looks whether a committed offset has passed a record that nobody has processed.
func (f *churn) check() {
	g, err := f.k.Group(context.Background(), "g")
	if err != nil {
		return // being loaded
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range g.Offsets {
		processed := f.processed[tp(o.Topic, o.Partition)]
		for at := range o.Offset {
			if processed[at] == 0 {
				require.Fail(f.t, "committed and never processed", "seed %d: %s-%d is committed at %d, and %d was never processed", f.seed, o.Topic, o.Partition, o.Offset, at)
			}
		}
	}
}

// disturb does one thing of chance.
func (f *churn) disturb() {
	ctx := context.Background()
	member := func() string {
		if g, err := f.k.Group(ctx, "g"); err == nil && len(g.Members) > 0 {
			return g.Members[f.rnd.IntN(len(g.Members))].ID
		}
		return ""
	}
	switch f.rnd.IntN(12) {
	case 0, 1:
		if len(f.members) < 5 {
			f.join()
		}
	case 2, 3:
		if len(f.members) > 1 {
			f.leave(f.rnd.IntN(len(f.members)), f.rnd.IntN(2) == 0)
		}
	case 4:
		f.k.ForceRebalance(ctx, "g")
	case 5:
		f.k.FenceMember(ctx, "g", member())
	case 6:
		f.k.ExpireSession(ctx, "g", member())
	case 7:
		f.k.ReloadCoordinator(ctx, "g")
	case 8:
		require.NoError(f.t, f.k.Restart(ctx))
	case 9:
		f.k.Disconnect()
	case 10:
		f.k.Inject(fault.On([]wire.Key{wire.KeyOffsetCommit, wire.KeyJoinGroup, wire.KeySyncGroup, wire.KeyHeartbeat, wire.KeyConsumerGroupHeartbeat, wire.KeyFetch, wire.KeyOffsetFetch}[f.rnd.IntN(7)]).LoseResponse().Times(1 + f.rnd.IntN(3)))
	case 11:
		f.k.Inject(fault.On([]wire.Key{wire.KeyOffsetCommit, wire.KeyOffsetFetch, wire.KeyFindCoordinator}[f.rnd.IntN(3)]).Error(errcode.NotCoordinator).Times(1 + f.rnd.IntN(3)))
	}
}

func TestChurnLosesNothing(t *testing.T) {
	seeds := []uint64{*churnSeed}
	if *churnSeed == 0 {
		seeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			withFleet(t, 4, func(t *testing.T, fl *fleet) {
				f := &churn{fleet: fl, rnd: rand.New(rand.NewPCG(seed, 4)), seed: seed, processed: map[consumer.TopicPartition]map[int64]int{}}
				f.protocol = []consumer.Option{consumer.Assignors("range"), consumer.Assignors("cooperative-sticky"), consumer.GroupProtocol("consumer")}[f.rnd.IntN(3)]
				n := 0
				f.join()
				for range 25 {
					write(t, fl.cl, "orders", n, 40)
					n += 40
					time.Sleep(time.Duration(f.rnd.IntN(3000)) * time.Millisecond)
					f.disturb()
					f.check()
				}
				for range 600 { // twice session and rebalance timeout, and more
					if f.count() == n {
						break
					}
					time.Sleep(200 * time.Millisecond)
				}
				require.Equal(t, n, f.count(), "seed %d: replay with -churn.seed=%d", seed, seed)
				f.check()
				for len(f.members) > 0 {
					f.leave(0, false)
				}
				f.check()
			}, fakebroker.Config("group.consumer.heartbeat.interval.ms", "1000"))
		})
	}
}
