package server

import "github.com/ottla-kafka/ottla/wire"

// A handler answers one API. It runs on the connection's goroutine, holding one of the num.io.threads slots: it may wait
// for the disk, but what waits for other requests (delayed produce and fetch, a metadata commit) returns and responds
// later from whatever goroutine learns of it.
type handler func(b *Broker, r *Request)

// handlers is every API this broker implements; ApiVersions lists exactly these.
var handlers = func() map[wire.Key]handler {
	all := make(map[wire.Key]handler)
	for _, part := range []map[wire.Key]handler{dataHandlers, metadataHandlers, groupHandlers, transactionHandlers} {
		for k, h := range part {
			all[k] = h
		}
	}
	return all
}()
