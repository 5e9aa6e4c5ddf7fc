package client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/ottla-kafka/ottla/client/machine"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// maxCoordinators bounds the cache; beyond it the cache starts anew, which costs one look-up for each key in use.
const maxCoordinators = 10_000

type coordKey struct {
	kind CoordinatorKind
	key  string
}

// coordinators is what the client knows of coordinators.
type coordinators struct {
	mu    sync.Mutex
	nodes map[coordKey]int32
}

func (k *coordinators) get(kind CoordinatorKind, key string) (int32, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, ok := k.nodes[coordKey{kind, key}]
	return id, ok
}

func (k *coordinators) put(kind CoordinatorKind, key string, id int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.nodes) >= maxCoordinators {
		clear(k.nodes)
	}
	k.nodes[coordKey{kind, key}] = id
}

// ForgetCoordinator drops what the client knows of a coordinator, after an answer that says it moved.
func (c *Client) ForgetCoordinator(kind CoordinatorKind, key string) {
	c.coords.mu.Lock()
	defer c.coords.mu.Unlock()
	delete(c.coords.nodes, coordKey{kind, key})
}

// coordinator is the broker id of one coordinator, from the cache or by one look-up. Its errors are retriable
// while the coordinator is being elected or loads.
func (c *Client) coordinator(ctx context.Context, kind CoordinatorKind, key string) (int32, error) {
	if id, ok := c.coords.get(kind, key); ok {
		if _, err := c.addrOf(id); err == nil {
			return id, nil
		}
	}
	nodes, errs, err := c.coordinatorsOnce(ctx, kind, []string{key})
	if err != nil {
		return -1, err
	}
	if err := errs[key]; err != nil {
		return -1, err
	}
	id := nodes[key].ID
	// The answer names an address too, but connections follow metadata alone: one place that says where a broker is.
	if _, err := c.addrOf(id); err != nil {
		c.RefreshMetadata()
		return -1, err
	}
	return id, nil
}

// Coordinators finds the coordinators of several groups or transactional ids with as few requests as the broker
// allows (one from FindCoordinator version 4 on). Keys whose coordinator is being elected are asked for again until
// ctx ends or default.api.timeout.ms has passed. The error of a single key is in errs, which has none for the keys in
// nodes; err is for all of them. A ctx that has ended already sends nothing.
func (c *Client) Coordinators(ctx context.Context, kind CoordinatorKind, keys ...string) (nodes map[string]Node, errs map[string]error, err error) {
	if err := c.refusal(ctx); err != nil {
		return nil, nil, &OpError{Op: "FindCoordinator", Partition: -1, Err: err}
	}
	ctx, cancel := c.within(ctx, c.cfg.APITimeout)
	defer cancel()
	nodes, errs = make(map[string]Node, len(keys)), make(map[string]error)
	backoff := machine.Backoff{First: c.cfg.RetryBackoff, Most: c.cfg.RetryBackoffMax}
	for rest, attempt := keys, 1; len(rest) > 0; attempt++ {
		found, failed, err := c.coordinatorsOnce(ctx, kind, rest)
		if err != nil && (!Retriable(err) || ctx.Err() != nil) {
			if Retriable(err) {
				err = endedBy(context.Cause(ctx), err)
			}
			return nil, nil, &OpError{Op: "FindCoordinator", Partition: -1, Attempts: attempt, Hint: hintOf(err), Err: err}
		}
		maps.Copy(nodes, found)
		var again []string
		for _, key := range rest {
			switch e := failed[key]; {
			case err != nil || e != nil && Retriable(e):
				again = append(again, key)
				if e != nil {
					errs[key] = e
				}
			case e != nil:
				errs[key] = e
			default:
				delete(errs, key)
			}
		}
		if rest = again; len(rest) > 0 && !c.sleep(ctx, c.jittered(backoff, attempt)) {
			cause := cmp.Or(context.Cause(ctx), ErrClosed)
			for _, key := range rest {
				errs[key] = endedBy(cause, cmp.Or(errs[key], err))
			}
			break
		}
	}
	return nodes, errs, nil
}

// coordinatorsOnce asks once for each request that is needed.
func (c *Client) coordinatorsOnce(ctx context.Context, kind CoordinatorKind, keys []string) (nodes map[string]Node, errs map[string]error, err error) {
	nodes, errs = make(map[string]Node, len(keys)), make(map[string]error)
	for rest := keys; len(rest) > 0; {
		resp, version, err := c.findCoordinators(ctx, kind, rest)
		if err != nil {
			return nil, nil, err
		}
		if version < 4 { // one key at a time
			c.found(kind, rest[0], resp.NodeId, resp.Host, resp.Port, resp.ErrorCode, resp.ErrorMessage, nodes, errs)
			rest = rest[1:]
			continue
		}
		for i := range resp.Coordinators {
			a := &resp.Coordinators[i]
			c.found(kind, a.Key, a.NodeId, a.Host, a.Port, a.ErrorCode, a.ErrorMessage, nodes, errs)
		}
		rest = nil
	}
	for _, key := range keys {
		if _, ok := nodes[key]; !ok && errs[key] == nil {
			errs[key] = fmt.Errorf("%w: the answer does not name %q", errcode.CoordinatorNotAvailable, key)
		}
	}
	return nodes, errs, nil
}

func (c *Client) found(kind CoordinatorKind, key string, id int32, host string, port int32, code int16, text *string, nodes map[string]Node, errs map[string]error) {
	if code := errcode.Code(code); code != errcode.None {
		err := error(code)
		if text != nil && *text != "" {
			err = fmt.Errorf("%w: %s", code, *text)
		}
		errs[key] = &OpError{Op: "FindCoordinator", Partition: -1, Attempts: 1, Err: fmt.Errorf("%s coordinator of %q: %w", kind, key, err)}
		return
	}
	nodes[key] = Node{ID: id, Host: host, Port: port}
	c.coords.put(kind, key, id)
}

// findCoordinators asks any broker once. It is not Client.Request because the shape of the request depends on the
// version, which is known only when it is written.
func (c *Client) findCoordinators(ctx context.Context, kind CoordinatorKind, keys []string) (*message.FindCoordinatorResponse, int16, error) {
	broker, err := c.anyBroker(ctx)
	if err != nil {
		return nil, 0, err
	}
	call := &Call{Key: wire.KeyFindCoordinator}
	if kind != GroupCoordinator {
		call.MinVersion = 1
	}
	call.Append = func(dst []byte, version int16) ([]byte, error) {
		req := message.NewFindCoordinatorRequest()
		req.KeyType = int8(kind)
		if version >= 4 {
			req.CoordinatorKeys = keys
		} else {
			req.CoordinatorKey = keys[0]
		}
		return req.AppendTo(dst, version)
	}
	reply, err := c.ask(ctx, broker, Metadata, call)
	if err != nil {
		return nil, 0, err
	}
	resp := new(message.FindCoordinatorResponse)
	if err := resp.ReadFrom(wire.NewReader(reply.Body), reply.Version); err != nil {
		return nil, 0, &OpError{Op: "FindCoordinator", Broker: c.BrokerName(broker), Partition: -1, Attempts: 1, Err: fmt.Errorf("%w: %w", ErrProtocol, err)}
	}
	return resp, reply.Version, nil
}
