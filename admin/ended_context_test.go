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

// sample is an argument of that type that a method takes without complaint; lists and maps have n elements.
func sample(a *admin.Admin, of reflect.Type, n int) reflect.Value {
	known := map[reflect.Type]reflect.Value{reflect.TypeFor[*admin.Admin](): reflect.ValueOf(a), reflect.TypeFor[admin.ResetTo](): reflect.ValueOf(admin.ResetToLatest)}
	if v, ok := known[of]; ok {
		return v
	}
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(of, n, n))
		for i := range n {
			v.Index(i).Set(sample(a, of.Elem(), n))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		for range n {
			v.SetMapIndex(sample(a, of.Key(), n), sample(a, of.Elem(), n))
		}
	}
	return v
}

// Every method that is given a context that has ended already returns its cause, in each row too, and reaches no broker; also
// when it is asked about nothing. The methods are found by reflection, so that a new one is held to it.
func TestEndedContextStartsNothing(t *testing.T) {
	enough := errors.New("enough")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	p := peer(t, 1, func(*wiretest.Request) message.Response { return nil })
	p.SetTopic("x", 0, 1)
	a := adminOf(t, p)
	calls := 0
	for _, receiver := range []reflect.Value{reflect.ValueOf(a), reflect.ValueOf(admin.ResetPlan{Group: "x", Rows: make([]admin.ResetRow, 1)})} {
		for i := range receiver.NumMethod() {
			name, f := receiver.Type().Method(i).Name, receiver.Method(i)
			if f.Type().NumIn() == 0 || f.Type().In(0) != reflect.TypeFor[context.Context]() || name == "Close" {
				continue
			}
			for n := range 2 {
				args := []reflect.Value{reflect.ValueOf(over)}
				for k := 1; k < f.Type().NumIn(); k++ {
					args = append(args, sample(a, f.Type().In(k), n))
				}
				call := f.Call
				if f.Type().IsVariadic() {
					call = f.CallSlice
				}
				out := call(args)
				calls++
				err, _ := out[len(out)-1].Interface().(error)
				require.ErrorIs(t, err, enough, "%s about %d things", name, n)
				if rows := out[0]; rows.Kind() == reflect.Slice {
					for r := range rows.Len() {
						err, _ := rows.Index(r).FieldByName("Err").Interface().(error)
						require.ErrorIs(t, err, enough, "row %d of %s", r, name)
					}
				}
			}
		}
	}
	require.Greater(t, calls, 70)
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
