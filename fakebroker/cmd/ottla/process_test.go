package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain is the command itself when a test asks for a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("OTTLA_TEST_COMMAND") == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// served is `ottla serve` as a process.
type served struct {
	cmd  *exec.Cmd
	out  *bufio.Reader
	errs bytes.Buffer
	addr string
}

func serve(t *testing.T, args ...string) *served {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	s := &served{cmd: exec.Command(exe, append([]string{"serve", "--port", "0"}, args...)...)}
	s.cmd.Env = append(os.Environ(), "OTTLA_TEST_COMMAND=1")
	s.cmd.Stderr = &s.errs
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	s.out = bufio.NewReader(out)
	line, err := s.out.ReadString('\n')
	require.NoError(t, err)
	addr, ok := strings.CutPrefix(line, "ready bootstrap=")
	require.True(t, ok, line)
	s.addr = strings.TrimSpace(addr)
	return s
}

// terminate sends SIGTERM and demands a clean end that printed nothing more.
func (s *served) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(s.out)
	require.NoError(t, err)
	require.NoError(t, s.cmd.Wait(), "exit code; stderr: %s", &s.errs)
	require.Empty(t, string(rest), "stdout after the ready line")
}

func TestServeEndsWithZeroOnSIGTERMAndKeepsItsData(t *testing.T) {
	data := t.TempDir()
	first := serve(t, "--data", data, "--topic", "orders:3")
	require.Equal(t, int64(0), produce(t, first.addr, "orders", "one", "two"))
	first.terminate(t)

	again := serve(t, "--data", data)
	require.Equal(t, int64(2), produce(t, again.addr, "orders", "three"), "offset behind what the first process wrote")
	again.terminate(t)
}

func TestServeInMemoryForgets(t *testing.T) {
	for range 2 {
		s := serve(t, "--topic", "orders")
		require.Equal(t, int64(0), produce(t, s.addr, "orders", "one"))
		s.terminate(t)
	}
}

func TestServeListensOnLoopbackOnly(t *testing.T) {
	s := serve(t)
	host, _, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	s.terminate(t)
}

// command runs one command line in this process, a minute at most.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, args, streams{strings.NewReader(""), &out, &errs})
	return code, out.String(), errs.String()
}

func TestWrongUsageEndsWithTwoAndSaysWhatToWrite(t *testing.T) {
	for _, c := range []struct {
		args []string
		say  string
	}{
		{[]string{"serv"}, `did you mean "serve"?`},
		{[]string{"dump"}, `unexpected argument dump`},
		{[]string{"serve", "--pot", "1"}, `did you mean "--port"?`},
		{[]string{"serve", "--port", "many"}, `--port`},
		{[]string{"serve", "--topic", "orders:0"}, `want NAME:PARTITIONS`},
		{[]string{"serve", "--topic", ":3"}, `want NAME:PARTITIONS`},
		{[]string{"serve", "--sasl", "ann"}, `want USER:PASSWORD`},
		{[]string{"serve", "--port", "99999"}, `--port 99999: want a TCP port up to 65535`},
		{[]string{"serve", "--port", "-1"}, `--port -1: want a TCP port up to 65535`},
		{[]string{"serve", "--data", ""}, `--data has no name of a folder`},
		{[]string{"serve", "--topic", "a", "--topic", "a:3"}, `--topic a is given twice`},
		{[]string{"serve", "--topic", "a b"}, `'a b' contains one or more characters`},
		{[]string{"serve", "--config", "listeners=PLAINTEXT://:9092"}, `use --port`},
		{[]string{"serve", "--config", "log.dirs=/x"}, `use --data`},
		{[]string{"serve", "--config", "node.id=-4"}, `Invalid value -4 for configuration node.id`},
		{[]string{"topics", "crate"}, "did you mean \"create\"?\nottla: see 'ottla topics --help'"},
		{[]string{"topics", "create"}, "see 'ottla topics create --help'"},
		{[]string{"produce", "t", "--acks", "2"}, `--acks must be one of "all","-1","0","1" but got "2"`},
		{[]string{"consume", "t", "-n", "-3"}, `-n -3: want a number of records`},
		{[]string{"groups", "list", "--state", "Stabel"}, `--state Stabel: want one of PreparingRebalance,`},
		{[]string{"groups", "list", "--type", "classical"}, `--type classical: want one of Classic,`},
		{[]string{"serve", "--tls", "no-such-folder"}, `no-such-folder`},
		{[]string{"serve", "--config", "num.partition=3"}, `did you mean num.partitions?`},
		{[]string{"serve", "--config", "num.partitions=many"}, `num.partitions`},
		{[]string{"serve", "--feature", "transaction.version=many"}, `--feature`},
		{[]string{"serve", "--feature", "transaction.versio=1"}, `transaction.versio`},
		{[]string{"serve", "--log-level", "loud"}, `--log-level`},
		{[]string{"dump-log"}, `<file> ...`},
	} {
		code, out, errs := command(t, c.args...)
		require.Equal(t, exitUsage, code, "%v: %s", c.args, errs)
		require.Contains(t, errs, c.say, "%v", c.args)
		require.Empty(t, out, "%v", c.args)
	}
}

func TestAddressInUseEndsWithThree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	code, out, errs := command(t, "serve", "--port", fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
	require.Equal(t, exitConnect, code, errs)
	require.Contains(t, errs, "address already in use")
	require.Contains(t, errs, "\nottla: another program listens there")
	require.Empty(t, out)
}

func TestFolderInUseEndsWithOne(t *testing.T) {
	data := t.TempDir()
	s := serve(t, "--data", data)
	code, out, errs := command(t, "serve", "--port", "0", "--data", data)
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, errs, data)
	require.Contains(t, errs, "\nottla: a broker is running on this data folder")
	require.Empty(t, out)
	s.terminate(t)
}

func TestADataFolderThatIsNoneEndsWithOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, _, errs := command(t, "serve", "--port", "0", "--data", file)
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, errs, file)
	require.Contains(t, errs, "\nottla: --data wants a folder")

	if os.Getuid() == 0 {
		return // who may do anything
	}
	locked := t.TempDir()
	require.NoError(t, os.Chmod(locked, 0))
	code, _, errs = command(t, "serve", "--port", "0", "--data", locked)
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, errs, locked)
	require.Contains(t, errs, "\nottla: this user may not read and write the data folder")
}

func TestHelpAndVersionGoToStdout(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"help"}, {"serve", "--help"}, {"help", "topics", "create"}, {"version"}, {"--version"}} {
		code, out, errs := command(t, args...)
		require.Zero(t, code, "%v", args)
		require.NotEmpty(t, out, "%v", args)
		require.Empty(t, errs, "%v", args)
	}
	_, out, _ := command(t, "--help")
	for _, name := range []string{"serve", "topics", "produce", "consume", "groups", "txns", "producers", "dump-log", "version"} {
		require.Contains(t, out, name)
	}
}
