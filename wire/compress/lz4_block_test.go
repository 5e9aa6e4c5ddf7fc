package compress

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

func requireBlock(t *testing.T, c *lz4Fast, src []byte) {
	t.Helper()
	dst := make([]byte, lz4Bound(len(src)))
	n, err := c.CompressBlock(src, dst)
	require.NoError(t, err)
	back := make([]byte, len(src))
	m, err := lz4.UncompressBlock(dst[:n], back)
	require.NoError(t, err)
	require.True(t, bytes.Equal(src, back[:m]), "%d bytes", len(src))
}

// One compressor, many blocks of every size: what is left in the table from earlier ones must never show.
func TestLz4BlocksComeBack(t *testing.T) {
	c := new(lz4Fast)
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 900 {
		src := make([]byte, rnd.IntN(1<<(2+i%13)))
		letters := 1 + rnd.IntN(1<<(i%8))
		for j := range src {
			src[j] = byte(rnd.IntN(letters))
			if j > 40 && rnd.IntN(3) == 0 {
				src[j] = src[j-40]
			}
		}
		requireBlock(t, c, src)
	}
	for n := range 200 {
		requireBlock(t, c, make([]byte, n))
	}
	requireBlock(t, c, make([]byte, 4<<20))
}

// Positions are counted on from block to block; before they overflow the table starts afresh.
func TestLz4PositionsStartAfresh(t *testing.T) {
	c := new(lz4Fast)
	src := bytes.Repeat([]byte("abcdefghijklmnop"), 500)
	requireBlock(t, c, src)
	c.base = 1<<31 + 1
	requireBlock(t, c, src)
	require.Equal(t, uint32(1+len(src)), c.base)
}

// FuzzLz4Block: whatever is compressed comes back from the other library's decoder.
func FuzzLz4Block(f *testing.F) {
	f.Add([]byte("abcabcabcabcabcabcabcabcabcabcabc"))
	f.Add(make([]byte, 300))
	c := new(lz4Fast)
	f.Fuzz(func(t *testing.T, src []byte) {
		requireBlock(t, c, src)
		requireBlock(t, c, append(bytes.Clone(src), src...))
	})
}
