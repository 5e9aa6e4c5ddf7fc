package groupmember_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

func TestNothingIsLeftAfterClose(t *testing.T) {
	fakebroker.CheckLeaks(t)
	k := fakebroker.Start(t, fakebroker.Topic("orders", 4), fakebroker.Config("group.initial.rebalance.delay.ms", "0"))
	cl, err := client.New(client.Cluster(k))
	require.NoError(t, err)
	for _, way := range ways {
		opts := append([]groupmember.Option{groupmember.Group("g"), groupmember.Topics("orders")}, way...)
		m, err := groupmember.Join(t.Context(), cl, opts...)
		require.NoError(t, err)
		require.NoError(t, m.Leave(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = groupmember.Join(ctx, cl, opts...)
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, cl.Close(t.Context()))
}

// TestEndOfContextIsObeyedEverywhere ends ctx a little later each time, so that it meets every step on the way.
func TestEndOfContextIsObeyedEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		peer := wiretest.NewCluster(1, func(r *wiretest.Request) message.Response {
			time.Sleep(5 * time.Millisecond)
			return s.answer(r)
		})
		peer.SetTopic("a", 1, 1, 1)
		stop := errors.New("enough")
		done := 0
		for d := time.Duration(0); done < 3; d += 2 * time.Millisecond {
			cl, err := client.New(client.Cluster(peer), client.Jitter(1))
			require.NoError(t, err)
			within := func(f func(ctx context.Context) error) error {
				ctx, cancel := context.WithTimeoutCause(t.Context(), d, stop)
				defer cancel()
				began := time.Now()
				err := f(ctx)
				require.LessOrEqual(t, time.Since(began), d, "%v", err)
				return err
			}
			var m *groupmember.Member
			err = within(func(ctx context.Context) (err error) {
				m, err = groupmember.Join(ctx, cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.WithProtocol(groupmember.Classic))
				return err
			})
			if err != nil {
				require.ErrorIs(t, err, stop)
			} else {
				committed := within(func(ctx context.Context) error { return m.Commit(ctx, at(1)) })
				asked := within(func(ctx context.Context) error {
					got, err := m.Committed(ctx, tp("a", 0))
					require.True(t, err != nil || len(got) == 1)
					return err
				})
				waited := within(func(ctx context.Context) (err error) {
					for g, e := range m.Generations(ctx) { // the second one never comes
						require.True(t, g != nil || e != nil)
						err = e
					}
					return err
				})
				require.ErrorIs(t, waited, stop)
				closed := within([]func(context.Context) error{m.Close, m.Leave}[done%2])
				if committed == nil && asked == nil && closed == nil {
					done++
				}
				require.Equal(t, groupmember.Ended, m.State())
			}
			require.NoError(t, cl.Close(t.Context()))
		}
		peer.Close()
	})
}

// A coordinator that does not answer keeps a member that leaves no longer than one that cannot be found, whatever it falls
// silent at; and ctx may end that sooner.
func TestSilentCoordinatorHoldsNobodyForLong(t *testing.T) {
	for _, from := range []wire.Key{wire.KeyFindCoordinator, wire.KeyJoinGroup, wire.KeySyncGroup, wire.KeyHeartbeat, wire.KeyLeaveGroup} {
		for _, limit := range []time.Duration{2 * time.Second, time.Hour} {
			t.Run(from.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, cl *client.Client, s *scripted, _ *wiretest.Peer) {
					silent := false
					s.more = func(r *wiretest.Request) message.Response {
						if silent = silent || r.Key == from; silent {
							return wiretest.NoAnswer
						}
						return nil
					}
					m, err := groupmember.Start(cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.WithProtocol(groupmember.Classic))
					require.NoError(t, err)
					time.Sleep(3500 * time.Millisecond) // the first heartbeat was sent
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					began := time.Now()
					err = m.Leave(ctx)
					require.LessOrEqual(t, time.Since(began), min(limit, 5*time.Second))
					if limit == time.Hour {
						require.NoError(t, err)
					}
					require.Equal(t, groupmember.Ended, m.State())
					began = time.Now()
					require.NoError(t, cl.Close(t.Context()))
					require.Zero(t, time.Since(began), "nor does it keep the client")
				})
			})
		}
	}
}
