package groupmember_test

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

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/groupmember"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// takingContext are the names of a type's methods that are given a context.
func takingContext(of reflect.Type) (names []string) {
	for i := range of.NumMethod() {
		m := of.Method(i)
		if m.Type.NumIn() > 1 && m.Type.In(1) == reflect.TypeFor[context.Context]() {
			names = append(names, m.Name)
		}
	}
	return names
}

// A context that has ended already is obeyed before anything is begun: its cause is returned, nothing is sent. A method that
// is missing here fails the test.
func TestEndedContextStartsNothing(t *testing.T) {
	enough := errors.New("enough")
	over, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, peer *wiretest.Peer) {
		_, err := groupmember.Join(over, cl, groupmember.Group("g"), groupmember.Topics("a"))
		require.ErrorIs(t, err, enough)
		synctest.Wait()
		require.Empty(t, peer.Requests(), "Join")

		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"))
		require.NoError(t, err)
		synctest.Wait()
		before := len(peer.Requests())
		calls := map[string]func() error{
			"Await":     func() error { return m.Await(over) },
			"Commit":    func() error { return m.Commit(over, at(5)) },
			"Committed": func() error { _, err := m.Committed(over, tp("a", 0)); return err },
			"Generations": func() (err error) {
				for g, e := range m.Generations(over) {
					require.Nil(t, g, "what nobody works on would not be yielded again")
					err = e
				}
				return err
			},
		}
		for name, call := range calls {
			for range 5 { // whoever comes first
				require.ErrorIs(t, call(), enough, name)
			}
			synctest.Wait()
			require.Len(t, peer.Requests(), before, name)
		}
		none, err := m.Committed(over)
		require.ErrorIs(t, err, enough, "about nothing")
		require.Empty(t, none)
		for g, err := range m.Generations(t.Context()) {
			require.NoError(t, err)
			require.Len(t, g.Added, 2)
			break
		}
		require.NoError(t, m.Commit(t.Context(), at(6)))
		require.ElementsMatch(t, append([]string{"Close", "Leave"}, slices.Collect(maps.Keys(calls))...), takingContext(reflect.TypeFor[*groupmember.Member]()))
		require.NoError(t, m.Close(t.Context()))
	})
}

// Close and Leave end the membership all the same. There is no time to do it in good order: the coordinator is told nothing.
func TestEndedContextEndsTheMembership(t *testing.T) {
	enough := errors.New("enough")
	over, cancel := context.WithCancelCause(context.Background())
	cancel(enough)
	for name, end := range map[string]func(*groupmember.Member, context.Context) error{"Close": (*groupmember.Member).Close, "Leave": (*groupmember.Member).Leave} {
		for _, held := range []int{0, 2} {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, cl *client.Client, s *scripted, peer *wiretest.Peer) {
					l := &diary{}
					topic := map[int]string{0: "nowhere", 2: "a"}[held]
					m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics(topic), groupmember.WithListener(l))
					require.NoError(t, err)
					require.Len(t, m.Assignment(), held)
					synctest.Wait()
					l.take()
					claim := m.Claim(tp("a", 0))
					err = end(m, over)
					require.ErrorIs(t, err, enough)
					require.ErrorContains(t, err, map[int]string{0: "0 partitions", 2: "2 partitions"}[held])
					require.Equal(t, groupmember.Ended, m.State())
					synctest.Wait()
					if held > 0 {
						require.ErrorIs(t, context.Cause(claim), groupmember.ErrClosed)
						require.Equal(t, []string{"lost [a-0 a-1]: group member is closed"}, l.take(), "and not revoked")
					}
					require.Empty(t, peer.Requests(wire.KeyLeaveGroup))
					for range 5 {
						require.NoError(t, end(m, over), "it has ended, and nothing is lost by this call")
					}
				})
			})
		}
	}
}

// A Listener that does not return holds nobody beyond the end of a context.
func TestListenerHoldsNobodyBeyondTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, cl *client.Client, s *scripted, _ *wiretest.Peer) {
		within := func(d time.Duration, f func(ctx context.Context) error) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			began := time.Now()
			err := f(ctx)
			require.LessOrEqual(t, time.Since(began), d)
			return err
		}
		l := &slow{assigned: time.Minute}
		err := within(2*time.Second, func(ctx context.Context) error {
			_, err := groupmember.Join(ctx, cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.WithListener(l))
			return err
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Minute)

		l = &slow{revoked: time.Minute}
		m, err := groupmember.Join(t.Context(), cl, groupmember.Group("g"), groupmember.Topics("a"), groupmember.WithListener(l))
		require.NoError(t, err)
		err = within(2*time.Second, m.Close)
		require.ErrorContains(t, err, "2 partitions not given up")
		err = within(2*time.Second, m.Close)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "Listener has not returned")
		time.Sleep(time.Minute)
		require.NoError(t, m.Close(t.Context()))
	})
}

// slow is a Listener that takes its time.
type slow struct{ assigned, revoked time.Duration }

func (l *slow) Assigned(groupmember.Assignment) { time.Sleep(l.assigned) }
func (l *slow) Revoked(_ []groupmember.TopicPartition, done func()) {
	time.Sleep(l.revoked)
	done()
}
func (l *slow) Lost([]groupmember.TopicPartition, error) {}
