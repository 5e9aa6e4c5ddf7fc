package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// TestMain makes the test binary a worker when it is started as one.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

var line = regexp.MustCompile(`^in (\d+) · out (\d+) · duplicates (\d+) · lost (\d+) · aborted transactions (\d+) · [0-9.]+ s\n$`)

// verdictOf runs the pipeline, sees to it that things were broken meanwhile, and reads what it prints.
func verdictOf(t *testing.T, o options) (n [5]int, err error) {
	t.Helper()
	var out, log strings.Builder
	err = run(t.Context(), &out, &log, o)
	m := line.FindStringSubmatch(out.String())
	require.NotNil(t, m, "%q, %v\n%s", out.String(), err, log.String())
	require.GreaterOrEqual(t, strings.Count(log.String(), "kill -9 worker"), enough-1, log.String())
	require.GreaterOrEqual(t, strings.Count(log.String(), "crashed the broker"), 1, log.String())
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1])
	}
	return n, err
}

// Workers are killed and the broker crashes, and every line comes out once.
func TestEveryLineComesOutOnce(t *testing.T) {
	n, err := verdictOf(t, options{n: 2000, over: time.Second, seed: 1})
	require.NoError(t, err)
	require.Equal(t, [4]int{2000, 2000, 0, 0}, [4]int(n[:4]))
}

// Without transactions nothing is lost either. How many duplicates there are is a matter of chance; the exit code says whether.
func TestUnsafeIsAtLeastOnce(t *testing.T) {
	n, err := verdictOf(t, options{n: 1000, over: 500 * time.Millisecond, seed: 1, unsafe: true})
	require.Equal(t, n[2] > 0, err != nil)
	require.Equal(t, [3]int{1000, 1000 + n[2], 0}, [3]int{n[0], n[1], n[3]})
	require.Zero(t, n[4])
}

// An address where nobody listens is an error within seconds, and says what it is.
func TestAWrongAddressIsSaidAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := l.Addr().String()
	l.Close()
	began := time.Now()
	err = run(t.Context(), io.Discard, io.Discard, options{n: 1, bootstrap: nobody})
	require.ErrorContains(t, err, "no broker has answered: at "+nobody)
	require.ErrorContains(t, err, "is the broker running")
	require.Less(t, time.Since(began), hello+time.Minute, "only against accidents: nothing is cleaned up where nothing was made")
}

// Brokers before 2.5 have no pipelines that are exactly once: that is said in one line, before anything is made.
func TestOldBrokersAreToldApart(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	peer := wiretest.NewCluster(1, nil)
	defer peer.Close()
	peer.Move(1, l.Addr().String())
	for key, most := range map[wire.Key]int16{wire.KeyTxnOffsetCommit: 2, wire.KeyCreateTopics: 3, wire.KeyDescribeCluster: -1} {
		peer.SetVersions(key, 0, most)
	}
	go func() { // ends with the listener
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			peer.Serve(1, nc)
		}
	}()
	err = run(t.Context(), io.Discard, io.Discard, options{n: 1, bootstrap: l.Addr().String()})
	require.ErrorContains(t, err, "brokers from 2.5 on (KIP-447), broker 1 ("+l.Addr().String()+") is older")
	require.NotContains(t, err.Error(), "\n")
	require.Empty(t, peer.Requests(wire.KeyCreateTopics))
}

func TestVerdictNamesWhatIsWrong(t *testing.T) {
	require.NoError(t, verdict{out: 3, aborted: 2}.err())
	for _, v := range []verdict{{duplicates: 1}, {lost: 1}, {wrong: 1}} {
		require.ErrorContains(t, v.err(), "not exactly once")
	}
}

func TestInputTakesLinesOfFilesAndFolders(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("one\ntwo\n\nfour"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), []byte("five\n"), 0o600))
	lines, err := input([]string{dir}, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two", "", "four", "five"}, lines)
	lines, err = input(nil, 5)
	require.NoError(t, err)
	require.Len(t, lines, 5)
	_, err = input([]string{"no-such-file"}, 5)
	require.ErrorContains(t, err, "no-such-file")
	_, err = input(nil, 0)
	require.ErrorContains(t, err, "-n is 0")
}
