package server

import "github.com/ottla-kafka/ottla/wire"

// dataHandlers are the APIs about records, offsets and connections.
var dataHandlers = map[wire.Key]handler{
	wire.KeyProduce:              handleProduce,
	wire.KeyFetch:                handleFetch,
	wire.KeyListOffsets:          handleListOffsets,
	wire.KeySaslHandshake:        handleSaslHandshake,
	wire.KeyApiVersions:          handleApiVersions,
	wire.KeyDeleteRecords:        handleDeleteRecords,
	wire.KeyInitProducerId:       handleInitProducerId,
	wire.KeyOffsetForLeaderEpoch: handleOffsetForLeaderEpoch,
	wire.KeySaslAuthenticate:     handleSaslAuthenticate,
	wire.KeyDescribeProducers:    handleDescribeProducers,
}
