package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
)

// root is the repository, seen from this folder.
const root = "../.."

var (
	kafkaAddr  string // the one Apache Kafka broker of this run
	ottlaBin   string // the binary under test
	scratchDir string
)

// TestMain builds ottla once and starts Apache Kafka once; tests use topics of their own.
func TestMain(m *testing.M) {
	if port, err := strconv.Atoi(os.Getenv("OTTLA_INTEROP_KFAKE")); err == nil { // the child of startKfake
		_, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.AllowAutoTopicCreation())
		fmt.Fprintln(os.Stderr, err)
		select {}
	}
	if spec, ok := os.LookupEnv(workerEnv); ok { // the child of goWorker
		os.Exit(work(spec))
	}
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	if os.Getenv("OTTLA_KAFKA_LIBS") == "" || os.Getenv("OTTLA_PYTHON") == "" {
		return 1, errors.New("OTTLA_KAFKA_LIBS and OTTLA_PYTHON are not set; run .ci/install at the repository's top, it prints them")
	}
	dir, err := os.MkdirTemp("", "ottla-interop-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	scratchDir, ottlaBin = dir, filepath.Join(dir, "ottla")
	build := exec.Command("go", "build", "-o", ottlaBin, "./fakebroker/cmd/ottla")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("building ottla: %w\n%s", err, out)
	}
	if err := makeCertificates(filepath.Join(dir, "certificates")); err != nil {
		return 1, err
	}
	kafka, err := startKafka(filepath.Join(dir, "kafka"))
	if err != nil {
		return 1, err
	}
	defer kafka.stop()
	shareClasses(filepath.Join(dir, "tools.jsa"))
	return m.Run(), nil
}

// process is a child that is stopped at the end, whatever happens.
type process struct {
	cmd  *exec.Cmd
	data string // its folder, if the test has to know
	addr string
	log  *lockedBuffer
	once sync.Once
	err  error
}

// stop ends the process with SIGTERM and, if it does not listen for 20 s, kills it; it returns how the process ended.
func (p *process) stop() error {
	p.once.Do(func() {
		p.cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(20*time.Second, func() { p.cmd.Process.Kill() })
		defer kill.Stop()
		p.err = p.cmd.Wait()
	})
	return p.err
}

// kill ends the process as a crash does.
func (p *process) kill() {
	p.once.Do(func() { p.cmd.Process.Kill(); p.err = p.cmd.Wait() })
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// freePorts returns n ports that nobody listened on a moment ago.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// listeners are the addresses of one broker by security protocol, as in security.protocol of clients.
type listeners map[string]string

// kafkaListeners are those of the one Apache Kafka of this run; kafkaAddr is its plain one.
var kafkaListeners = listeners{}

// The one user of all brokers that ask for a login.
const saslUser, saslPassword = "ann", "ann-secret"

// startKafka formats and starts one Apache Kafka node, broker and controller with a quorum of its own, and waits until it
// answers. It listens in every way a client can come: plain, TLS, SASL/PLAIN, both.
func startKafka(dir string) (*process, error) {
	protocols := []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}
	ports, err := freePorts(len(protocols) + 1)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var listen, kinds []string
	for i, p := range protocols {
		kafkaListeners[p] = fmt.Sprintf("127.0.0.1:%d", ports[i])
		listen = append(listen, p+"://"+kafkaListeners[p])
		kinds = append(kinds, p+":"+p)
	}
	controller := fmt.Sprintf("127.0.0.1:%d", ports[len(protocols)])
	jaas := fmt.Sprintf("org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=\"%s\";", saslUser, saslPassword)
	conf := filepath.Join(dir, "server.properties")
	text := strings.Join([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.bootstrap.servers=" + controller,
		"listeners=" + strings.Join(listen, ",") + ",CONTROLLER://" + controller,
		"advertised.listeners=" + strings.Join(listen, ",") + ",CONTROLLER://" + controller,
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
		"listener.security.protocol.map=" + strings.Join(kinds, ",") + ",CONTROLLER:PLAINTEXT",
		"ssl.keystore.type=PEM", "ssl.keystore.location=" + filepath.Join(certDir, "keystore.pem"),
		"sasl.enabled.mechanisms=PLAIN",
		"listener.name.sasl_plaintext.plain.sasl.jaas.config=" + jaas, "listener.name.sasl_ssl.plain.sasl.jaas.config=" + jaas,
		"log.dirs=" + filepath.Join(dir, "data"), "num.partitions=1",
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		"", // more settings follow
	}, "\n") + strings.Join(slices.Concat(groupSettings, transactionSettings), "\n") + "\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return nil, err
	}
	format := javaCommand(context.Background(), "kafka.tools.StorageTool", "format", "--standalone", "-t", "ottla-interop-cluster1", "-c", conf)
	if out, err := format.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("formatting Apache Kafka's folder: %w\n%s", err, out)
	}
	p, err := runKafka(conf, kafkaListeners["PLAINTEXT"], kafkaListeners["SASL_SSL"])
	if err == nil {
		kafkaAddr = p.addr
	}
	return p, err
}

