package admin

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ottla-kafka/ottla/wire/errcode"
)

// atLeaders asks the leaders of partitions, each broker once a round and all side by side. Rows whose leader moved, died
// or was not known are asked for again with fresh metadata. ask is given the indexes of the partitions that its broker
// leads and writes their errs; it runs on several goroutines at once, for different indexes.
func (a *Admin) atLeaders(ctx context.Context, op string, partitions []TopicPartition, ask func(ctx context.Context, broker int32, some []int, errs []error)) []error {
	return a.rounds(ctx, len(partitions), passing, func(ctx context.Context, left []int, errs []error) {
		var wg sync.WaitGroup
		for broker, some := range a.leaders(ctx, op, partitions, left, errs) {
			wg.Go(func() { ask(ctx, broker, some, errs) }) // ends with its one request, which ends with ctx
		}
		wg.Wait()
	})
}

// leaders sorts partitions by their leaders, from fresh metadata; those without one get an error. It leaves the topics
// that the client keeps track of alone and creates none.
func (a *Admin) leaders(ctx context.Context, op string, partitions []TopicPartition, left []int, errs []error) map[int32][]int {
	var names []string
	for _, i := range left {
		names = append(names, partitions[i].Topic)
	}
	slices.Sort(names)
	topics, err := a.metadata(ctx, slices.Compact(names))
	byLeader := map[int32][]int{}
	for _, i := range left {
		if err != nil {
			errs[i] = err
			continue
		}
		leader, err := leaderIn(topics, op, partitions[i])
		if err != nil {
			errs[i] = err
			continue
		}
		byLeader[leader] = append(byLeader[leader], i)
	}
	return byLeader
}

// leaderIn finds a partition's leader in metadata.
func leaderIn(topics map[string]Topic, op string, tp TopicPartition) (int32, error) {
	failed := func(code errcode.Code, text string) (int32, error) {
		return -1, &Error{Op: op, What: tp.String(), Code: code, Message: text}
	}
	t, ok := topics[tp.Topic]
	switch {
	case !ok:
		return -1, leftOut(op, tp.String())
	case t.Err != nil:
		return failed(codeOf(t.Err), "")
	}
	at, ok := slices.BinarySearchFunc(t.Partitions, tp.Partition, func(p Partition, id int32) int { return int(p.ID) - int(id) })
	switch {
	case !ok:
		return failed(errcode.UnknownTopicOrPartition, fmt.Sprintf("topic %q has %d partitions, there is no partition %d", tp.Topic, len(t.Partitions), tp.Partition))
	case t.Partitions[at].Leader < 0:
		return failed(errcode.LeaderNotAvailable, "it has no leader at present")
	}
	return t.Partitions[at].Leader, nil
}

// unique drops repetitions and keeps the order: brokers refuse requests that name a thing twice.
func unique[T comparable](list []T) []T {
	seen := make(map[T]bool, len(list))
	var out []T
	for _, x := range list {
		if !seen[x] {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}
