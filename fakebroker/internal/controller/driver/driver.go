package driver

import (
	"errors"
	"sync"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/controller"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/fakebroker/internal/raft"
	"github.com/ottla-kafka/ottla/wire/message"
)

// ErrClosed is what Submit answers once the driver is closing.
var ErrClosed = errors.New("controller: closed")

// A Driver is the active controller of this process. Submit may be called from any goroutine, also before Start; all
// other state belongs to the driver's goroutine, or to whoever opens and closes it while that does not run.
type Driver struct {
	o       Options
	machine *controller.Controller
	quorum  *raft.Single
	epoch   int32
	loader  *image.Loader
	publish func(*image.Image, *image.Delta)

	broken error // nothing is accepted any more: closed, or
	failed bool  // the metadata log failed

	registered *message.BrokerHeartbeatRequest // how to take this process's broker out again; nil before Register

	// Checkpoints: what was written since the last one, and when that was.
	written       int64
	lastTimestamp int64 // ms, of the last batch
	checkpointAt  time.Time
	idleSince     time.Time // of the last record, for NoOp

	inbox   inbox
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when the goroutine has ended
	started bool
	once    sync.Once
	result  error // of Close
}

// Image returns the metadata as loaded. It may be called between Open and Start; afterwards images come by publish.
func (d *Driver) Image() *image.Image { return d.loader.Image() }

// Start begins to work. publish is called with each new image and what changed, in order, on the driver's goroutine, and
// before the response of the request that brought the change. First it gets everything there is, as a delta from the
// empty image. It must not call Submit and wait.
func (d *Driver) Start(publish func(*image.Image, *image.Delta)) {
	d.publish, d.started = publish, true
	go d.run() // ends by Close
}

// Submit proposes req. done runs exactly once, on the driver's goroutine as a rule, and must not block: with the response
// after all its effects are visible to the broker, or with an error when there is no controller any more.
func (d *Driver) Submit(req message.Request, done func(resp message.Response, err error)) {
	if !d.inbox.post(func() { d.propose(req, done) }) {
		done(nil, ErrClosed)
	}
}

func (d *Driver) run() {
	defer close(d.done)
	if delta, img := d.everything(); img != nil {
		d.publish(img, delta)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Stop()
		if t := d.deadline(); !t.IsZero() {
			timer.Reset(time.Until(t))
		}
		select {
		case <-d.inbox.wake:
			for _, f := range d.inbox.take() {
				f()
			}
		case <-timer.C:
			d.tick(time.Now())
		case <-d.stop:
			return
		}
	}
}

// everything is the loaded image as one change.
func (d *Driver) everything() (*image.Delta, *image.Image) {
	img := d.loader.Image()
	offset, epoch := img.Offset()
	delta := image.NewDelta(image.Empty())
	for rec := range img.Records() {
		if err := delta.Apply(offset, epoch, rec); err != nil {
			panic("controller: an image does not apply to the empty one: " + err.Error())
		}
	}
	// The partitions' pointers must be those of the image the loader goes on from, or later deltas would compare apples
	// with pears: go on from this one.
	result := delta.Image()
	d.loader = image.NewLoader(result)
	return delta, result
}

// Close takes this process's broker out of the cluster as a controlled shutdown does, and closes the metadata log. Waiting
// requests are answered with ErrClosed. It returns when the goroutine has ended; more calls return the same error.
func (d *Driver) Close() error {
	d.once.Do(func() {
		close(d.stop)
		if d.started {
			<-d.done
		}
		d.broken = errors.Join(d.broken, ErrClosed)
		for _, f := range d.inbox.close() {
			f() // propose answers with broken
		}
		now := time.Now()
		d.result = errors.Join(d.deregister(now), d.quorum.Close(now))
	})
	return d.result
}
