package server

import "github.com/ottla-kafka/ottla/wire"

// metadataHandlers are the APIs about topics, configs and the cluster: most of them are proposals to the controller.
var metadataHandlers = map[wire.Key]handler{}
