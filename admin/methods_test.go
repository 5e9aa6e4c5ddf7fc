package admin_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
)

// method is a method of the package that is given a context, with arguments that a broker could take.
type method struct {
	name string
	call func(ctx context.Context, n int) (first reflect.Value, err error) // about n things
}

// methods are all of them, found by reflection, so that a new one is held to the rules too. Close, which obeys others, is
// left out.
func methods(t *testing.T, a *admin.Admin) (list []method) {
	t.Helper()
	for _, receiver := range []reflect.Value{reflect.ValueOf(a), reflect.ValueOf(admin.ResetPlan{Group: "x", Rows: make([]admin.ResetRow, 1)})} {
		for i := range receiver.NumMethod() {
			name, f := receiver.Type().Method(i).Name, receiver.Method(i)
			if f.Type().NumIn() == 0 || f.Type().In(0) != reflect.TypeFor[context.Context]() || name == "Close" {
				continue
			}
			list = append(list, method{name, func(ctx context.Context, n int) (reflect.Value, error) {
				args := []reflect.Value{reflect.ValueOf(ctx)}
				for k := 1; k < f.Type().NumIn(); k++ {
					args = append(args, sample(a, f.Type().In(k), n))
				}
				call := f.Call
				if f.Type().IsVariadic() {
					call = f.CallSlice
				}
				out := call(args)
				err, _ := out[len(out)-1].Interface().(error)
				return out[0], err
			}})
		}
	}
	return list
}

// sample is an argument of that type; lists and maps have n elements.
func sample(a *admin.Admin, of reflect.Type, n int) reflect.Value {
	for _, known := range []any{a, admin.ResetToLatest, admin.NewTopic{Name: "x", Partitions: 1, Replicas: 1}, admin.MorePartitions{Topic: "x", Total: 2},
		admin.MemberIdentity{ID: "x"}, tp("x", 0), admin.TopicConfigs("x"), admin.ConfigChange{Resource: admin.TopicConfigs("x"), Name: "x"},
		admin.AbortSpec{TopicPartition: tp("x", 0)}, admin.HangingSearch{}, admin.GroupFilter{}, admin.TransactionFilter{}} {
		if reflect.TypeOf(known) == of {
			return reflect.ValueOf(known)
		}
	}
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
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

// A row that prints itself says what went wrong with it; what it embeds would print without that.
func TestPrintedRowsTellTheirErrors(t *testing.T) {
	rows := map[reflect.Type]bool{}
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Slice:
			look(of.Elem())
		case reflect.Struct:
			if rows[of] || of.PkgPath() != reflect.TypeFor[admin.Admin]().PkgPath() {
				return
			}
			rows[of] = true
			for i := range of.NumField() {
				look(of.Field(i).Type)
			}
		}
	}
	for _, receiver := range []reflect.Type{reflect.TypeFor[*admin.Admin](), reflect.TypeFor[admin.ResetPlan]()} {
		for i := range receiver.NumMethod() {
			if m := receiver.Method(i).Type; m.NumOut() > 0 {
				look(m.Out(0))
			}
		}
	}
	printing := 0
	for of := range rows {
		_, failing := of.FieldByName("Err")
		if _, prints := reflect.Zero(of).Interface().(fmt.Stringer); !failing || !prints {
			continue
		}
		printing++
		row := reflect.New(of).Elem()
		row.FieldByName("Err").Set(reflect.ValueOf(errors.New("what went wrong")))
		require.Contains(t, fmt.Sprint(row.Interface()), "what went wrong", of)
		require.NotContains(t, fmt.Sprint(reflect.Zero(of).Interface()), "nil", of)
	}
	require.GreaterOrEqual(t, printing, 8)
}
