package controller

import (
	"slices"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Values of the tri-state fields of BrokerRegistrationChangeRecord.
const (
	changeUnfence int8 = -1
	changeFence   int8 = 1
	changeBegin   int8 = 1 // of controlled shutdown
)

// checkEpoch refuses a broker that is not registered or that has been replaced by a newer incarnation.
func checkEpoch(i *image.Image, id int32, epoch int64) apiError {
	switch b := i.Broker(id); {
	case b == nil:
		return refuse(errcode.StaleBrokerEpoch, "Broker %d is not registered.", id)
	case b.Epoch != epoch:
		return refuse(errcode.StaleBrokerEpoch, "Broker %d has epoch %d, not %d.", id, b.Epoch, epoch)
	}
	return apiError{}
}

// registerBroker registers a new incarnation of a broker, fenced. Its epoch is the offset of its registration record.
// Registering the same incarnation again (a retry) gives it the same epoch. What the previous incarnation still was part
// of is taken from it: as after a clean shutdown when the broker knows its last epoch, else its data may be incomplete
// and it is no eligible leader any more.
func (c *Controller) registerBroker(v View, r *message.BrokerRegistrationRequest) Result {
	resp := &message.BrokerRegistrationResponse{BrokerEpoch: -1}
	if c.opts.ClusterID != "" && r.ClusterId != c.opts.ClusterID {
		resp.ErrorCode = int16(errcode.InconsistentClusterId)
		return Result{Response: resp}
	}
	if !supports(r.Features, v.Image) {
		resp.ErrorCode = int16(errcode.UnsupportedVersion)
		return Result{Response: resp}
	}
	if old := v.Image.Broker(r.BrokerId); old != nil && old.IncarnationID == r.IncarnationId {
		resp.BrokerEpoch = old.Epoch
		return Result{Response: resp}
	}
	b := &image.Broker{ID: r.BrokerId, Epoch: v.NextOffset, IncarnationID: r.IncarnationId, Rack: r.Rack, Fenced: true,
		Directories: slices.Clone(r.LogDirs)}
	for _, l := range r.Listeners {
		b.Endpoints = append(b.Endpoints, image.Endpoint{Listener: l.Name, Host: l.Host, Port: l.Port, Security: image.SecurityProtocol(l.SecurityProtocol)})
	}
	for _, f := range r.Features {
		b.Features = append(b.Features, image.FeatureRange{Name: f.Name, Min: f.MinSupportedVersion, Max: f.MaxSupportedVersion})
	}
	records := []image.Record{b.Record(v.Image.MetadataVersion())}
	if old := v.Image.Broker(r.BrokerId); old != nil {
		clean := r.PreviousBrokerEpoch == old.Epoch
		records = c.appendLost(records, v.Image, r.BrokerId, clean)
	}
	resp.BrokerEpoch = b.Epoch
	return Result{Records: records, Response: resp}
}

// supports reports whether a broker understands every finalised level.
func supports(features []message.BrokerRegistrationRequestFeature, i *image.Image) bool {
	levels, _ := i.Features()
	for name, level := range levels {
		ok := slices.ContainsFunc(features, func(f message.BrokerRegistrationRequestFeature) bool {
			return f.Name == name && f.MinSupportedVersion <= level && level <= f.MaxSupportedVersion
		})
		if !ok {
			return false
		}
	}
	return true
}

// heartbeat moves a broker between its states. A broker is unfenced when it has read the log up to its registration, so
// that it knows what it is asked to lead; it may stop when it leads nothing any more.
func (c *Controller) heartbeat(v View, r *message.BrokerHeartbeatRequest) Result {
	resp := &message.BrokerHeartbeatResponse{IsFenced: true}
	if err := checkEpoch(v.Image, r.BrokerId, r.BrokerEpoch); err.failed() {
		resp.ErrorCode = int16(err.code)
		return Result{Response: resp}
	}
	b := v.Image.Broker(r.BrokerId)
	resp.IsCaughtUp = r.CurrentMetadataOffset >= b.Epoch
	var records []image.Record
	switch {
	case r.WantShutDown && b.Fenced:
		resp.ShouldShutDown = true
	case r.WantShutDown:
		records, resp.ShouldShutDown, resp.IsFenced = c.shutDown(v.Image, b), true, true
	case r.WantFence && !b.Fenced:
		records = c.fence(v.Image, b)
	case r.WantFence || b.Fenced && !resp.IsCaughtUp:
	case b.Fenced:
		records = c.unfence(v.Image, b)
		resp.IsFenced = false
	default:
		resp.IsFenced = false
	}
	if rec, ok := cordonChange(v.Image, b, r); ok {
		records = append(records, rec)
	}
	return Result{Records: records, Response: resp}
}

func registrationChange(b *image.Broker) *logrecord.BrokerRegistrationChangeRecord {
	r := logrecord.NewBrokerRegistrationChangeRecord()
	r.BrokerId, r.BrokerEpoch = b.ID, b.Epoch
	return r
}

func (c *Controller) fence(i *image.Image, b *image.Broker) []image.Record {
	records := c.appendLost(nil, i, b.ID, true)
	r := registrationChange(b)
	r.Fenced = changeFence
	return append(records, image.Record{Record: r})
}

func (c *Controller) unfence(i *image.Image, b *image.Broker) []image.Record {
	r := registrationChange(b)
	r.Fenced = changeUnfence
	return c.appendRegained([]image.Record{{Record: r}}, i, b.ID)
}

// shutDown takes everything from a broker that wants to stop, and fences it. With more than one broker the leaderships
// move first and the others are waited for; as long as this node is the only one there is nobody to move them to.
func (c *Controller) shutDown(i *image.Image, b *image.Broker) []image.Record {
	begin := registrationChange(b)
	begin.InControlledShutdown = changeBegin
	return append([]image.Record{{Record: begin, Version: 1}}, c.fence(i, b)...)
}

// cordonChange notes the log dirs that take no new replicas, when the broker says something new about them.
func cordonChange(i *image.Image, b *image.Broker, r *message.BrokerHeartbeatRequest) (image.Record, bool) {
	if !i.MetadataVersion().CordonedDirs() || r.CordonedLogDirs == nil || r.WantShutDown {
		return image.Record{}, false
	}
	if b.CordonedDirectories != nil && slices.Equal(b.CordonedDirectories, r.CordonedLogDirs) {
		return image.Record{}, false
	}
	change := registrationChange(b)
	change.CordonedLogDirs = slices.Clone(r.CordonedLogDirs)
	return image.Record{Record: change, Version: 3}, true
}

// unregisterBroker forgets a broker and what it held.
func (c *Controller) unregisterBroker(v View, r *message.UnregisterBrokerRequest) Result {
	resp := &message.UnregisterBrokerResponse{}
	b := v.Image.Broker(r.BrokerId)
	if b == nil {
		err := refuse(errcode.BrokerIdNotRegistered, "Broker ID %d is not currently registered", r.BrokerId)
		resp.ErrorCode, resp.ErrorMessage = int16(err.code), err.message
		return Result{Response: resp}
	}
	records := c.appendLost(nil, v.Image, b.ID, true)
	records = append(records, image.Record{Record: &logrecord.UnregisterBrokerRecord{BrokerId: b.ID, BrokerEpoch: b.Epoch}})
	return Result{Records: records, Response: resp}
}

// registerController notes the endpoints and features of a controller.
func (c *Controller) registerController(v View, r *message.ControllerRegistrationRequest) Result {
	resp := &message.ControllerRegistrationResponse{}
	if !v.Image.MetadataVersion().Controllers() {
		resp.ErrorCode = int16(errcode.UnsupportedVersion)
		return Result{Response: resp}
	}
	n := &image.Controller{ID: r.ControllerId, IncarnationID: r.IncarnationId, ZkMigrationReady: r.ZkMigrationReady}
	for _, l := range r.Listeners {
		n.Endpoints = append(n.Endpoints, image.Endpoint{Listener: l.Name, Host: l.Host, Port: l.Port, Security: image.SecurityProtocol(l.SecurityProtocol)})
	}
	for _, f := range r.Features {
		n.Features = append(n.Features, image.FeatureRange{Name: f.Name, Min: f.MinSupportedVersion, Max: f.MaxSupportedVersion})
	}
	return Result{Records: []image.Record{n.Record()}, Response: resp}
}
