package storage

import (
	"sync"

	"github.com/ottla-kafka/ottla/wire/compress"
)

// codecs are the compressors of one Manager, shared by its logs.
type codecs struct {
	decompressor *compress.Decompressor

	mu          sync.Mutex // guards the map, not the compressors
	compressors map[codecLevel]*compress.Compressor
}

type codecLevel struct {
	codec compress.Codec
	level int
}

func newCodecs() *codecs {
	return &codecs{decompressor: compress.NewDecompressor(), compressors: make(map[codecLevel]*compress.Compressor)}
}

// compressor returns the one for a codec and level, making it when needed.
func (c *codecs) compressor(codec compress.Codec, level int) (*compress.Compressor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := codecLevel{codec, level}
	if have := c.compressors[key]; have != nil {
		return have, nil
	}
	made, err := compress.NewCompressor(codec, level)
	if err == nil {
		c.compressors[key] = made
	}
	return made, err
}
