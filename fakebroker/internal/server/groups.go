package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Group returns a group as it is, of state Dead when there is none. While its coordinator is loading, or not here, the
// error is its code.
func (b *Broker) Group(ctx context.Context, id string) (*group.View, error) {
	if b.Image().Topic(offsetsTopic) == nil {
		return &group.View{ID: id, State: group.Dead}, nil
	}
	v, err := b.command(ctx, id, group.Inspect{Group: id})
	if err != nil {
		return nil, err
	}
	return v.(*group.View), nil
}

// Groups returns the ids of all groups, sorted.
func (b *Broker) Groups(ctx context.Context) ([]string, error) {
	answered := make(chan map[int32]coordinator.Reply, 1)
	b.coordinators.groups.SubmitAll(coordinator.Request{Body: &message.ListGroupsRequest{}, Version: 5},
		func(answers map[int32]coordinator.Reply) { answered <- answers })
	var ids []string
	select {
	case answers := <-answered:
		for _, partition := range slices.Sorted(maps.Keys(answers)) {
			if list, ok := answers[partition].Response.(*message.ListGroupsResponse); ok {
				for _, g := range list.Groups {
					ids = append(ids, g.GroupId)
				}
			}
		}
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	slices.Sort(ids)
	return ids, nil
}

// CommandGroup has the coordinator of a group do what body says: group.ForceRebalance, FenceMember or ExpireSession.
func (b *Broker) CommandGroup(ctx context.Context, id string, body any) error {
	answer, err := b.command(ctx, id, body)
	if err != nil {
		return err
	}
	return answer.(errcode.Code).Err()
}

func (b *Broker) command(ctx context.Context, id string, body any) (any, error) {
	type answer struct {
		response any
		code     errcode.Code
	}
	answered := make(chan answer, 1)
	b.coordinators.groups.Submit(b.coordinators.partitionOf(id), coordinator.Request{Body: body},
		func(response any, code errcode.Code) { answered <- answer{response, code} })
	select {
	case a := <-answered:
		return a.response, a.code.Err()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// AwaitGroup returns when check says so of a group, with what it was then.
func (b *Broker) AwaitGroup(ctx context.Context, id string, check func(*group.View) bool) (*group.View, error) {
	c := b.coordinators
	for {
		seen := c.changes.Load()
		v, err := b.Group(ctx, id)
		if err == nil && check(v) {
			return v, nil
		}
		var code errcode.Code
		if err != nil && (!errors.As(err, &code) || !code.Retriable()) {
			return v, fmt.Errorf("await group %s: %w", id, err)
		}
		if err := await(ctx, c.awaiting, id, func() bool { return c.changes.Load() != seen }); err != nil {
			state := group.Dead
			if v != nil {
				state = v.State
			}
			return v, fmt.Errorf("await group %s, which is %s: %w", id, state, err)
		}
	}
}

// ReloadCoordinator has the coordinator of a group resign and load its log again.
func (b *Broker) ReloadCoordinator(ctx context.Context, id string) error {
	done := make(chan struct{})
	b.coordinators.groups.Reload(b.coordinators.partitionOf(id), func() { close(done) })
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
