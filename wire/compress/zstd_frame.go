package compress

import "encoding/binary"

// A zstd frame, little endian (RFC 8878), as far as its size can be told without decoding:
//
//	uint32 magic · descriptor: bits 6-7 width of content size, 5 single segment, 3 reserved, 2 checksum, 0-1 width of dictionary
//	· [window: 1] · [dictionary: 0 1 2 4] · [content size: 0 1 2 4 8]
//	{ 3 bytes: bit 0 last, 1-2 type (raw, run, compressed), 3-23 size · block }*  ·  [checksum: 4]
//
// A skippable frame is its magic, uint32 length, bytes.
const (
	zstdMagic     = 0xfd2fb528
	zstdSkippable = 0x184d2a50 // to ...5f
	zstdMaxBlock  = 128 << 10
)

// zstdExtent is what the frames of a compressed batch may become.
type zstdExtent struct {
	most    int // no more than this, by the number and kind of blocks
	content int // exactly this, if all frames say so, else -1
}

// zstdMeasure walks over the frames in src, block by block, without decoding. Only what blocks can hold is believed, not
// what the frame's header claims, so that memory for the result can be had before it is there.
func zstdMeasure(src []byte) (zstdExtent, error) {
	if len(src) == 0 {
		return zstdExtent{}, corruptf(Zstd, "no frame in 0 bytes")
	}
	var x zstdExtent
	for pos := 0; pos < len(src); {
		rest := src[pos:]
		if len(rest) < 5 {
			return x, corruptf(Zstd, "%d bytes at %d where a frame should be", len(rest), pos)
		}
		magic := binary.LittleEndian.Uint32(rest)
		if magic&^0xf == zstdSkippable {
			if len(rest) < 8 || uint64(binary.LittleEndian.Uint32(rest[4:])) > uint64(len(rest)-8) {
				return x, corruptf(Zstd, "skippable frame at %d reaches beyond the end", pos)
			}
			pos += 8 + int(binary.LittleEndian.Uint32(rest[4:]))
			continue
		}
		if magic != zstdMagic {
			return x, corruptf(Zstd, "frame at %d begins with %08x instead of %08x", pos, magic, uint32(zstdMagic))
		}
		n, err := x.frame(rest, pos)
		if err != nil {
			return x, err
		}
		pos += n
	}
	return x, nil
}

// frame adds the frame at the front of b and returns its size; at is where b lies, for errors.
func (x *zstdExtent) frame(b []byte, at int) (int, error) {
	desc := b[4]
	single := desc>>5&1 == 1
	i := 5
	if !single {
		i++
	}
	i += [...]int{0, 1, 2, 4}[desc&3]
	width := [...]int{0, 2, 4, 8}[desc>>6]
	if width == 0 && single {
		width = 1
	}
	if i+width > len(b) {
		return 0, corruptf(Zstd, "frame at %d ends inside its header", at)
	}
	content := -1
	if width > 0 {
		var word [8]byte
		copy(word[:], b[i:i+width])
		v := binary.LittleEndian.Uint64(word[:])
		if width == 2 {
			v += 256
		}
		content = int(min(v, 1<<62))
	}
	i += width
	most := 0
	for last := false; !last; {
		if len(b)-i < 3 {
			return 0, corruptf(Zstd, "frame at %d ends without its last block", at)
		}
		head := int(b[i]) | int(b[i+1])<<8 | int(b[i+2])<<16
		i += 3
		last = head&1 == 1
		size, stored := head>>3, head>>3
		switch head >> 1 & 3 {
		case 1: // a run of one byte
			stored = 1
		case 2:
			size = zstdMaxBlock
		case 3:
			return 0, corruptf(Zstd, "frame at %d has a block of reserved type", at)
		}
		if stored > len(b)-i || size > zstdMaxBlock {
			return 0, corruptf(Zstd, "block of %d bytes at %d, %d are left", head>>3, at+i, len(b)-i)
		}
		i += stored
		most += size
	}
	if desc>>2&1 == 1 {
		if i += 4; i > len(b) {
			return 0, corruptf(Zstd, "frame at %d ends without its checksum", at)
		}
	}
	if content > most {
		return 0, corruptf(Zstd, "frame at %d claims %d bytes, its blocks hold %d at most", at, content, most)
	}
	x.most += most
	switch {
	case content < 0 || x.content < 0:
		x.content = -1
	default:
		x.content += content
	}
	return i, nil
}
