package server

import (
	"github.com/ottla-kafka/ottla/fakebroker/internal/network"
	"github.com/ottla-kafka/ottla/fakebroker/internal/storage"
	"github.com/ottla-kafka/ottla/fakebroker/internal/vfs"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
)

// A fetchAnswer writes a Fetch response by hand, because its records must not be copied: they are spliced in as stored
// bytes or as regions of files. A test holds it against the generated encoder for every version.
type fetchAnswer struct {
	request *Request
	code    errcode.Code
	ctx     *fetchContext // nil: only an error
	hints   []message.FetchResponseNodeEndpoint

	splices []network.Splice
}

// Release implements network.Releaser: the records are not needed any more.
func (a *fetchAnswer) Release() {
	if a.ctx == nil {
		return
	}
	for i := range a.ctx.parts {
		a.ctx.parts[i].result.records.Release()
	}
	a.ctx.done()
}

// AppendTo implements network.Answer.
func (a *fetchAnswer) AppendTo(dst []byte) ([]byte, []network.Splice, error) {
	r := a.request
	dst = wire.AppendResponseHeader(dst, wire.KeyFetch, r.Version, r.CorrelationID)
	dst = wire.AppendInt32(dst, 0) // throttle time
	if r.Version >= 7 {
		dst = wire.AppendInt16(dst, int16(a.code))
		var session int32
		if a.ctx != nil {
			session = a.ctx.sessionID
		}
		dst = wire.AppendInt32(dst, session)
	}
	dst = a.appendTopics(dst)
	if r.Version >= 12 {
		dst = a.appendHints(dst)
	}
	return dst, a.splices, nil
}

// appendTopics writes the partitions that are to be mentioned; neighbours of one topic share an entry.
func (a *fetchAnswer) appendTopics(dst []byte) []byte {
	version := a.request.Version
	if a.ctx == nil {
		return appendCount(dst, version, 0)
	}
	parts := a.ctx.parts
	topics := 0
	last := -1
	for i := range parts {
		if parts[i].mention() && (last < 0 || !sameTopic(version, &parts[last], &parts[i])) {
			topics++
		}
		if parts[i].mention() {
			last = i
		}
	}
	dst = appendCount(dst, version, topics)
	for i := 0; i < len(parts); {
		if !parts[i].mention() {
			i++
			continue
		}
		end, n := i, 0
		for ; end < len(parts) && (!parts[end].mention() || sameTopic(version, &parts[i], &parts[end])); end++ {
			if parts[end].mention() {
				n++
			}
		}
		if version >= 13 {
			dst = wire.AppendUUID(dst, parts[i].id)
		} else if version >= 12 {
			dst = wire.AppendCompactString(dst, parts[i].name)
		} else {
			dst = wire.AppendString(dst, parts[i].name)
		}
		dst = appendCount(dst, version, n)
		for ; i < end; i++ {
			if parts[i].mention() {
				dst = a.appendPartition(dst, &parts[i])
			}
		}
		if version >= 12 {
			dst = append(dst, 0)
		}
	}
	return dst
}

func (a *fetchAnswer) appendPartition(dst []byte, fp *fetchPartition) []byte {
	version, res := a.request.Version, &fp.result
	dst = wire.AppendInt32(dst, fp.index)
	dst = wire.AppendInt16(dst, int16(res.code))
	dst = wire.AppendInt64(dst, res.highWatermark)
	dst = wire.AppendInt64(dst, res.stable)
	if version >= 5 {
		dst = wire.AppendInt64(dst, res.logStart)
	}
	dst = appendAborted(dst, version, res)
	if version >= 11 {
		dst = wire.AppendInt32(dst, -1) // preferred read replica: the leader itself
	}
	dst = appendCount(dst, version, res.size)
	if res.size > 0 {
		a.splices = append(a.splices, spliceOf(len(dst), &res.records))
	}
	if version < 12 {
		return dst
	}
	return appendPartitionTags(dst, res)
}

func appendAborted(dst []byte, version int16, res *fetchResult) []byte {
	if !res.abortedSet {
		if version >= 12 {
			return append(dst, 0)
		}
		return wire.AppendInt32(dst, -1)
	}
	dst = appendCount(dst, version, len(res.aborted))
	for _, txn := range res.aborted {
		dst = wire.AppendInt64(dst, txn.ProducerID)
		dst = wire.AppendInt64(dst, txn.FirstOffset)
		if version >= 12 {
			dst = append(dst, 0)
		}
	}
	return dst
}

// appendPartitionTags writes the tagged fields: 0 diverging epoch (13 bytes), 1 current leader (9 bytes).
func appendPartitionTags(dst []byte, res *fetchResult) []byte {
	diverging, leader := res.diverging.Epoch >= 0 || res.diverging.EndOffset >= 0, res.leader >= 0 || res.epoch >= 0
	count := byte(0)
	if diverging {
		count++
	}
	if leader {
		count++
	}
	dst = append(dst, count)
	if diverging {
		dst = append(dst, 0, 13)
		dst = wire.AppendInt32(dst, res.diverging.Epoch)
		dst = wire.AppendInt64(dst, res.diverging.EndOffset)
		dst = append(dst, 0)
	}
	if leader {
		dst = append(dst, 1, 9)
		dst = wire.AppendInt32(dst, res.leader)
		dst = wire.AppendInt32(dst, res.epoch)
		dst = append(dst, 0)
	}
	return dst
}

// appendHints writes the response's own tagged field: 0 node endpoints, when there are any.
func (a *fetchAnswer) appendHints(dst []byte) []byte {
	if len(a.hints) == 0 {
		return append(dst, 0)
	}
	field := wire.AppendCompactArrayLen(nil, len(a.hints))
	for i := range a.hints {
		h := &a.hints[i]
		field = wire.AppendInt32(field, h.NodeId)
		field = wire.AppendCompactString(field, h.Host)
		field = wire.AppendInt32(field, h.Port)
		field = wire.AppendCompactNullableString(field, h.Rack)
		field = append(field, 0)
	}
	dst = append(dst, 1, 0)
	dst = wire.AppendUvarint(dst, uint32(len(field)))
	return append(dst, field...)
}

// appendCount writes the length of an array or of bytes that are not null.
func appendCount(dst []byte, version int16, n int) []byte {
	if version >= 12 {
		return wire.AppendUvarint(dst, uint32(n)+1)
	}
	return wire.AppendInt32(dst, int32(n))
}

func sameTopic(version int16, a, b *fetchPartition) bool {
	if version >= 13 {
		return a.id == b.id
	}
	return a.name == b.name
}

func spliceOf(at int, r *storage.Records) network.Splice {
	if r.File == nil {
		return network.Splice{At: at, Bytes: r.Mem}
	}
	s := network.Splice{At: at, File: network.FileRegion{File: r.File, Pos: r.Pos, N: r.Len}}
	if d, ok := vfs.AsDescriptor(r.File); ok {
		s.File.Descriptor = d
	}
	return s
}
