package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ottla-kafka/ottla/client"
)

// atBrokers asks all brokers of the cluster side by side, each for what it coordinates, and puts the rows together by id. A
// broker that fails takes only its own rows away. One that has left the cluster since it was asked is not waited for: what it
// coordinated is at others by then, so all are asked again.
func atBrokers[R any](ctx context.Context, a *Admin, id func(R) string, ask func(ctx context.Context, broker int32) ([]R, error)) ([]R, error) {
	found, failed := map[int32][]R{}, map[int32]error{}
	passes := func(_ error, round int) bool {
		for _, err := range failed {
			if passing(err, round) {
				return true
			}
		}
		return false
	}
	round := 0
	errs := a.rounds(ctx, 1, passes, func(ctx context.Context, _ []int, errs []error) {
		brokers, err := a.brokers(ctx)
		if err != nil {
			clear(failed) // the client has tried again what passes
			errs[0] = err
			return
		}
		for broker := range maps.Keys(failed) {
			if !slices.Contains(brokers, broker) {
				clear(found)
				clear(failed)
				break
			}
		}
		round++
		left := slices.DeleteFunc(brokers, func(broker int32) bool {
			_, answered := found[broker]
			return answered || failed[broker] != nil && !passing(failed[broker], round)
		})
		rows, asked := make([][]R, len(left)), make([]error, len(left))
		var wg sync.WaitGroup
		for i, broker := range left {
			wg.Go(func() { rows[i], asked[i] = ask(ctx, broker) }) // ends with its request
		}
		wg.Wait()
		for i, broker := range left {
			if failed[broker] = asked[i]; asked[i] == nil {
				found[broker] = rows[i]
				delete(failed, broker)
			}
		}
		errs[0] = joinErrors(inOrder(failed))
	})
	rows := slices.Concat(inOrder(found)...)
	slices.SortStableFunc(rows, func(x, y R) int { return strings.Compare(id(x), id(y)) })
	// What moves while the brokers are asked may be told by two.
	rows = slices.CompactFunc(rows, func(x, y R) bool { return id(x) == id(y) })
	return rows, errs[0]
}

// inOrder are the values by broker id.
func inOrder[V any](of map[int32]V) []V {
	var list []V
	for _, broker := range slices.Sorted(maps.Keys(of)) {
		list = append(list, of[broker])
	}
	return list
}

// brokers are the ids of the cluster's brokers at present.
func (a *Admin) brokers(ctx context.Context) ([]int32, error) {
	meta, err := a.metadataResponse(ctx, onlyBrokers)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, b := range meta.Brokers {
		ids = append(ids, b.NodeId)
	}
	slices.Sort(ids)
	return ids, nil
}

// isThere asks the cluster whether it has a broker.
func (a *Admin) isThere(ctx context.Context, broker int32) error {
	ids, err := a.brokers(ctx)
	if err == nil && !slices.Contains(ids, broker) {
		err = &absentError{broker, ids}
	}
	return err
}

// absentError is about a broker that the cluster says it does not have. It matches client.ErrUnknownBroker.
type absentError struct {
	broker int32
	there  []int32
}

func (e *absentError) Error() string {
	var ids []string
	for _, id := range e.there {
		ids = append(ids, strconv.Itoa(int(id)))
	}
	return fmt.Sprintf("%v: there is no broker %d, the cluster has %s", client.ErrUnknownBroker, e.broker, strings.Join(ids, ", "))
}

func (e *absentError) Is(target error) bool { return target == client.ErrUnknownBroker }
