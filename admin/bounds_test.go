package admin_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// Whatever a cluster does not answer, every method ends with ctx, or by itself after default.api.timeout.ms.
func TestEveryMethodEndsOnASilentCluster(t *testing.T) {
	discovery := []wire.Key{wire.KeyApiVersions, wire.KeyMetadata, wire.KeyFindCoordinator}
	for name, answered := range map[string][]wire.Key{"nothing is answered": {wire.KeyApiVersions}, "who is asked is found": discovery} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := peer(t, 2, coordinated(func(r *wiretest.Request) message.Response {
					if slices.Contains(answered, r.Key) {
						return nil
					}
					return wiretest.NoAnswer
				}, func(string) int32 { return 2 }))
				p.SetTopic("x", 0, 1)
				for _, m := range methods(t, adminOf(t, p)) {
					answers := len(answered) > 1 && slices.Contains([]string{"ListTopics", "AwaitTopic", "APIVersions"}, m.name) // which need no more
					for _, limit := range []time.Duration{2 * time.Second, 0} {
						ctx, cancel := t.Context(), func() {}
						want, within := client.ErrTimeout, time.Minute+time.Second // what finds out whom to ask first has a minute for each
						if limit > 0 {
							ctx, cancel = context.WithTimeout(ctx, limit)
							want, within = context.DeadlineExceeded, limit
						}
						began := time.Now()
						_, err := m.call(ctx, 1)
						cancel()
						if answers {
							require.NoError(t, err, m.name)
							continue
						}
						require.ErrorIs(t, err, want, m.name)
						require.LessOrEqual(t, time.Since(began), within, m.name)
					}
				}
			})
		})
	}
}

// One attempt has request.timeout.ms; the next one goes on, over another connection.
func TestASilentBrokerIsAskedAgain(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, a *admin.Admin) error{
		"leader": func(ctx context.Context, a *admin.Admin) error {
			_, err := a.ListOffsets(ctx, admin.Latest, tp("orders", 0))
			return err
		},
		"coordinator": func(ctx context.Context, a *admin.Admin) error { _, err := a.DeleteGroups(ctx, "g"); return err },
		"all brokers": func(ctx context.Context, a *admin.Admin) error {
			_, err := a.ListGroups(ctx, admin.GroupFilter{})
			return err
		},
		"any broker": func(ctx context.Context, a *admin.Admin) error { _, err := a.ListConfigResources(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int32
				p := peer(t, 1, coordinated(func(r *wiretest.Request) message.Response {
					switch {
					case r.Key == wire.KeyMetadata || r.Key == wire.KeyApiVersions:
						return nil
					case asked.Add(1) == 1:
						return wiretest.NoAnswer
					}
					switch req := r.Body.(type) {
					case *message.ListOffsetsRequest:
						return listed(req, func(string, int32) (int64, int16) { return 7, 0 })
					case *message.DeleteGroupsRequest:
						return &message.DeleteGroupsResponse{Results: []message.DeletableGroupResult{{GroupId: req.GroupsNames[0]}}}
					}
					return r.Body.NewResponse()
				}, func(string) int32 { return 1 }))
				p.SetTopic("orders", 0, 1)
				a := adminOf(t, p, client.RequestTimeout(5*time.Second))
				began := time.Now()
				require.NoError(t, call(t.Context(), a))
				require.InDelta(t, 5, time.Since(began).Seconds(), 1)
				require.EqualValues(t, 2, asked.Load())
			})
		})
	}
}

// ctx may end at each step on the way: connecting, finding who is to be asked, asking. The call ends with it, and leaves
// nothing behind.
func TestEndOfContextIsObeyedAtEveryStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer(t, 2, coordinated(func(r *wiretest.Request) message.Response {
			time.Sleep(5 * time.Millisecond)
			if r.Key == wire.KeyMetadata || r.Key == wire.KeyApiVersions {
				return nil
			}
			return r.Body.NewResponse()
		}, func(string) int32 { return 2 }))
		p.SetTopic("x", 0, 1)
		enough := errors.New("enough")
		for i, m := range methods(t, admin.New(nil)) {
			for limit, over := 2*time.Millisecond, true; over; limit += 5 * time.Millisecond {
				require.Less(t, limit, 10*time.Second, m.name)
				a, err := admin.Dial(nil, client.Cluster(p), client.RetryBackoff(time.Millisecond, 4*time.Millisecond))
				require.NoError(t, err)
				ctx, cancel := context.WithTimeoutCause(t.Context(), limit, enough)
				began := time.Now()
				_, err = methods(t, a)[i].call(ctx, 1)
				require.LessOrEqual(t, time.Since(began), limit, m.name)
				over = errors.Is(err, enough)
				cancel()
				require.NoError(t, a.Close(t.Context()))
			}
		}
	})
}
