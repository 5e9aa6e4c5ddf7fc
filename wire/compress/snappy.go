package compress

import (
	"encoding/binary"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
)

// Java's snappy library (xerial) wraps snappy blocks in a stream of its own, and that is what Kafka writes:
//
//	82 'S' 'N' 'A' 'P' 'P' 'Y' 0   int32 version   int32 lowest compatible version
//	{ int32 length of a block, block }*
//
// librdkafka writes a bare block instead. Both must be read.
const (
	xerialMagic     = "\x82SNAPPY\x00"
	xerialHeaderLen = 16
	xerialVersion   = 1
	// snappyBlock is how much goes into one block. Kafka's 32 KiB is the size of its output buffer; readers take blocks of
	// any size, and a larger one finds matches across all of its 64 KiB windows.
	snappyBlock = 1 << 20
	// snappyRatio is more than any snappy block can expand by: a 3 byte copy yields 64 bytes at most.
	snappyRatio = 22
)

type snappyEncoder struct{}

func (snappyEncoder) append(dst, src []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = binary.BigEndian.AppendUint32(dst, xerialVersion)
	dst = binary.BigEndian.AppendUint32(dst, xerialVersion)
	for len(src) > 0 {
		block := src[:min(len(src), snappyBlock)]
		src = src[len(block):]
		at := len(dst)
		dst = reserve(dst, 4+s2.MaxEncodedLen(len(block)))
		n := len(s2.EncodeSnappy(dst[at+4:cap(dst)], block))
		binary.BigEndian.PutUint32(dst[at:cap(dst)], uint32(n))
		dst = dst[:at+4+n]
	}
	return dst
}

// reserve makes sure that n more bytes fit behind dst, without changing its length.
func reserve(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	bigger := make([]byte, len(dst), max(len(dst)+n, 2*cap(dst)))
	copy(bigger, dst)
	return bigger
}

func appendSnappy(dst, src []byte, b bound) ([]byte, error) {
	if len(src) < xerialHeaderLen || string(src[:len(xerialMagic)]) != xerialMagic {
		return appendSnappyBlock(dst, len(dst), src, b)
	}
	// As in Java: what the writer says about compatible readers is not looked at.
	if v := int32(binary.BigEndian.Uint32(src[8:])); v < xerialVersion {
		return dst, corruptf(Snappy, "version %d of the stream format, %d is the lowest there is", v, xerialVersion)
	}
	out := dst
	rest := src[xerialHeaderLen:]
	for len(rest) > 0 {
		if len(rest) < 4 {
			return dst, corruptf(Snappy, "%d bytes at %d where a block length should be", len(rest), len(src)-len(rest))
		}
		// Streams may follow each other; the Java reader skips the header of the next.
		if len(rest) >= xerialHeaderLen && string(rest[:len(xerialMagic)]) == xerialMagic {
			rest = rest[xerialHeaderLen:]
			continue
		}
		n := int32(binary.BigEndian.Uint32(rest))
		rest = rest[4:]
		if n <= 0 || int(n) > len(rest) {
			return dst, corruptf(Snappy, "block length %d at %d, %d bytes are left", n, len(src)-len(rest)-4, len(rest))
		}
		var err error
		if out, err = appendSnappyBlock(out, len(dst), rest[:n], b); err != nil {
			return dst, err
		}
		rest = rest[n:]
	}
	return out, nil
}

// appendSnappyBlock decodes one block; start is where the batch's records begin in dst.
func appendSnappyBlock(dst []byte, start int, block []byte, b bound) ([]byte, error) {
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return dst, corruptf(Snappy, "block of %d bytes: %v", len(block), err)
	}
	if n > snappyRatio*len(block) {
		return dst, corruptf(Snappy, "block of %d bytes claims to hold %d", len(block), n)
	}
	at := len(dst)
	if n > b.room-(at-start) {
		return dst, b.exceeded()
	}
	dst = reserve(dst, n)
	if n == 0 && len(block) != 1 {
		return dst, corruptf(Snappy, "block of %d bytes claims to hold none", len(block))
	}
	if _, err := snappy.Decode(dst[at:at+n:at+n], block); err != nil {
		return dst[:at], corruptf(Snappy, "block of %d bytes: %v", len(block), err)
	}
	return dst[:at+n], nil
}
