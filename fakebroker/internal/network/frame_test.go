package network

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func framesOf(t testing.TB, from io.Reader, max int32) ([][]byte, error) {
	f := frameReader{from: from, memory: &memory{limit: 1 << 30}, max: max}
	var all [][]byte
	for {
		b, err := f.next()
		if err != nil {
			f.close()
			return all, err
		}
		all = append(all, bytes.Clone(b))
	}
}

func TestFramesOfManySizesSurviveAnySplit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var stream []byte
	var want [][]byte
	for i := range 300 {
		body := make([]byte, r.IntN(100))
		if i%10 == 0 {
			body = make([]byte, r.IntN(300_000))
		}
		for j := range body {
			body[j] = byte(r.Uint32())
		}
		want = append(want, body)
		stream = append(stream, frame(string(body))...)
	}
	for name, from := range map[string]io.Reader{
		"whole": bytes.NewReader(stream),
		"half":  iotest.HalfReader(bytes.NewReader(stream)),
		"bytes": iotest.OneByteReader(bytes.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := framesOf(t, from, 1<<20)
			require.ErrorIs(t, err, io.EOF)
			require.Len(t, got, len(want))
			for i := range want {
				require.True(t, bytes.Equal(want[i], got[i]), "frame %d", i)
			}
		})
	}
}

func TestLargeBufferIsGivenBack(t *testing.T) {
	m := &memory{limit: 1 << 30}
	stream := frame(string(make([]byte, 1<<20)))
	for range shrinkTime + 1 {
		stream = append(stream, frame("small")...)
	}
	f := frameReader{from: bytes.NewReader(stream), memory: m, max: 1 << 21}
	for range shrinkTime + 2 {
		_, err := f.next()
		require.NoError(t, err)
	}
	_, err := f.next()
	require.ErrorIs(t, err, io.EOF)
	require.Zero(t, m.used)
	require.LessOrEqual(t, cap(f.buf), keepBuffer)
}

// chunks reads in pieces whose sizes come from a fuzzer.
type chunks struct {
	data  []byte
	sizes []byte
	n     int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	size := len(p)
	if len(c.sizes) > 0 {
		size = int(c.sizes[c.n%len(c.sizes)]) + 1
		c.n++
	}
	n := copy(p[:min(size, len(p))], c.data)
	c.data = c.data[n:]
	return n, nil
}

func FuzzFrameStream(f *testing.F) {
	f.Add(append(frame("one"), frame("two")...), []byte{0, 3, 9})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 9, 1}, []byte{})
	f.Add([]byte{0xff, 0, 0, 0}, []byte{1})
	f.Fuzz(func(t *testing.T, stream, sizes []byte) {
		whole, err1 := framesOf(t, bytes.NewReader(stream), 1<<16)
		split, err2 := framesOf(t, &chunks{data: stream, sizes: sizes}, 1<<16)
		require.Equal(t, err1 == nil, err2 == nil)
		require.Equal(t, err1.Error(), err2.Error())
		require.Equal(t, whole, split)
	})
}
