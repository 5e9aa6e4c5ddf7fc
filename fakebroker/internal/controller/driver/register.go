package driver

import (
	"context"
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Register registers this process's broker and unfences it. It returns the broker epoch when the broker has been
// published, with everything that it leads. Call it after Start, with listeners that are bound.
func (d *Driver) Register(ctx context.Context, r Registration) (epoch int64, err error) {
	resp, err := d.ask(ctx, d.registration(r))
	if err != nil {
		return 0, err
	}
	answer := resp.(*message.BrokerRegistrationResponse)
	if err := errcode.Code(answer.ErrorCode).Err(); err != nil {
		return 0, fmt.Errorf("controller: registration of broker %d: %w", r.BrokerID, err)
	}
	beat := message.NewBrokerHeartbeatRequest()
	beat.BrokerId, beat.BrokerEpoch, beat.CurrentMetadataOffset = r.BrokerID, answer.BrokerEpoch, answer.BrokerEpoch
	beat.CordonedLogDirs = []wire.UUID{}
	if resp, err = d.ask(ctx, beat); err != nil {
		return 0, err
	}
	if err := errcode.Code(resp.(*message.BrokerHeartbeatResponse).ErrorCode).Err(); err != nil {
		return 0, fmt.Errorf("controller: heartbeat of broker %d: %w", r.BrokerID, err)
	}
	leave := *beat
	leave.WantShutDown, leave.CordonedLogDirs = true, nil
	if !d.inbox.post(func() { d.registered = &leave }) {
		return 0, ErrClosed
	}
	return answer.BrokerEpoch, nil
}

func (d *Driver) registration(r Registration) *message.BrokerRegistrationRequest {
	req := message.NewBrokerRegistrationRequest()
	req.BrokerId, req.ClusterId, req.IncarnationId = r.BrokerID, d.o.ClusterID, d.o.NewUUID()
	req.Rack, req.LogDirs, req.PreviousBrokerEpoch = r.Rack, r.Directories, r.PreviousBrokerEpoch
	for _, l := range r.Listeners {
		req.Listeners = append(req.Listeners, message.BrokerRegistrationRequestListener{Name: l.Name, Host: l.Host, Port: l.Port, SecurityProtocol: l.SecurityProtocol})
	}
	for _, f := range image.SupportedFeatures() {
		req.Features = append(req.Features, message.BrokerRegistrationRequestFeature{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
	}
	return req
}

// ask submits and waits; under a ctx that has ended it does neither.
func (d *Driver) ask(ctx context.Context, req message.Request) (message.Response, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	type answer struct {
		resp message.Response
		err  error
	}
	got := make(chan answer, 1)
	d.Submit(req, func(resp message.Response, err error) { got <- answer{resp, err} })
	select {
	case a := <-got:
		return a.resp, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// deregister takes the broker out: the log says that it stopped on purpose, which the next start builds on. Nobody is
// published to any more.
func (d *Driver) deregister(now time.Time) error {
	if d.registered == nil || d.failed {
		return nil
	}
	d.publish = nil
	result, err := d.machine.Handle(now, d.view(), d.registered)
	if err != nil {
		return err
	}
	_, err = d.append(now, result.Records)
	return err
}
