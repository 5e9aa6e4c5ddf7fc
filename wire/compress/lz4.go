package compress

import (
	"encoding/binary"

	"github.com/pierrec/lz4/v4"
)

// An lz4 frame, little endian:
//
//	uint32 magic · FLG · BD · [uint64 content size] · header checksum (1 byte)
//	{ uint32 size, high bit: stored as it is · block · [uint32 checksum] }*  ·  uint32 0  ·  [uint32 content checksum]
//
// FLG: bits 6-7 version 1, 5 blocks are independent, 4 block checksums, 3 content size, 2 content checksum, 0 dictionary.
// BD: bits 4-6 the largest block: 4 64 KiB, 5 256 KiB, 6 1 MiB, 7 4 MiB.
// Kafka writes version 1, independent blocks of 64 KiB, nothing else. The frame is drawn here rather than left to the
// library's Writer because batches are in memory as a whole: no copy into block buffers, no goroutine, no checksums.
const (
	lz4Magic       = 0x184d2204
	lz4Version     = 0x40
	lz4Independent = 0x20
	lz4BlockSum    = 0x10
	lz4ContentSize = 0x08
	lz4ContentSum  = 0x04
	lz4Reserved    = 0x02
	lz4Dictionary  = 0x01
	lz4Stored      = 1 << 31
	lz4HeaderLen   = 7
	lz4Window      = 64 << 10
	// lz4Ratio is more than a block can expand by: each further byte of a match length stands for 255.
	lz4Ratio = 256
)

// lz4BlockSize returns the block size that a BD code (4..7) stands for.
func lz4BlockSize(code byte) int { return 1 << (8 + 2*code) }

// lz4Bound is how large a block of n bytes can become.
func lz4Bound(n int) int { return lz4.CompressBlockBound(n) }

// lz4Block compresses one block into dst, which has lz4Bound(len(src)) bytes, and returns its size. Both of the library's
// compressors do; each keeps its table between blocks.
type lz4Block interface {
	CompressBlock(src, dst []byte) (int, error)
}

type lz4Encoder struct{ block lz4Block }

// newLz4Encoder maps Kafka's levels as Kafka does: its default, 9, is the fast compressor, all others are the thorough
// one, which here has nine steps (levels above 9 are its last).
func newLz4Encoder(level int) encoder {
	if level == 9 {
		return lz4Encoder{new(lz4.Compressor)}
	}
	steps := [...]lz4.CompressionLevel{lz4.Level1, lz4.Level2, lz4.Level3, lz4.Level4, lz4.Level5, lz4.Level6,
		lz4.Level7, lz4.Level8, lz4.Level9}
	return lz4Encoder{&lz4.CompressorHC{Level: steps[min(level, len(steps))-1]}}
}

// append writes one frame. A batch that is larger than 64 KiB gets larger blocks, so that matches are found across all
// of it; every reader of the format sizes its buffers by BD.
func (e lz4Encoder) append(dst, src []byte) []byte {
	code := byte(4)
	for code < 7 && lz4BlockSize(code) < len(src) {
		code++
	}
	dst = append(dst, 0x04, 0x22, 0x4d, 0x18, lz4Version|lz4Independent, code<<4)
	dst = append(dst, byte(xxh32(dst[len(dst)-2:])>>8))
	for size := lz4BlockSize(code); len(src) > 0; {
		block := src[:min(len(src), size)]
		src = src[len(block):]
		at := len(dst)
		dst = reserve(dst, 4+lz4Bound(len(block))+4)
		n, err := e.block.CompressBlock(block, dst[at+4:at+4+lz4Bound(len(block))])
		head := uint32(n)
		if err != nil || n <= 0 || n >= len(block) {
			n = copy(dst[at+4:at+4+len(block)], block)
			head = uint32(n) | lz4Stored
		}
		binary.LittleEndian.PutUint32(dst[at:at+4], head)
		dst = dst[:at+4+n]
	}
	return append(dst, 0, 0, 0, 0)
}

// lz4Header is what a frame says about itself.
type lz4Header struct {
	flags    byte
	maxBlock int
	size     int // of the header
}

