package compress

import "sync"

// Compressor compresses with one codec and level. It belongs to a client or a cluster, which may use it from many
// goroutines; the encoders inside are reused and die with it. It starts no goroutine.
type Compressor struct {
	codec Codec
	level int
	pool  sync.Pool // of encoder
}

// encoder is the state that one call of Append needs.
type encoder interface {
	append(dst, src []byte) []byte
}

// NewCompressor returns a Compressor. The level is in Kafka's range for the codec (see Codec.Levels) or DefaultLevel;
// codecs without levels ignore it. The error names the configuration key.
func NewCompressor(codec Codec, level int) (*Compressor, error) {
	if !codec.Valid() {
		return nil, corruptf(codec, "unknown codec")
	}
	level, err := checkLevel(codec, level)
	if err != nil {
		return nil, err
	}
	c := &Compressor{codec: codec, level: level}
	c.pool.New = func() any { return newEncoder(codec, level) }
	return c, nil
}

// Codec returns the codec that the Compressor writes.
func (c *Compressor) Codec() Codec { return c.codec }

// Level returns the level in Kafka's numbering.
func (c *Compressor) Level() int { return c.level }

// Append appends the compressed form of src to dst. It cannot fail. src and the room behind dst must not overlap.
func (c *Compressor) Append(dst, src []byte) []byte {
	if c.codec == None {
		return append(dst, src...)
	}
	e := c.pool.Get().(encoder)
	dst = e.append(dst, src)
	c.pool.Put(e)
	return dst
}

// Bound returns how many bytes Append adds for n bytes at most, and how much room behind dst keeps it from allocating.
func (c *Compressor) Bound(n int) int {
	switch c.codec {
	case None:
		return n
	case Gzip:
		return n + 5*(n/1024+2) + 32 // stored blocks, in the worst case
	case Snappy:
		return xerialHeaderLen + (n/snappyBlock+1)*(4+32) + n + n/6
	case Lz4:
		return lz4HeaderLen + 8 + (n/lz4BlockSize(4)+1)*(4+16) + n + n/255
	default:
		return n + 4*(n/1024+1) + 64
	}
}

func newEncoder(codec Codec, level int) encoder {
	switch codec {
	case Gzip:
		return newGzipEncoder(level)
	case Snappy:
		return snappyEncoder{}
	case Lz4:
		return newLz4Encoder(level)
	default:
		return newZstdEncoder(level)
	}
}
