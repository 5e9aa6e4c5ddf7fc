package server

import "github.com/ottla-kafka/ottla/wire"

// dataHandlers are the APIs about records, offsets and connections.
var dataHandlers = map[wire.Key]handler{}
