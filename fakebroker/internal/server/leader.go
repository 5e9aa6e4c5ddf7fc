package server

import (
	"errors"
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
)

// endpoint is where clients of one listener find a broker.
type endpoint struct {
	host string
	port int32
	rack *string
}

// currentLeader looks in the image who leads a partition; node is nil when that broker cannot be reached through the
// listener.
func (b *Broker) currentLeader(listener string, t *topic, index int32) (leader, epoch int32, node *endpoint) {
	if t == nil {
		return image.NoLeader, -1, nil
	}
	img := b.Image()
	p := img.TopicByID(t.id).Partition(index)
	if p == nil {
		return image.NoLeader, -1, nil
	}
	if !img.Alive(p.Leader) {
		return p.Leader, p.LeaderEpoch, nil
	}
	broker := img.Broker(p.Leader)
	for i := range broker.Endpoints {
		if e := &broker.Endpoints[i]; e.Listener == listener {
			return p.Leader, p.LeaderEpoch, &endpoint{host: e.Host, port: int32(e.Port), rack: broker.Rack}
		}
	}
	return p.Leader, p.LeaderEpoch, nil
}

// neverAnswer leaves a request without answer, as Apache Kafka does where its handler fails without one; the connection
// is closed when it has been idle for too long.
func (b *Broker) neverAnswer(r *Request, reason error) {
	b.log.Warn("request is never answered", "api", r.Key, "peer", r.RemoteAddr, "reason", reason)
	idle := time.Duration(b.Config().Int("connections.max.idle.ms")) * time.Millisecond
	x := r.x
	time.AfterFunc(idle, func() { x.Fail(errors.New("idle: its last request was never answered")) })
}
