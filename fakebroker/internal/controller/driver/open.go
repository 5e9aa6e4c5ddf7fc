package driver

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/controller"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/raft"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Open makes this node the active controller: it formats a new folder, replays what an old one holds, takes the next
// leader epoch, and writes the bootstrap records of a new cluster. Image then is the cluster's metadata. No goroutine
// runs before Start; Close is needed in any case.
func Open(o Options) (*Driver, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Rand == nil {
		o.Rand = func(int) int { return 0 }
	}
	if o.Controller == nil {
		o.Controller = &Endpoint{Name: "CONTROLLER", Host: "127.0.0.1", Port: 9093}
	}
	if o.Levels == nil {
		o.Levels = image.DefaultLevels()
	}
	d := &Driver{
		o:      o,
		loader: image.NewLoader(image.Empty()),
		inbox:  newInbox(),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		machine: controller.New(controller.Options{NodeID: o.NodeID, ClusterID: o.ClusterID, Config: o.Config,
			NewUUID: o.NewUUID, Rand: o.Rand}),
	}
	if err := d.open(time.Now()); err != nil {
		if d.quorum != nil {
			err = errors.Join(err, d.quorum.Close(time.Now()))
		}
		return nil, err
	}
	return d, nil
}

func (d *Driver) open(now time.Time) error {
	dir := filepath.Join(d.o.Dir, storage.TopicPartition{Topic: storage.MetadataTopic}.String())
	if err := d.o.FS.MkdirAll(dir); err != nil {
		return fmt.Errorf("controller: metadata log: %w", err)
	}
	ro := raft.Options{FS: d.o.FS, Dir: dir, Self: raft.Voter{ID: d.o.NodeID, DirectoryID: d.o.DirectoryID}}
	if e := d.o.Controller; !d.o.StaticQuorum {
		ro.Self.Endpoints = []raft.Endpoint{{Name: e.Name, Host: e.Host, Port: e.Port}}
	}
	ro.Retention = raft.Retention{Bytes: d.o.Config.Int("metadata.max.retention.bytes"), Age: ms(d.o.Config.Int("metadata.max.retention.ms"))}
	if err := d.format(now, ro); err != nil {
		return fmt.Errorf("controller: format %s: %w", dir, err)
	}
	log, err := openLog(&d.o, dir, now)
	if err != nil {
		return fmt.Errorf("controller: metadata log: %w", err)
	}
	ro.Log = log
	q, fresh, err := raft.Open(now, ro, d.load)
	if err != nil {
		return errors.Join(fmt.Errorf("controller: metadata log: %w", err), log.Close(now))
	}
	d.quorum = q
	d.epoch = q.Leader().Epoch
	d.loader.Take()
	d.checkpointed(now)
	if fresh {
		if err := d.bootstrap(now); err != nil {
			return err
		}
	}
	return d.registerController(now)
}

func ms(n int64) time.Duration {
	if n < 0 {
		return -1
	}
	return time.Duration(n) * time.Millisecond
}

func (d *Driver) format(now time.Time, ro raft.Options) error {
	formatted, err := raft.Formatted(ro.FS, ro.Dir)
	if err != nil || formatted {
		return err
	}
	values, err := encode(controller.FormatRecords(d.o.Levels))
	if err != nil {
		return err
	}
	return raft.Format(now, ro, values)
}

// load applies what the folder holds.
func (d *Driver) load(b raft.Batch) error {
	for i, value := range b.Values {
		offset, epoch := b.BaseOffset+int64(i), b.Epoch
		if b.Checkpoint != nil {
			offset, epoch = b.Checkpoint.Offset-1, b.Checkpoint.Epoch
		}
		rec, err := image.ParseRecord(value)
		if err != nil {
			return fmt.Errorf("record at offset %d: %w", offset, err)
		}
		if err := d.loader.Apply(offset, epoch, rec); err != nil {
			return err
		}
		d.written += int64(len(value))
	}
	d.lastTimestamp = b.Timestamp
	return nil
}

// bootstrap writes the first records of a cluster. The levels are those of the format's checkpoint, which may be Apache
// Kafka's with other ones than ours.
func (d *Driver) bootstrap(now time.Time) error {
	levels := d.o.Levels
	if d.loader.Image().Feature(image.MetadataFeature) > 0 {
		levels = levelsOf(d.loader.Image())
	}
	_, err := d.append(now, d.machine.Bootstrap(levels))
	return err
}

// levelsOf lists the finalised levels, metadata.version first, the others by name.
func levelsOf(i *image.Image) []image.FeatureRange {
	levels := []image.FeatureRange{{Name: image.MetadataFeature, Max: i.Feature(image.MetadataFeature)}}
	for _, f := range image.SupportedFeatures() {
		if level := i.Feature(f.Name); level > 0 && f.Name != image.MetadataFeature {
			levels = append(levels, image.FeatureRange{Name: f.Name, Max: level})
		}
	}
	return levels
}

// registerController notes where this controller is reached.
func (d *Driver) registerController(now time.Time) error {
	e := d.o.Controller
	if !d.loader.Image().MetadataVersion().Controllers() {
		return nil
	}
	req := &message.ControllerRegistrationRequest{ControllerId: d.o.NodeID, IncarnationId: d.o.NewUUID()}
	req.Listeners = []message.ControllerRegistrationRequestListener{{Name: e.Name, Host: e.Host, Port: e.Port, SecurityProtocol: e.SecurityProtocol}}
	for _, f := range image.SupportedFeatures() {
		req.Features = append(req.Features, message.ControllerRegistrationRequestFeature{Name: f.Name, MinSupportedVersion: f.Min, MaxSupportedVersion: f.Max})
	}
	result, err := d.machine.Handle(now, d.view(), req)
	if err != nil {
		return err
	}
	_, err = d.append(now, result.Records)
	return err
}
