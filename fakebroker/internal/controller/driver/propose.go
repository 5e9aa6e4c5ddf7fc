package driver

import (
	"fmt"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/controller"
	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/message"
)

// propose takes one request from proposal to answer.
func (d *Driver) propose(req message.Request, done func(message.Response, error)) {
	if d.broken != nil {
		done(nil, d.broken)
		return
	}
	now := time.Now()
	if q, ok := req.(*message.DescribeQuorumRequest); ok {
		done(d.describeQuorum(now, q), nil)
		return
	}
	result, err := d.machine.Handle(now, d.view(), req)
	if err != nil {
		done(nil, err)
		return
	}
	if len(result.Records) > 0 {
		delta, err := d.append(now, result.Records)
		if err != nil {
			done(nil, err)
			return
		}
		d.tell(delta)
	}
	done(result.Response, nil)
	d.checkpointIfDue(now)
}

// tell publishes a change; there is none to tell within a metadata transaction.
func (d *Driver) tell(delta *image.Delta) {
	if delta != nil && d.publish != nil {
		d.publish(d.loader.Image(), delta)
	}
}

func (d *Driver) view() controller.View {
	return controller.View{Image: d.loader.Image(), NextOffset: d.quorum.EndOffset()}
}

// append writes records as one batch and applies them. A failure of the log is final: what is on disk is not known any
// more, and only a restart finds out.
func (d *Driver) append(now time.Time, records []image.Record) (*image.Delta, error) {
	if len(records) == 0 {
		return nil, nil
	}
	values, err := encode(records)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	base := d.quorum.EndOffset()
	if _, err := d.quorum.Append(now, d.epoch, values); err != nil {
		d.failed = true
		d.broken = fmt.Errorf("controller: metadata log failed, restart the broker: %w", err)
		d.o.Logger.Error("metadata log failed", "offset", base, "err", err)
		return nil, d.broken
	}
	for i, rec := range records {
		if err := d.loader.Apply(base+int64(i), d.epoch, rec); err != nil {
			// The controller proposed what its own image refuses: a bug, and every node would stop here.
			panic("controller: " + err.Error())
		}
	}
	for _, v := range values {
		d.written += int64(len(v))
	}
	d.lastTimestamp, d.idleSince = now.UnixMilli(), now
	delta, _ := d.loader.Take()
	return delta, nil
}

// encode frames records for the log, all into one buffer.
func encode(records []image.Record) ([][]byte, error) {
	values := make([][]byte, len(records))
	ends := make([]int, len(records))
	buf := make([]byte, 0, 80*len(records))
	for i, r := range records {
		var err error
		if buf, err = r.AppendValue(buf); err != nil {
			return nil, err
		}
		ends[i] = len(buf)
	}
	from := 0
	for i, end := range ends {
		values[i] = buf[from:end:end]
		from = end
	}
	return values, nil
}
