package network

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// handlerFunc is a Handler that counts what was sent.
type handlerFunc struct {
	handle func(x *Exchange)
	sent   atomic.Int64
	last   atomic.Pointer[Timing]
}

func (h *handlerFunc) Handle(x *Exchange) { h.handle(x) }
func (h *handlerFunc) Sent(x *Exchange) {
	t := x.Timing
	h.last.Store(&t)
	h.sent.Add(1)
}

type plain []byte

func (p plain) AppendTo(dst []byte) ([]byte, []Splice, error) { return append(dst, p...), nil, nil }

type spliced struct {
	head    []byte
	splices []Splice
}

func (s spliced) AppendTo(dst []byte) ([]byte, []Splice, error) {
	base := len(dst)
	for i := range s.splices {
		s.splices[i].At += base
	}
	return append(dst, s.head...), s.splices, nil
}

func echo(x *Exchange) { x.Complete(plain(bytes.Clone(x.Frame))) }

func frame(body string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func readFrame(t testing.TB, c net.Conn) string {
	var size [4]byte
	_, err := io.ReadFull(c, size[:])
	require.NoError(t, err)
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(c, body)
	require.NoError(t, err)
	return string(body)
}

// memoryFront starts a Front over one in-memory listener.
func memoryFront(t testing.TB, cfg Config, h Handler) (*Front, *MemoryListener) {
	f := NewFront(cfg, h)
	l := NewMemoryListener("ottla-1:9092")
	f.Serve(Listener{Name: "PLAINTEXT", Listener: l})
	t.Cleanup(f.Close)
	return f, l
}

func dial(t testing.TB, l *MemoryListener) net.Conn {
	c, err := l.Dial(t.Context())
	require.NoError(t, err)
	return c
}

func TestAnswersComeInOrderOfRequests(t *testing.T) {
	for _, transport := range []string{"memory", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			h := &handlerFunc{handle: func(x *Exchange) {
				body := plain(bytes.Clone(x.Frame))
				if body[0]%2 == 0 { // every second answer comes late, from elsewhere
					time.AfterFunc(time.Millisecond, func() { x.Complete(body) })
					return
				}
				x.Complete(body)
			}}
			f := NewFront(Defaults(), h)
			defer f.Close()
			var c net.Conn
			if transport == "tcp" {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				f.Serve(Listener{Name: "PLAINTEXT", Listener: l})
				c, err = net.Dial("tcp", l.Addr().String())
				require.NoError(t, err)
			} else {
				l := NewMemoryListener("m")
				f.Serve(Listener{Name: "PLAINTEXT", Listener: l})
				c = dial(t, l)
			}
			defer c.Close()
			var all []byte
			for i := range 20 {
				all = append(all, frame(string(rune('a'+i)))...)
			}
			_, err := c.Write(all)
			require.NoError(t, err)
			for i := range 20 {
				require.Equal(t, string(rune('a'+i)), readFrame(t, c))
			}
		})
	}
}

func TestNextFrameWaitsForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen atomic.Int64
		release := make(chan struct{})
		_, l := memoryFront(t, Defaults(), &handlerFunc{handle: func(x *Exchange) {
			seen.Add(1)
			go func() { <-release; x.Complete(plain("ok")) }()
		}})
		c := dial(t, l)
		defer c.Close()
		_, err := c.Write(append(frame("1"), frame("2")...))
		require.NoError(t, err)
		synctest.Wait()
		require.EqualValues(t, 1, seen.Load())
		release <- struct{}{}
		synctest.Wait()
		require.EqualValues(t, 2, seen.Load())
		release <- struct{}{}
	})
}

func TestFailClosesAndSkipReadsOn(t *testing.T) {
	h := &handlerFunc{handle: func(x *Exchange) {
		switch string(x.Frame) {
		case "skip":
			x.Skip()
		case "bad":
			x.Fail(errors.New("garbage"))
		default:
			echo(x)
		}
	}}
	_, l := memoryFront(t, Defaults(), h)
	c := dial(t, l)
	_, err := c.Write(append(append(frame("skip"), frame("hello")...), frame("bad")...))
	require.NoError(t, err)
	require.Equal(t, "hello", readFrame(t, c))
	_, err = c.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestResumeRunsOnTheConnectionAndCountsRemoteTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handlerFunc{}
		h.handle = func(x *Exchange) {
			time.AfterFunc(time.Second, func() {
				x.Resume(func() { x.Complete(plain("late")) })
			})
		}
		_, l := memoryFront(t, Defaults(), h)
		c := dial(t, l)
		defer c.Close()
		_, _ = c.Write(frame("x"))
		require.Equal(t, "late", readFrame(t, c))
		synctest.Wait()
		require.Equal(t, time.Second, h.last.Load().Remote)
	})
}

