package image

// Stage is when a publisher is told about a new image, relative to the others of the same broker.
type Stage int8

// The stages, in order. Within a stage publishers are told in order of registration.
const (
	StageConfigs      Stage = iota // dynamic configs and features: what follows goes by them
	StageReplicas                  // partitions are made, deleted, led, followed
	StageCoordinators              // coordinators start on the partitions led, stop on those lost
	StageCache                     // what clients are answered from; always last
	stages
)

// Publisher is one part of a broker that follows the metadata.
type Publisher interface {
	// Publish is called with every new image and what changed since the one before, in the order of the log, always from
	// the same goroutine. It must not wait for anything that needs a later image. The image and the delta are
	// immutable and may be kept.
	Publish(d *Delta, i *Image)
}

// PublisherFunc is a function as a Publisher.
type PublisherFunc func(d *Delta, i *Image)

// Publish calls f.
func (f PublisherFunc) Publish(d *Delta, i *Image) { f(d, i) }

// Publishers tells each of a broker's publishers about new images in the order of their stages. The zero value is
// empty; add all before the first Publish.
type Publishers struct {
	byStage [stages][]Publisher
}

// Add registers a publisher.
func (p *Publishers) Add(s Stage, to Publisher) { p.byStage[s] = append(p.byStage[s], to) }

// Publish tells all of them, one after the other.
func (p *Publishers) Publish(d *Delta, i *Image) {
	for _, stage := range p.byStage {
		for _, to := range stage {
			to.Publish(d, i)
		}
	}
}
