package image

import "github.com/ottla-kafka/ottla/wire"

// SecurityProtocol is how a listener is secured, in Apache Kafka's numbers.
type SecurityProtocol int16

// The security protocols.
const (
	Plaintext     SecurityProtocol = 0
	SSL           SecurityProtocol = 1
	SASLPlaintext SecurityProtocol = 2
	SASLSSL       SecurityProtocol = 3
)

// Endpoint is where a listener of a node can be reached.
type Endpoint struct {
	Listener string
	Host     string
	Port     uint16
	Security SecurityProtocol
}

// FeatureRange is the range of levels of a feature that a node supports.
type FeatureRange struct {
	Name     string
	Min, Max int16
}

// Broker is a broker's registration. It is immutable once it is part of an Image.
type Broker struct {
	ID                   int32
	Epoch                int64 // offset of the registration record; every restart gets a new one
	IncarnationID        wire.UUID
	Endpoints            []Endpoint
	Features             []FeatureRange
	Rack                 *string
	Fenced               bool // registered, but not (or not any more) taking part
	InControlledShutdown bool
	Directories          []wire.UUID // its log dirs
	CordonedDirectories  []wire.UUID // log dirs that take no new partitions; nil = never said
}

// Endpoint returns the broker's endpoint on a listener.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Listener == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Active reports whether the broker may lead and be placed on.
func (b *Broker) Active() bool { return !b.Fenced && !b.InControlledShutdown }

// Controller is a controller's registration. It is immutable once it is part of an Image.
type Controller struct {
	ID               int32
	IncarnationID    wire.UUID
	ZkMigrationReady bool
	Endpoints        []Endpoint
	Features         []FeatureRange
}