func TestHandlersAreBoundedAndTheQueueIsTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Defaults()
		cfg.IOThreads, cfg.QueuedMaxRequests = 2, 3
		var running, most atomic.Int64
		h := &handlerFunc{handle: func(x *Exchange) {
			for n, m := running.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Second)
			running.Add(-1)
			echo(x)
		}}
		_, l := memoryFront(t, cfg, h)
		for range 8 {
			c := dial(t, l)
			defer c.Close()
			_, _ = c.Write(frame("x"))
		}
		time.Sleep(3500 * time.Millisecond)
		require.EqualValues(t, 6, h.sent.Load())
		require.EqualValues(t, 2, most.Load())
		require.Equal(t, 2*time.Second, h.last.Load().Queue)
		time.Sleep(time.Second)
		require.EqualValues(t, 8, h.sent.Load())
	})
}

func TestIdleConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := memoryFront(t, Defaults(), &handlerFunc{handle: echo})
		c := dial(t, l)
		defer c.Close()
		start := time.Now()
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.InDelta(t, 10*time.Minute, time.Since(start), float64(90*time.Second))
	})
}

func TestPeerThatNeverReadsIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := memoryFront(t, Defaults(), &handlerFunc{handle: func(x *Exchange) { x.Complete(plain(make([]byte, 1<<20))) }})
		c := dial(t, l)
		defer c.Close()
		_, _ = c.Write(frame("x"))
		time.Sleep(3 * time.Minute)
		require.Zero(t, f.Connections())
	})
}

func TestSizesBeyondTheLimitAreRefusedWithAHint(t *testing.T) {
	for name, c := range map[string]struct {
		bytes string
		hint  string
	}{
		"negative": {"\xff\xff\xff\xff", "-1 bytes"},
		"huge":     {"\x7f\xff\xff\xff", "socket.request.max.bytes"},
		"tls":      {"\x16\x03\x01\x02\x00", "TLS handshake"},
		"http":     {"GET / HTTP/1.1\r\n\r\n", "HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			cfg := Defaults()
			cfg.RequestMaxBytes = 1 << 20
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			f, l := memoryFront(t, cfg, &handlerFunc{handle: echo})
			conn := dial(t, l)
			_, err := conn.Write([]byte(c.bytes))
			require.NoError(t, err)
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			f.Close()
			require.Contains(t, log.String(), c.hint)
		})
	}
}

func TestAnnouncedBytesCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, l := memoryFront(t, Defaults(), &handlerFunc{handle: echo})
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 200 {
			c := dial(t, l)
			defer c.Close()
			_, err := c.Write([]byte{0x06, 0x40, 0, 0, 1, 2, 3}) // 100 MiB announced, 3 bytes sent
			require.NoError(t, err)
		}
		synctest.Wait() // every connection has read what there is
		require.Equal(t, 200, f.Connections())
		runtime.GC()
		runtime.ReadMemStats(&after)
		require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(8<<20))
	})
}

func TestFrameMemoryIsBoundedOverAllConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Defaults()
		cfg.QueuedMaxBytes = 2 << 20
		f, l := memoryFront(t, cfg, &handlerFunc{handle: echo})
		for range 8 { // half requests of 1 MiB that stop after 900 KiB
			c := dial(t, l)
			defer c.Close()
			go func() {
				_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, 1<<20), make([]byte, 900<<10)...))
			}()
		}
		time.Sleep(time.Second)
		require.LessOrEqual(t, f.memory.inUse(), int64(2<<20))
		time.Sleep(time.Minute) // those without memory were closed; the others wait for their bytes
		require.Less(t, f.Connections(), 8)
		small := dial(t, l)
		defer small.Close()
		_, _ = small.Write(frame("still served"))
		require.Equal(t, "still served", readFrame(t, small))
		time.Sleep(15 * time.Minute)
		require.Zero(t, f.memory.inUse())
	})
}

