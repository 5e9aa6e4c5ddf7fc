package fakebroker_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// withContext has every method of a Cluster that takes a context, but for Close.
var withContext = map[string]func(ctx context.Context, k *fakebroker.Cluster) error{
	"AwaitTopic":   func(ctx context.Context, k *fakebroker.Cluster) error { return k.AwaitTopic(ctx, "orders") },
	"AwaitRecords": func(ctx context.Context, k *fakebroker.Cluster) error { return k.AwaitRecords(ctx, "orders", 0, 0) },
	"AwaitRequests": func(ctx context.Context, k *fakebroker.Cluster) error {
		return k.AwaitRequests(ctx, wire.KeyProduce, 0)
	},
	"CreateTopic": func(ctx context.Context, k *fakebroker.Cluster) error {
		return k.CreateTopic(ctx, fakebroker.TopicSpec{Name: "new", Partitions: 1})
	},
	"DialContext": func(ctx context.Context, k *fakebroker.Cluster) error {
		_, err := k.DialContext(ctx, "tcp", k.Addrs()[0])
		return err
	},
	"Group":             func(ctx context.Context, k *fakebroker.Cluster) error { _, err := k.Group(ctx, "g"); return err },
	"Groups":            func(ctx context.Context, k *fakebroker.Cluster) error { _, err := k.Groups(ctx); return err },
	"AwaitGroup":        func(ctx context.Context, k *fakebroker.Cluster) error { _, err := k.AwaitGroup(ctx, "g"); return err },
	"ForceRebalance":    func(ctx context.Context, k *fakebroker.Cluster) error { return k.ForceRebalance(ctx, "g") },
	"FenceMember":       func(ctx context.Context, k *fakebroker.Cluster) error { return k.FenceMember(ctx, "g", "A") },
	"ExpireSession":     func(ctx context.Context, k *fakebroker.Cluster) error { return k.ExpireSession(ctx, "g", "A") },
	"ReloadCoordinator": func(ctx context.Context, k *fakebroker.Cluster) error { return k.ReloadCoordinator(ctx, "g") },
	"Transaction": func(ctx context.Context, k *fakebroker.Cluster) error {
		_, err := k.Transaction(ctx, "job")
		return err
	},
	"Transactions": func(ctx context.Context, k *fakebroker.Cluster) error { _, err := k.Transactions(ctx); return err },
	"AwaitTransaction": func(ctx context.Context, k *fakebroker.Cluster) error {
		_, err := k.AwaitTransaction(ctx, "job")
		return err
	},
	"ExpireTransaction": func(ctx context.Context, k *fakebroker.Cluster) error { return k.ExpireTransaction(ctx, "job") },
	"ReloadTransactionCoordinator": func(ctx context.Context, k *fakebroker.Cluster) error {
		return k.ReloadTransactionCoordinator(ctx, "job")
	},
	"HangTransaction": func(ctx context.Context, k *fakebroker.Cluster) error {
		_, err := k.HangTransaction(ctx, "orders", 0, time.Now())
		return err
	},
	"Stop":    func(ctx context.Context, k *fakebroker.Cluster) error { return k.Stop(ctx) },
	"Crash":   func(ctx context.Context, k *fakebroker.Cluster) error { return k.Crash(ctx) },
	"Restart": func(ctx context.Context, k *fakebroker.Cluster) error { return k.Restart(ctx) },
}

var errEnough = errors.New("enough")

// enough is a context that has ended already.
func enough() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errEnough)
	return ctx
}

func TestEveryMethodWithAContextIsInTheTable(t *testing.T) {
	var all []string
	kind := reflect.TypeFor[*fakebroker.Cluster]()
	for m := range kind.NumMethod() {
		if f := kind.Method(m); f.Type.NumIn() > 1 && f.Type.In(1) == reflect.TypeFor[context.Context]() && f.Name != "Close" {
			all = append(all, f.Name)
		}
	}
	require.ElementsMatch(t, all, slices.Collect(maps.Keys(withContext)))
}

// working is a cluster with a member in group g and an open transaction of id job.
func working(t *testing.T) (*fakebroker.Cluster, *rawClient) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1))
	c := connect(t, k)
	findCoordinator(c, "g")
	require.Zero(t, call[*message.ConsumerGroupHeartbeatResponse](c, 1, consumerJoin("g", "A", "orders")).ErrorCode)
	p := begin(c, "job", time.Minute)
	require.Zero(t, p.add("orders", 0))
	synctest.Wait() // what is counted is counted
	return k, c
}

func TestAContextThatHasEndedBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := working(t)
		type state struct {
			metrics      []fakebroker.APIMetrics
			group        *fakebroker.Group
			transactions []*fakebroker.Transaction
			offsets      fakebroker.Offsets
			connections  int
		}
		look := func() (s state) {
			var err error
			s.group, err = k.Group(t.Context(), "g")
			require.NoError(t, err)
			s.transactions, err = k.Transactions(t.Context())
			require.NoError(t, err)
			s.offsets, err = k.Offsets("orders", 0)
			require.NoError(t, err)
			s.metrics, s.connections = k.Metrics(), k.Connections()
			return s
		}
		before := look()
		for name, do := range withContext {
			for range 20 { // a select between two that are ready would be found out
				require.ErrorIs(t, do(enough(), k), errEnough, name)
			}
			synctest.Wait()
			require.Equal(t, before, look(), name)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, k.AwaitTopic(short, "new"), context.DeadlineExceeded)

		in := k.Inject(fault.Any())
		require.ErrorIs(t, in.Await(enough(), 0), errEnough)
	})
}

func TestCloseClosesUnderAnEndedContextToo(t *testing.T) {
	for range 8 { // a select between two that are ready would be found out
		synctest.Test(t, func(t *testing.T) {
			k, c := working(t)
			if err := k.Close(enough()); err != nil { // it may be done before it is looked at
				require.ErrorIs(t, err, errEnough)
			}
			c.closed()
			require.NoError(t, k.Close(t.Context()), "it has ended, or does so now")
			require.ErrorIs(t, k.AwaitTopic(t.Context(), "orders"), fakebroker.ErrStopped)
			require.ErrorContains(t, k.Restart(t.Context()), "for good")
		})
	}
}

// A Close that cannot wait for a Crash or Restart that is under way closes all the same, after it.
func TestCloseComesAfterWhatIsAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		k := fakebroker.Start(t, func(s *fakebroker.Settings) {
			s.Disk = func(before vfs.FS) vfs.FS {
				if before == nil {
					return vfs.NewMem()
				}
				<-gate
				return before
			}
		})
		restarted := make(chan error, 1)
		go func() { restarted <- k.Restart(context.Background()) }()
		synctest.Wait() // the disk takes its time
		err := k.Close(enough())
		require.ErrorIs(t, err, errEnough)
		require.ErrorContains(t, err, "still at work")
		close(gate)
		require.NoError(t, <-restarted)
		synctest.Wait()
		require.ErrorIs(t, k.AwaitTopic(t.Context(), "orders"), fakebroker.ErrStopped)
		require.ErrorContains(t, k.Restart(t.Context()), "for good")
	})
}

// Nobody waits for a broker that is gone.
func TestWhatWaitsIsToldThatTheBrokerStops(t *testing.T) {
	waits := map[string]func(ctx context.Context, k *fakebroker.Cluster) error{
		"AwaitTopic":   func(ctx context.Context, k *fakebroker.Cluster) error { return k.AwaitTopic(ctx, "new") },
		"AwaitRecords": func(ctx context.Context, k *fakebroker.Cluster) error { return k.AwaitRecords(ctx, "orders", 0, 5) },
		"AwaitRequests": func(ctx context.Context, k *fakebroker.Cluster) error {
			return k.AwaitRequests(ctx, wire.KeyProduce, 1)
		},
		"AwaitGroup": func(ctx context.Context, k *fakebroker.Cluster) error {
			_, err := k.AwaitGroup(ctx, "g", fakebroker.GroupHas(7))
			return err
		},
		"AwaitTransaction": func(ctx context.Context, k *fakebroker.Cluster) error {
			_, err := k.AwaitTransaction(ctx, "job", fakebroker.TransactionCommits(1))
			return err
		},
	}
	ends := map[string]func(ctx context.Context, k *fakebroker.Cluster) error{"Stop": withContext["Stop"], "Crash": withContext["Crash"], "Restart": withContext["Restart"]}
	for name, wait := range waits {
		for end, stop := range ends {
			t.Run(name+"/"+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					k, _ := working(t)
					waited := make(chan error, 1)
					go func() { waited <- wait(context.Background(), k) }()
					synctest.Wait()
					require.NoError(t, stop(t.Context(), k))
					require.ErrorIs(t, <-waited, fakebroker.ErrStopped)
				})
			})
		}
	}
}
