package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

var verdict = regexp.MustCompile(`^in (\d+) · out (\d+) · files identical (\d+)/(\d+) · [0-9.]+ MB/s\n$`)

func runOn(t *testing.T, files ...string) []string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out, "", files))
	m := verdict.FindStringSubmatch(out.String())
	require.NotNil(t, m, out.String())
	require.Equal(t, m[1], m[2])
	require.Equal(t, m[3], m[4])
	return m
}

// The repository's own files come back as they were.
func TestOwnFilesComeBackIdentical(t *testing.T) {
	require.NotEqual(t, "0", runOn(t)[1])
}

// Lines longer than a record, without an end, of zero bytes and of none: every byte comes back.
func TestOddFilesComeBackIdentical(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"long":    strings.Repeat("x", 3*longestLine+17),
		"no-end":  "a\nb",
		"crlf":    "a\r\n\r\nb\r\n",
		"binary":  strings.Repeat("\x00\xff\n", 1000),
		"empty":   "",
		"newline": "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	m := runOn(t, dir)
	require.Equal(t, "5", m[3], "an empty file has nothing to send")
}

// A file is only identical if every byte is.
func TestDifferencesAreFound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte("one\ntwo\n"), 0o600))
	for _, lines := range [][]string{{"one\n", "two\n"}, {"two\n", "one\n"}, {"one\n"}, {"one\n", "two\n", "two\n"}, {"one\n", "twO\n"}, nil} {
		in, err := newInput([]string{name, name})
		require.NoError(t, err)
		require.Len(t, in.files, 1, "named twice, sent once")
		for range in.records("topic") {
		}
		out, err := newOutput(in.bytes)
		require.NoError(t, err)
		for _, line := range lines {
			require.NoError(t, out.write(0, []byte(name), []byte(line)))
		}
		require.Equal(t, strings.Join(lines, "") == "one\ntwo\n", out.identical(in) == 1)
		require.NoError(t, out.remove())
	}
}

// The program exits with 1 when something is wrong, and with 0 when all is well.
func TestExitCodeTells(t *testing.T) {
	if os.Getenv("QUICKSTART_MAIN") != "" {
		os.Args = append(os.Args[:1], os.Getenv("QUICKSTART_MAIN"))
		main()
		return
	}
	for file, want := range map[string]int{"main.go": 0, "no-such-file": 1} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestExitCodeTells$")
		cmd.Env = append(os.Environ(), "QUICKSTART_MAIN="+file)
		cmd.Run()
		require.Equal(t, want, cmd.ProcessState.ExitCode(), file)
	}
}

// An address where nobody listens is an error within seconds, and says what it is.
func TestAWrongAddressIsSaidAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := l.Addr().String()
	l.Close()
	defer func(d time.Duration) { hello = d }(hello)
	hello = 2 * time.Second
	err = run(t.Context(), &strings.Builder{}, nobody, []string{"main.go"})
	require.ErrorContains(t, err, "no broker has answered: at "+nobody)
	require.ErrorContains(t, err, "is the broker running")
}

// Brokers before 2.4 have no default for the number of replicas: it is named then, and only then.
func TestOldBrokersAreToldHowManyReplicas(t *testing.T) {
	for most, want := range map[int16][]int16{3: {2}, 4: {-1}} {
		var named []int16
		peer := wiretest.NewCluster(2, func(r *wiretest.Request) message.Response {
			req, ok := r.Body.(*message.CreateTopicsRequest)
			if !ok {
				return nil
			}
			named = append(named, req.Topics[0].ReplicationFactor)
			resp := message.NewCreateTopicsResponse()
			resp.Topics = []message.CreatableTopicResult{{Name: "t"}}
			return resp
		})
		peer.SetVersions(wire.KeyCreateTopics, 0, most)
		cl, err := client.New(client.Cluster(peer))
		require.NoError(t, err)
		require.NoError(t, create(t.Context(), admin.New(cl), cl, admin.NewTopic{Name: "t", Partitions: 6}))
		require.NoError(t, cl.Close(t.Context()))
		peer.Close()
		require.Equal(t, want, named)
	}
}

func TestMissingFileIsAnError(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), &strings.Builder{}, "", []string{"no-such-file"}), "no-such-file")
}
