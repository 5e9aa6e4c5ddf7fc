package compress

import (
	"errors"
	"fmt"
)

const (
	// ClientLimit is how large the decompressed records of one batch may be for a client by default, in bytes.
	ClientLimit = 64 << 20
	// BrokerLimit is the same for a broker, max.decompressed.batch.bytes.
	BrokerLimit = 128 << 20
	// FreeSize is up to which size nobody asks how well the records compressed: one record of a few MiB of equal bytes
	// is odd but honest.
	FreeSize = 8 << 20
	// MaxRatio is how many bytes, beyond FreeSize, one compressed byte may become. Only zstd could do more (32,000).
	MaxRatio = 1100
)

// ErrTooLarge says that decompressing was stopped because the result grew beyond a limit. errors.Is finds it in a
// *TooLargeError, which has the numbers.
var ErrTooLarge = errors.New("compress: decompressed data too large")

// ErrCorrupt says that the compressed bytes are not what the codec writes.
var ErrCorrupt = errors.New("compress: corrupt data")

// TooLargeError says which limit the decompressed records of a batch crossed.
type TooLargeError struct {
	Codec      Codec
	Compressed int // bytes that went in
	Limit      int // bytes that may come out
	Ratio      bool
}

// Error gives the numbers and what can be done.
func (e *TooLargeError) Error() string {
	if e.Ratio {
		return fmt.Sprintf("compress: %d bytes of %s become more than %d (beyond %d bytes the ratio may be %d at most)",
			e.Compressed, e.Codec, e.Limit, FreeSize, MaxRatio)
	}
	return fmt.Sprintf("compress: %d bytes of %s become more than %d; raise max.decompressed.batch.bytes to take them",
		e.Compressed, e.Codec, e.Limit)
}

// Is makes errors.Is(err, ErrTooLarge) true.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// bound is how many bytes one batch may become, and what to say if it would become more. It is a value so that a batch
// within its bound costs no allocation.
type bound struct {
	room int
	by   TooLargeError
}

// newBound returns limit, or less if src is too small for that much.
func newBound(c Codec, src []byte, limit int) bound {
	if limit <= 0 {
		limit = ClientLimit
	}
	byRatio := max(FreeSize, MaxRatio*len(src))
	room := min(limit, byRatio)
	return bound{room, TooLargeError{Codec: c, Compressed: len(src), Limit: room, Ratio: byRatio < limit}}
}

func (b bound) exceeded() error {
	e := b.by
	return &e
}

func corruptf(c Codec, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrCorrupt, c, fmt.Sprintf(format, args...))
}