func parseLz4Header(src []byte, legacy bool) (lz4Header, error) {
	if len(src) < lz4HeaderLen {
		return lz4Header{}, corruptf(Lz4, "%d bytes are less than a frame header", len(src))
	}
	if m := binary.LittleEndian.Uint32(src); m != lz4Magic {
		return lz4Header{}, corruptf(Lz4, "frame begins with %08x instead of %08x", m, lz4Magic)
	}
	flags, bd := src[4], src[5]
	if flags&0xc0 != lz4Version || flags&(lz4Reserved|lz4Dictionary) != 0 {
		return lz4Header{}, corruptf(Lz4, "frame flags %02x: unknown version, reserved bit or dictionary", flags)
	}
	if bd&0x8f != 0 || bd>>4 < 4 {
		return lz4Header{}, corruptf(Lz4, "frame block descriptor %02x", bd)
	}
	end := lz4HeaderLen - 1
	if flags&lz4ContentSize != 0 {
		end += 8
	}
	if end >= len(src) {
		return lz4Header{}, corruptf(Lz4, "%d bytes end inside the frame header", len(src))
	}
	if want := byte(xxh32(src[4:end]) >> 8); !legacy && src[end] != want {
		return lz4Header{}, corruptf(Lz4, "frame header checksum is %02x, frame says %02x", want, src[end])
	}
	return lz4Header{flags: flags, maxBlock: lz4BlockSize(bd >> 4), size: end + 1}, nil
}

// appendLz4 reads one frame and ignores what follows it, as Kafka does. Block checksums are verified; the content
// checksum, which Kafka ignores too, is not: the batch's CRC-32C already covers the compressed bytes, and it would cost
// more than the decompression.
func (d *Decompressor) appendLz4(dst, src []byte, b bound, legacy bool) ([]byte, error) {
	if cap(dst) > 0 {
		out, err := appendLz4Frame(dst, src, b, legacy)
		if err != nil {
			return dst, err
		}
		return out, nil
	}
	// A frame does not say how large its content is. Scratch memory finds out, and the caller gets just enough.
	scratch := d.Borrow()
	defer d.Return(scratch)
	out, err := appendLz4Frame(scratch.B, src, b, legacy)
	scratch.B = out
	if err != nil {
		return dst, err
	}
	return append(make([]byte, 0, len(out)), out...), nil
}

func appendLz4Frame(dst, src []byte, b bound, legacy bool) ([]byte, error) {
	h, err := parseLz4Header(src, legacy)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	for pos := h.size; ; {
		if len(src)-pos < 4 {
			return dst, corruptf(Lz4, "frame of %d bytes ends without an end mark", len(src))
		}
		head := binary.LittleEndian.Uint32(src[pos:])
		pos += 4
		n := int(head &^ lz4Stored)
		if n == 0 {
			if h.flags&lz4ContentSum != 0 && len(src)-pos < 4 {
				return dst, corruptf(Lz4, "frame of %d bytes ends without its content checksum", len(src))
			}
			return dst, nil
		}
		if n > h.maxBlock || n > len(src)-pos {
			return dst, corruptf(Lz4, "block of %d bytes at %d: frame allows %d, %d are left", n, pos, h.maxBlock,
				len(src)-pos)
		}
		block := src[pos : pos+n]
		pos += n
		if h.flags&lz4BlockSum != 0 {
			if len(src)-pos < 4 || binary.LittleEndian.Uint32(src[pos:]) != xxh32(block) {
				return dst, corruptf(Lz4, "checksum of the block at %d is wrong", pos-n)
			}
			pos += 4
		}
		if head&lz4Stored != 0 {
			if n > b.room-(len(dst)-start) {
				return dst, b.exceeded()
			}
			dst = append(dst, block...)
			continue
		}
		if dst, err = appendLz4Block(dst, start, block, h); err != nil {
			return dst, err
		}
		if len(dst)-start > b.room {
			return dst[:start], b.exceeded()
		}
	}
}

// appendLz4Block decodes one block; start is where the frame's content begins in dst, for blocks that refer to earlier
// ones (Kafka refuses those, the lz4 tool writes them).
func appendLz4Block(dst []byte, start int, block []byte, h lz4Header) ([]byte, error) {
	at := len(dst)
	most := min(h.maxBlock, lz4Ratio*len(block))
	dst = reserve(dst, most)
	var n int
	var err error
	if h.flags&lz4Independent != 0 {
		n, err = lz4.UncompressBlock(block, dst[at:at+most])
	} else {
		n, err = lz4.UncompressBlockWithDict(block, dst[at:at+most], dst[max(start, at-lz4Window):at])
	}
	if err != nil || n < 0 {
		return dst, corruptf(Lz4, "block of %d bytes: %v", len(block), err)
	}
	return dst[:at+n], nil
}
