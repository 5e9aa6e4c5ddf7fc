package server

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/fakebroker/internal/group"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// offsetsTopic is where the group coordinators keep their state.
const offsetsTopic = "__consumer_offsets"

// groups are the group coordinators of this broker.
type groups struct {
	coordinators
	environment atomic.Pointer[group.Environment] // of machines that are made from now on
}

func newGroups(b *Broker) *groups {
	g := &groups{coordinators: coordinators{topic: offsetsTopic, partitions: "offsets.topic.num.partitions"}}
	g.environment.Store(&group.Environment{Image: b.Image(), Config: b.Config()})
	g.start(b, logrecord.GroupLog, "offsets.load.buffer.size", func(int32, int32) coordinator.Shard {
		return group.New(group.Options{Environment: *g.environment.Load(), NewUUID: b.opts.NewUUID, Bugs: b.opts.Bugs, Changed: g.changed})
	})
	return g
}

// follow tells the coordinators what a new image brings: what they go by first, then which partitions they have.
func (g *groups) follow(img *image.Image, delta *image.Delta, changes []image.TopicChange) {
	configs := false
	for _, r := range delta.Configs() {
		configs = configs || r.Type == config.GroupResource || r.Type == config.BrokerResource
	}
	if len(changes) > 0 || configs {
		e := group.Environment{Image: img, Config: g.b.Config(), Changed: changes}
		g.environment.Store(&group.Environment{Image: img, Config: e.Config})
		g.runtime.Tell(e)
	}
	g.lead(changes, func(int32) {})
}

// askGroup hands the body of a request to the coordinator of a group, and its answer to respond.
func (b *Broker) askGroup(r *Request, id string, body any, respond func(response any, code errcode.Code)) {
	client := ""
	if r.ClientID != nil {
		client = *r.ClientID
	}
	b.groups.runtime.Submit(b.groups.partitionOf(id), coordinator.Request{
		Body: body, Version: r.Version, ClientID: client, ClientHost: clientHost(r.RemoteAddr),
	}, respond)
}

// clientHost names a client's host as Java prints an address. Connections in memory are from this very host.
func clientHost(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		return "/" + t.IP.String()
	}
	return "/127.0.0.1"
}

// handleByGroup passes a request about one group on as it is.
func handleByGroup(b *Broker, r *Request, id string) {
	b.askGroup(r, id, r.Body, func(response any, code errcode.Code) {
		if code != errcode.None {
			r.Respond(failedGroupResponse(r, code))
			return
		}
		r.Respond(response.(message.Response))
	})
}

// Group returns a group as it is, of state Dead when there is none. While its coordinator is loading, or not here, the
// error is its code.
func (b *Broker) Group(ctx context.Context, id string) (*group.View, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if !b.groups.exist() {
		return &group.View{ID: id, State: group.Dead}, nil
	}
	v, err := b.groups.command(ctx, id, group.Inspect{Group: id})
	if err != nil {
		return nil, err
	}
	return v.(*group.View), nil
}

// Groups returns the ids of all groups, sorted.
func (b *Broker) Groups(ctx context.Context) ([]string, error) {
	answers, err := b.groups.askAll(ctx, coordinator.Request{Body: &message.ListGroupsRequest{}, Version: 5})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, partition := range slices.Sorted(maps.Keys(answers)) {
		if list, ok := answers[partition].Response.(*message.ListGroupsResponse); ok {
			for _, g := range list.Groups {
				ids = append(ids, g.GroupId)
			}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// CommandGroup has the coordinator of a group do what body says: group.ForceRebalance, FenceMember or ExpireSession.
func (b *Broker) CommandGroup(ctx context.Context, id string, body any) error {
	answer, err := b.groups.command(ctx, id, body)
	if err != nil {
		return err
	}
	return answer.(errcode.Code).Err()
}

// AwaitGroup returns when check says so of a group, with what it was then.
func (b *Broker) AwaitGroup(ctx context.Context, id string, check func(*group.View) bool) (*group.View, error) {
	v, err := awaitKey(ctx, &b.groups.coordinators, id, func() (*group.View, error) { return b.Group(ctx, id) }, check)
	if err != nil {
		state := group.Dead
		if v != nil {
			state = v.State
		}
		return v, fmt.Errorf("await group %s, which is %s: %w", id, state, err)
	}
	return v, nil
}

// ReloadCoordinator has the coordinator of a group resign and load its log again.
func (b *Broker) ReloadCoordinator(ctx context.Context, id string) error {
	return b.groups.reload(ctx, id)
}
