package network

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPipeCarriesEveryByteInOrder(t *testing.T) {
	a, b := Pipe("a", "b")
	r := rand.New(rand.NewPCG(3, 4))
	sent := sha256.New()
	go func() {
		for i := range 400 {
			buf := make([]byte, r.IntN(1000))
			if i%20 == 0 {
				buf = make([]byte, r.IntN(400_000))
			}
			for j := range buf {
				buf[j] = byte(i + j)
			}
			sent.Write(buf)
			half := len(buf) / 2
			_, _ = a.(*MemoryConn).WriteBuffers([][]byte{buf[:half], nil, buf[half:]})
			clear(buf) // the pipe must not keep what it was given
		}
		_ = a.Close()
	}()
	got := sha256.New()
	_, err := io.CopyBuffer(got, struct{ io.Reader }{b}, make([]byte, 7777))
	require.NoError(t, err)
	require.True(t, bytes.Equal(sent.Sum(nil), got.Sum(nil)))
}

func TestPipeHoldsABoundedNumberOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := Pipe("a", "b")
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
		total := 0
		for {
			n, err := a.Write(make([]byte, 1000))
			total += n
			if err != nil {
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				break
			}
		}
		require.LessOrEqual(t, total, pipeBuffer)
		require.Greater(t, total, pipeBuffer-1001)
	})
}

func TestPipeDeadlinesMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe("a", "b")
		defer a.Close()
		defer b.Close()
		start := time.Now()
		_ = b.SetReadDeadline(start.Add(time.Hour))
		go func() { // an earlier deadline reaches a reader that waits already
			time.Sleep(time.Second)
			_ = b.SetReadDeadline(start.Add(2 * time.Second))
		}()
		_, err := b.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var ne net.Error
		require.ErrorAs(t, err, &ne)
		require.True(t, ne.Timeout())
		require.Equal(t, 2*time.Second, time.Since(start))
		_ = b.SetReadDeadline(time.Now().Add(time.Minute)) // and it can be lifted again
		_, _ = a.Write([]byte("x"))
		_, err = b.Read(make([]byte, 1))
		require.NoError(t, err)
	})
}

// One write that does not fit holds up all others of its direction: all of them go on when it has been read.
func TestPipeWritersThatWaitForALargeOneAllGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe("a", "b")
		defer a.Close()
		defer b.Close()
		var writers sync.WaitGroup
		writers.Go(func() { _, _ = a.Write(make([]byte, 2*pipeBuffer)) })
		synctest.Wait()
		for range 3 {
			writers.Go(func() { _, _ = a.Write([]byte("x")) })
		}
		synctest.Wait()
		_, err := io.ReadFull(b, make([]byte, 2*pipeBuffer+3))
		require.NoError(t, err)
		writers.Wait()
	})
}

func TestPipeCloseIsSeenOnBothSides(t *testing.T) {
	a, b := Pipe("a", "b")
	_, _ = a.Write([]byte("rest"))
	_ = a.Close()
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.Equal(t, "rest", string(got))
	_, err = b.Write([]byte("x"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	_, err = a.Write([]byte("x"))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = a.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

func BenchmarkPipeRoundTrip(b *testing.B) {
	x, y := Pipe("a", "b")
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := y.Read(buf)
			if err != nil {
				return
			}
			_, _ = y.Write(buf[:n])
		}
	}()
	buf := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = x.Write(buf)
		if _, err := io.ReadFull(x, buf); err != nil {
			b.Fatal(err)
		}
	}
	_ = x.Close()
}
