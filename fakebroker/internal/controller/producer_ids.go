package controller

import (
	"math"

	"github.com/ottla-kafka/ottla/fakebroker/internal/image"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
	"github.com/ottla-kafka/ottla/wire/message"
)

// producerIDBlock is how many producer ids a broker gets at a time. Ids of a block that its broker loses are never used.
const producerIDBlock = 1000

// allocateProducerIDs hands the next block to a broker.
func (c *Controller) allocateProducerIDs(v View, r *message.AllocateProducerIdsRequest) Result {
	resp := &message.AllocateProducerIdsResponse{ProducerIdStart: -1}
	if err := checkEpoch(v.Image, r.BrokerId, r.BrokerEpoch); err.failed() {
		resp.ErrorCode = int16(err.code)
		return Result{Response: resp}
	}
	first := v.Image.NextProducerID()
	if first > math.MaxInt64-producerIDBlock {
		resp.ErrorCode = int16(errcode.UnknownServerError) // 2⁶³ ids are used up
		return Result{Response: resp}
	}
	resp.ProducerIdStart, resp.ProducerIdLen = first, producerIDBlock
	rec := &logrecord.ProducerIdsRecord{BrokerId: r.BrokerId, BrokerEpoch: r.BrokerEpoch, NextProducerId: first + producerIDBlock}
	return Result{Records: []image.Record{{Record: rec}}, Response: resp}
}
