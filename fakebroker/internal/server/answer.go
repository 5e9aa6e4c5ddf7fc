package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
)

// A messageAnswer is header and body of one response message; it is encoded when the connection writes it.
type messageAnswer struct {
	key           wire.Key
	version       int16
	correlationID int32
	body          message.Response
}

// AppendTo implements network.Answer.
func (a *messageAnswer) AppendTo(dst []byte) ([]byte, []network.Splice, error) {
	dst = wire.AppendResponseHeader(dst, a.key, a.version, a.correlationID)
	dst, err := a.body.AppendTo(dst, a.version)
	return dst, nil, err
}

// rawAnswer is a frame without header: SASL tokens after a version 0 handshake.
type rawAnswer []byte

// AppendTo implements network.Answer.
func (a rawAnswer) AppendTo(dst []byte) ([]byte, []network.Splice, error) {
	return append(dst, a...), nil, nil
}