func TestConnectionLimits(t *testing.T) {
	cfg := Defaults()
	cfg.MaxConnections, cfg.MaxConnectionsPerIP, cfg.CountLoopback = 3, 2, true
	f := NewFront(cfg, &handlerFunc{handle: echo})
	defer f.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.Serve(Listener{Name: "PLAINTEXT", Listener: l})
	for i := range 4 {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		_, _ = c.Write(frame("x"))
		if i < 2 {
			require.Equal(t, "x", readFrame(t, c))
			continue
		}
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
	}
}

func TestSplicesGoOutInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "segment")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("0123456789"), 100_000), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	h := &handlerFunc{handle: func(x *Exchange) {
		x.Complete(spliced{head: []byte("headtail"), splices: []Splice{
			{At: 4, Bytes: [][]byte{[]byte("-a-"), []byte("b-")}},
			{At: 4, File: FileRegion{File: file, Descriptor: file, Pos: 5, N: 900_000}},
			{At: 8, Bytes: [][]byte{[]byte("!")}},
		}})
	}}
	f, m := memoryFront(t, Defaults(), h)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.Serve(Listener{Name: "PLAINTEXT", Listener: l})
	tcp, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	for _, c := range []net.Conn{tcp, dial(t, m)} {
		_, err = c.Write(frame("x"))
		require.NoError(t, err)
		got := readFrame(t, c)
		require.Len(t, got, 4+5+900_000+4+1)
		require.Equal(t, "head-a-b-567890", got[:15])
		require.Equal(t, "1234tail!", got[len(got)-9:])
		require.NoError(t, c.Close())
	}
}

func TestCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble waits for every goroutine in it
		f := NewFront(Defaults(), &handlerFunc{handle: func(*Exchange) {}})
		l := NewMemoryListener("ottla-1:9092")
		f.Serve(Listener{Name: "PLAINTEXT", Listener: l})
		for range 50 {
			c := dial(t, l)
			_, _ = c.Write(frame("never answered"))
		}
		f.Close()
		_, err := l.Dial(context.Background())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// held is an answer that holds something, a file for instance.
type held struct {
	plain
	released *atomic.Int64
}

func (h held) Release() { h.released.Add(1) }

// Answers that come when the connection has gone, or while it goes, let go of what they hold.
func TestAnswersOfConnectionsThatHaveGoneAreReleased(t *testing.T) {
	for _, late := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var released, asked atomic.Int64
			answer := make(chan struct{})
			f, l := memoryFront(t, Defaults(), &handlerFunc{handle: func(x *Exchange) {
				asked.Add(1)
				go func() { <-answer; x.Complete(held{plain("x"), &released}) }()
			}})
			for range 50 {
				c := dial(t, l)
				defer c.Close()
				_, _ = c.Write(frame("x"))
			}
			synctest.Wait()
			require.EqualValues(t, 50, asked.Load())
			if !late {
				go close(answer) // both at once
			}
			f.Close()
			if late {
				close(answer)
			}
			synctest.Wait()
			require.EqualValues(t, 50, released.Load())
		})
	}
}

func TestDialObeysAContextThatHasEnded(t *testing.T) {
	_, l := memoryFront(t, Defaults(), &handlerFunc{handle: echo})
	cause := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for range 50 { // a select between two that are ready would take either
		_, err := l.Dial(ctx)
		require.ErrorIs(t, err, cause)
	}
}

// A client that is killed leaves a write or read behind that fails. That is daily life, not a warning.
func TestPeersThatVanishAreNoWarning(t *testing.T) {
	for _, gone := range []error{syscall.EPIPE, syscall.ECONNRESET, io.EOF, net.ErrClosed} {
		var out bytes.Buffer
		f := &Front{cfg: Config{Logger: slog.New(slog.NewTextHandler(&out, nil))}}
		c := &Conn{front: f, Remote: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5}}
		c.report(fmt.Errorf("sendfile: %w", os.NewSyscallError("sendfile", gone)))
		require.Empty(t, out.String(), "%v", gone)
		c.report(errors.New("request of version 99"))
		require.Contains(t, out.String(), "level=WARN")
	}
}
