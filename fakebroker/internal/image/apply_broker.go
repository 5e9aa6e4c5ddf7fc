package image

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ottla-kafka/ottla/wire/logrecord"
)

func (d *Delta) setBroker(id int32, b *Broker) {
	if !d.ownBrokers {
		d.img.brokers, d.ownBrokers = maps.Clone(d.img.brokers), true
	}
	if d.changedBrokers == nil {
		d.changedBrokers = make(map[int32]bool)
	}
	if d.img.brokers == nil {
		d.img.brokers = make(map[int32]*Broker)
	}
	d.changedBrokers[id] = true
	if b == nil {
		delete(d.img.brokers, id)
		return
	}
	d.img.brokers[id] = b
}

func (d *Delta) registerBroker(r *logrecord.RegisterBrokerRecord) error {
	b := &Broker{
		ID: r.BrokerId, Epoch: r.BrokerEpoch, IncarnationID: r.IncarnationId, Rack: r.Rack, Fenced: r.Fenced,
		InControlledShutdown: r.InControlledShutdown, Directories: r.LogDirs, CordonedDirectories: r.CordonedLogDirs,
	}
	for _, e := range r.EndPoints {
		b.Endpoints = append(b.Endpoints, Endpoint{e.Name, e.Host, e.Port, SecurityProtocol(e.SecurityProtocol)})
	}
	for _, f := range r.Features {
		b.Features = append(b.Features, FeatureRange{f.Name, f.MinSupportedVersion, f.MaxSupportedVersion})
	}
	sortFeatures(b.Features)
	d.setBroker(b.ID, b)
	return nil
}

// broker returns a copy of a registration for changing, after checking that the record is about this incarnation.
func (d *Delta) broker(id int32, epoch int64) (*Broker, error) {
	b := d.img.brokers[id]
	if b == nil {
		return nil, fmt.Errorf("broker %d is not registered", id)
	}
	if b.Epoch != epoch {
		return nil, fmt.Errorf("broker %d has epoch %d, the record says %d", id, b.Epoch, epoch)
	}
	next := *b
	return &next, nil
}

func (d *Delta) changeBroker(r *logrecord.BrokerRegistrationChangeRecord) error {
	b, err := d.broker(r.BrokerId, r.BrokerEpoch)
	if err != nil {
		return err
	}
	switch r.Fenced { // 1 fence, -1 unfence, 0 as it was
	case 1:
		b.Fenced = true
	case -1:
		b.Fenced = false
	}
	if r.InControlledShutdown == 1 {
		b.InControlledShutdown = true
	}
	if len(r.LogDirs) > 0 {
		b.Directories = r.LogDirs
	}
	if r.CordonedLogDirs != nil {
		b.CordonedDirectories = r.CordonedLogDirs
	}
	d.setBroker(b.ID, b)
	return nil
}

func (d *Delta) fenceBroker(id int32, epoch int64, fenced bool) error {
	b, err := d.broker(id, epoch)
	if err != nil {
		return err
	}
	b.Fenced = fenced
	d.setBroker(id, b)
	return nil
}

func (d *Delta) unregisterBroker(r *logrecord.UnregisterBrokerRecord) error {
	if _, err := d.broker(r.BrokerId, r.BrokerEpoch); err != nil {
		return err
	}
	d.setBroker(r.BrokerId, nil)
	return nil
}

func (d *Delta) setController(id int32, c *Controller) {
	if !d.ownControllers {
		d.img.controllers, d.ownControllers = maps.Clone(d.img.controllers), true
	}
	if d.img.controllers == nil {
		d.img.controllers = make(map[int32]*Controller)
	}
	if c == nil {
		delete(d.img.controllers, id)
		return
	}
	d.img.controllers[id] = c
}

func (d *Delta) registerController(r *logrecord.RegisterControllerRecord) error {
	c := &Controller{ID: r.ControllerId, IncarnationID: r.IncarnationId, ZkMigrationReady: r.ZkMigrationReady}
	for _, e := range r.EndPoints {
		c.Endpoints = append(c.Endpoints, Endpoint{e.Name, e.Host, e.Port, SecurityProtocol(e.SecurityProtocol)})
	}
	for _, f := range r.Features {
		c.Features = append(c.Features, FeatureRange{f.Name, f.MinSupportedVersion, f.MaxSupportedVersion})
	}
	sortFeatures(c.Features)
	d.setController(c.ID, c)
	return nil
}

// sortFeatures makes equal sets equal lists: Apache Kafka registers with them in any order.
func sortFeatures(f []FeatureRange) {
	slices.SortFunc(f, func(a, b FeatureRange) int { return strings.Compare(a.Name, b.Name) })
}

func (d *Delta) unregisterController(r *logrecord.UnregisterControllerRecord) error {
	if d.img.controllers[r.ControllerId] == nil {
		return fmt.Errorf("controller %d is not registered", r.ControllerId)
	}
	d.setController(r.ControllerId, nil)
	return nil
}
