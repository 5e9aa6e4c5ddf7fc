package message

import "github.com/ottla-kafka/ottla/wire"

// Message is any message of this package.
type Message = wire.Message

// Request is the body of a request. It knows its API and the response that answers it.
type Request interface {
	Message
	Key() wire.Key
	NewResponse() Response // with defaults
}

// Response is the body of a response.
type Response interface {
	Message
	Key() wire.Key
}
