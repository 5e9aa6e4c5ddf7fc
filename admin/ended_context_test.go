package admin_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// Every method that is given a context that has ended already returns its cause, in each row too, and reaches no broker; also
// when it is asked about nothing.
func TestEndedContextStartsNothing(t *testing.T) {
	enough := errors.New("enough")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	p := peer(t, 1, func(*wiretest.Request) message.Response { return nil })
	p.SetTopic("x", 0, 1)
	all := methods(t, adminOf(t, p))
	require.Greater(t, len(all), 35)
	for _, m := range all {
		for n := range 2 {
			first, err := m.call(over, n)
			require.ErrorIs(t, err, enough, "%s about %d things", m.name, n)
			if first.Kind() != reflect.Slice {
				continue
			}
			for r := range first.Len() {
				err, _ := first.Index(r).FieldByName("Err").Interface().(error)
				require.ErrorIs(t, err, enough, "row %d of %s", r, m.name)
			}
		}
	}
	require.Zero(t, p.Dialled())
}

// Close closes all the same.
func TestEndedContextClosesAnAdmin(t *testing.T) {
	a, err := admin.Dial(nil, client.Cluster(peer(t, 1, func(*wiretest.Request) message.Response { return nil })))
	require.NoError(t, err)
	_, err = a.ListTopics(t.Context())
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Close(over); err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err = a.ListTopics(t.Context())
	require.ErrorIs(t, err, client.ErrClosed)
	require.NoError(t, a.Close(t.Context()))
}
