package compress

import (
	"fmt"
	"strings"
)

// Codec is a compression type as the attributes of a batch number it.
type Codec int8

// The codecs of Kafka. Zstd exists from magic 2 on (KIP-110).
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	Lz4    Codec = 3
	Zstd   Codec = 4
)

var names = [...]string{None: "none", Gzip: "gzip", Snappy: "snappy", Lz4: "lz4", Zstd: "zstd"}

// Valid reports whether c is one of the codecs above.
func (c Codec) Valid() bool { return c >= None && int(c) < len(names) }

// String returns the name that compression.type uses.
func (c Codec) String() string {
	if !c.Valid() {
		return fmt.Sprintf("codec(%d)", int8(c))
	}
	return names[c]
}

// Parse returns the codec that compression.type names: none, gzip, snappy, lz4 or zstd ("uncompressed", which only
// topics and brokers may say, means None).
func Parse(name string) (Codec, error) {
	for c, n := range names {
		if n == name {
			return Codec(c), nil
		}
	}
	if name == "uncompressed" {
		return None, nil
	}
	return None, fmt.Errorf("compression.type %q is not one of %s", name, strings.Join(names[:], ", "))
}

// Levels returns the range of levels that Kafka allows for a codec (compression.gzip.level, compression.lz4.level,
// compression.zstd.level; KIP-390) and its default. Codecs without levels have min > max. gzip knows -1 (the default)
// and 1..9, but not 0.
func (c Codec) Levels() (min, max, def int) {
	switch c {
	case Gzip:
		return -1, 9, -1
	case Lz4:
		return 1, 17, 9
	case Zstd:
		return -131072, 22, 3
	default:
		return 1, 0, 0
	}
}

// DefaultLevel asks NewCompressor for the codec's default level. It is outside every codec's range.
const DefaultLevel = -1 << 31

func checkLevel(c Codec, level int) (int, error) {
	lo, hi, def := c.Levels()
	if level == DefaultLevel || lo > hi {
		return def, nil
	}
	if level < lo || level > hi || c == Gzip && level == 0 {
		return 0, fmt.Errorf("compression.%s.level %d is outside %d..%d", c, level, lo, hi)
	}
	return level, nil
}
