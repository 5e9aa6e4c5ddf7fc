package record

import "encoding/binary"

// PatchBase stamps base offset and partition leader epoch into a magic 2 batch, in place. Both lie outside the checksum,
// so a broker stores a produced batch without computing anything over it.
func PatchBase(batch []byte, baseOffset int64, leaderEpoch int32) {
	_ = batch[HeaderSize-1]
	binary.BigEndian.PutUint64(batch[offBaseOffset:], uint64(baseOffset))
	binary.BigEndian.PutUint32(batch[offEpoch:], uint32(leaderEpoch))
}

// PatchTimestamp sets the max timestamp and the timestamp type of a magic 2 batch, in place, and computes the checksum
// again. With logAppendTime every record then has maxTimestamp (ms); the records' own timestamps stay in the bytes.
func PatchTimestamp(batch []byte, logAppendTime bool, maxTimestamp int64) {
	attrs := binary.BigEndian.Uint16(batch[offAttributes:]) &^ AttrLogAppendTime
	if logAppendTime {
		attrs |= AttrLogAppendTime
	}
	binary.BigEndian.PutUint16(batch[offAttributes:], attrs)
	binary.BigEndian.PutUint64(batch[offMaxTime:], uint64(maxTimestamp))
	putChecksum(batch)
}

// Reseal gives a sealed batch, compressed or not, another producer id, epoch, base sequence and transactional flag, in
// place, and computes the checksum again; the records are not touched. A producer does this when its epoch was raised
// or its id replaced while batches were waiting (KIP-360). No socket may be reading the batch.
func Reseal(batch []byte, s Stamp) {
	attrs := int16(binary.BigEndian.Uint16(batch[offAttributes:])) &^ (AttrTransactional | AttrControl)
	binary.BigEndian.PutUint16(batch[offAttributes:], uint16(attrs|s.attributes()))
	binary.BigEndian.PutUint64(batch[offProducerID:], uint64(s.ProducerID))
	binary.BigEndian.PutUint16(batch[offPEpoch:], uint16(s.ProducerEpoch))
	binary.BigEndian.PutUint32(batch[offSequence:], uint32(s.BaseSequence))
	putChecksum(batch)
}

func putChecksum(batch []byte) { binary.BigEndian.PutUint32(batch[offCRC:], Checksum(batch)) }