// startSmallKafka starts another Apache Kafka with a plain listener and what a test needs different: features to format with,
// as in transaction.version=1, and settings.
func startSmallKafka(t testing.TB, features, settings []string) *process {
	t.Helper()
	dir, port := t.TempDir(), twoPorts(t)
	conf := filepath.Join(dir, "server.properties")
	require.NoError(t, os.WriteFile(conf, []byte(strings.Join(slices.Concat(smallSettings(filepath.Join(dir, "data"), port), settings), "\n")), 0o644))
	args := []string{"format", "--standalone", "-t", "ottla-interop-cluster2", "-c", conf}
	for _, f := range features {
		args = append(args, "--feature", f)
	}
	r := run(t, javaCommand(context.Background(), "kafka.tools.StorageTool", args...), "")
	require.Zero(t, r.code, "formatting: %s%s", r.stdout, r.stderr)
	p, err := runKafka(conf, fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	p.data = filepath.Join(dir, "data")
	t.Cleanup(func() { p.stop() })
	return p
}

// smallSettings are those of a node with a plain listener on a port and its controller on the next one, as ottla has it.
func smallSettings(data string, port int) []string {
	addr, controller := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", port+1)
	return slices.Concat([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.bootstrap.servers=" + controller,
		"listeners=PLAINTEXT://" + addr + ",CONTROLLER://" + controller, "controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "log.dirs=" + data,
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
	}, groupSettings, transactionSettings)
}

// runKafka starts a node by its configuration and waits until it listens on all addresses; the first is its own.
func runKafka(conf string, addrs ...string) (*process, error) {
	p := &process{cmd: javaCommand(context.Background(), "kafka.Kafka", conf), addr: addrs[0], log: &lockedBuffer{}}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 240 {
		if !slices.ContainsFunc(addrs, func(a string) bool { return !dialable(a) }) {
			return p, nil
		}
		time.Sleep(250 * time.Millisecond)
	}
	p.kill()
	return nil, fmt.Errorf("Apache Kafka did not listen on %v within a minute:\n%s", addrs, p.log)
}

func dialable(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// startOttla runs `ottla serve` on a free port with more arguments and waits for its ready line.
func startOttla(t testing.TB, args ...string) *process {
	t.Helper()
	p := &process{log: &lockedBuffer{}}
	if !slices.Contains(args, "--port") {
		args = append([]string{"--port", "0"}, args...)
	}
	p.cmd = exec.Command(ottlaBin, append([]string{"serve"}, args...)...)
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("ottla serve said: %s", p.log)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "no ready line; stderr: %s", p.log)
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "ready bootstrap=")
	require.True(t, ok, "first line on stdout is %q", line)
	p.addr = addr
	if i := slices.Index(args, "--data"); i >= 0 {
		p.data = args[i+1]
	}
	return p
}

// javaCommand runs a main class of Apache Kafka's jars, with settings for short runs.
func javaCommand(ctx context.Context, class string, args ...string) *exec.Cmd {
	jvm := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	if sharedClasses != "" {
		jvm = append(jvm, "-XX:SharedArchiveFile="+sharedClasses)
	}
	jvm = append(jvm, "-cp", filepath.Join(os.Getenv("OTTLA_KAFKA_LIBS"), "*"), class)
	return exec.CommandContext(ctx, "java", append(jvm, args...)...)
}

// peerClasses is the folder with the classes of peers/*.java, which are compiled when they are needed first.
var peerClasses = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratchDir, "classes")
	sources, err := filepath.Glob("peers/*.java")
	if err != nil {
		return "", err
	}
	args := append([]string{"-cp", filepath.Join(os.Getenv("OTTLA_KAFKA_LIBS"), "*"), "-d", dir}, sources...)
	if out, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	return dir, nil
})

// peerCommand runs a main class of peers/*.java.
func peerCommand(t testing.TB, class string, args ...string) *exec.Cmd {
	dir, err := peerClasses()
	if err != nil {
		t.Error(err)
	}
	cmd := javaCommand(context.Background(), class, args...)
	at := slices.Index(cmd.Args, "-cp") + 1
	cmd.Args[at] += string(os.PathListSeparator) + dir
	return cmd
}

// sharedClasses is an archive of loaded classes, if this run could make one.
var sharedClasses string

// shareClasses runs one tool and keeps the classes that it loaded in a file, from which the runs after it start in half
// the time. A Java that cannot do so does without.
func shareClasses(file string) {
	cmd := javaCommand(context.Background(), topicCommand, "--bootstrap-server", kafkaAddr, "--describe")
	cmd.Args = append([]string{cmd.Args[0], "-XX:ArchiveClassesAtExit=" + file}, cmd.Args[1:]...)
	if _, err := cmd.CombinedOutput(); err == nil && exists(file) {
		sharedClasses = file
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// result is what a command did.
type result struct {
	stdout, stderr string
	code           int
}

// run executes a command to its end, a minute at most.
func run(t testing.TB, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	r, err := execute(cmd, stdin)
	require.NoError(t, err)
	return r
}

// execute is run for any goroutine.
func execute(cmd *exec.Cmd, stdin string) (result, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer kill.Stop()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return result{}, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}, nil
}

// java runs a tool and demands success.
func java(t testing.TB, stdin, class string, args ...string) string {
	t.Helper()
	r := run(t, javaCommand(t.Context(), class, args...), stdin)
	require.Zero(t, r.code, "%s %v\nstdout: %s\nstderr: %s", class, args, r.stdout, r.stderr)
	return r.stdout
}
