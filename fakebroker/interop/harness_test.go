package interop

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/ottla-kafka/ottla/wire"
	"github.com/ottla-kafka/ottla/wire/message"
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
	if oldKafkas == "" && (os.Getenv("OTTLA_KAFKA_LIBS") == "" || os.Getenv("OTTLA_PYTHON") == "") {
		return 1, errors.New("OTTLA_KAFKA_LIBS and OTTLA_PYTHON are not set; run .ci/install at the repository's top, it prints them")
	}
	dir, err := os.MkdirTemp("", "ottla-interop-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	scratchDir, ottlaBin = dir, filepath.Join(dir, "ottla")
	if err := build(ottlaBin, "./fakebroker/cmd/ottla"); err != nil {
		return 1, err
	}
	if err := makeCertificates(filepath.Join(dir, "certificates")); err != nil {
		return 1, err
	}
	if oldKafkas != "" {
		return m.Run(), nil
	}
	kafka, err := startKafka(filepath.Join(dir, "kafka"))
	if err != nil {
		return 1, err
	}
	defer kafka.stop()
	shareClasses(filepath.Join(dir, "tools.jsa"))
	return m.Run(), nil
}

// build makes a binary of a package of the repository.
func build(file, pkg string) error {
	cmd := exec.Command("go", "build", "-o", file, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
	}
	return nil
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
	return onFreePorts(dir, len(protocols)+1, func(dir string, port int) (*process, error) {
		var listen, kinds []string
		for i, p := range protocols {
			kafkaListeners[p] = fmt.Sprintf("127.0.0.1:%d", port+i)
			listen = append(listen, p+"://"+kafkaListeners[p])
			kinds = append(kinds, p+":"+p)
		}
		controller := fmt.Sprintf("127.0.0.1:%d", port+len(protocols))
		jaas := fmt.Sprintf("org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=\"%s\";", saslUser, saslPassword)
		data := filepath.Join(dir, "data")
		kafkaAddr = kafkaListeners["PLAINTEXT"]
		return formatKafka(dir, nil, kafkaListeners, slices.Concat([]string{
			"process.roles=broker,controller", "node.id=1", "controller.quorum.bootstrap.servers=" + controller,
			"listeners=" + strings.Join(listen, ",") + ",CONTROLLER://" + controller,
			"advertised.listeners=" + strings.Join(listen, ",") + ",CONTROLLER://" + controller,
			"controller.listener.names=CONTROLLER", "inter.broker.listener.name=PLAINTEXT",
			"listener.security.protocol.map=" + strings.Join(kinds, ",") + ",CONTROLLER:PLAINTEXT",
			"ssl.keystore.type=PEM", "ssl.keystore.location=" + filepath.Join(certDir, "keystore.pem"),
			"sasl.enabled.mechanisms=PLAIN",
			"listener.name.sasl_plaintext.plain.sasl.jaas.config=" + jaas, "listener.name.sasl_ssl.plain.sasl.jaas.config=" + jaas,
			"log.dirs=" + data, "num.partitions=1",
			"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4",
			"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
			"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1",
		}, groupSettings, transactionSettings))
	})
}

// onFreePorts starts a node on n adjacent ports, with a folder of its own, and once more elsewhere when it ends at once: somebody
// else may have been quicker.
func onFreePorts(dir string, n int, start func(dir string, port int) (*process, error)) (p *process, err error) {
	for try := range 3 {
		port, err := freePorts(n)
		if err != nil {
			return nil, err
		}
		if p, err = start(filepath.Join(dir, fmt.Sprint("try-", try)), port); err == nil {
			return p, nil
		}
		fmt.Fprintln(os.Stderr, "interop:", err)
	}
	return nil, errors.New("Apache Kafka does not start")
}

// startSmallKafka starts another Apache Kafka with a plain listener and what a test needs different: features to format with,
// as in transaction.version=1, and settings.
func startSmallKafka(t testing.TB, features, settings []string) *process {
	t.Helper()
	p, err := onFreePorts(t.TempDir(), 2, func(dir string, port int) (*process, error) {
		at := listeners{"PLAINTEXT": fmt.Sprintf("127.0.0.1:%d", port)}
		return formatKafka(dir, features, at, slices.Concat(smallSettings(filepath.Join(dir, "data"), port), settings))
	})
	require.NoError(t, err)
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

// formatKafka formats the folder DIR/data, with features, and runs a node there.
func formatKafka(dir string, features []string, at listeners, settings []string) (*process, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(conf, []byte(strings.Join(settings, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	cluster := fmt.Sprintf("ottla-interop-%07xA", rand.Uint32N(1<<28)) // has the form of a Kafka UUID
	args := []string{"format", "--standalone", "-t", cluster, "-c", conf}
	for _, f := range features {
		args = append(args, "--feature", f)
	}
	r, err := execute(javaCommand(context.Background(), "kafka.tools.StorageTool", args...), "")
	if err != nil || r.code != 0 {
		return nil, fmt.Errorf("formatting Apache Kafka's folder: %w\n%s%s", err, r.stdout, r.stderr)
	}
	return runKafka(conf, filepath.Join(dir, "data"), at)
}

// runKafka starts a node by its configuration and waits until it answers and takes connections everywhere.
func runKafka(conf, data string, at listeners) (*process, error) {
	p, err := launch(javaCommand(context.Background(), "kafka.Kafka", conf))
	if err != nil {
		return nil, err
	}
	p.addr, p.data = at["PLAINTEXT"], data
	return p, p.awaitBroker(clusterOf(data), slices.Collect(maps.Values(at))...)
}

// clusterOf is the id of the cluster that a data folder belongs to.
func clusterOf(data string) string {
	text, _ := os.ReadFile(filepath.Join(data, "meta.properties"))
	for line := range strings.Lines(string(text)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "cluster.id="); ok {
			return strings.ReplaceAll(id, `\`, "")
		}
	}
	return "none in " + data
}

// awaitBroker waits until the process answers as the only broker of a cluster (of whatever one, if that is empty) and takes
// connections at all addresses; it kills one that does not.
func (p *process) awaitBroker(cluster string, addrs ...string) error {
	for deadline := time.Now().Add(patience); p.alive() && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if answers(p.addr, cluster) && !slices.ContainsFunc(addrs, func(a string) bool { return !dialable(a) }) {
			return nil
		}
	}
	p.kill()
	return fmt.Errorf("Apache Kafka at %v: %w\n%s", addrs, p.err, p.log)
}

// answers asks a broker for its cluster, and whether it lets itself be used: a fenced one does not list itself.
func answers(addr, cluster string) bool {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	const version = 4
	req := message.NewMetadataRequest()
	req.Topics = []message.MetadataRequestTopic{}
	frame, err := req.AppendTo(wire.AppendRequestHeader(make([]byte, 4), wire.KeyMetadata, version, 1, nil), version)
	if err != nil {
		return false
	}
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if _, err := conn.Write(frame); err != nil {
		return false
	}
	answer := make([]byte, 8) // size and correlation id
	if _, err := io.ReadFull(conn, answer); err != nil {
		return false
	}
	answer = make([]byte, max(int32(binary.BigEndian.Uint32(answer))-4, 0))
	var resp message.MetadataResponse
	if _, err := io.ReadFull(conn, answer); err != nil || resp.ReadFrom(wire.NewReader(answer), version) != nil {
		return false
	}
	return len(resp.Brokers) == 1 && (cluster == "" || deref(resp.ClusterId) == cluster)
}

func dialable(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// startOttla runs `ottla serve` on a free port with more arguments and waits for its ready line.
func startOttla(t testing.TB, args ...string) *process {
	t.Helper()
	if !slices.Contains(args, "--port") {
		args = append([]string{"--port", "0"}, args...)
	}
	cmd := exec.Command(ottlaBin, append([]string{"serve"}, args...)...)
	said := make(chan string, 1)
	cmd.Stdout = &lineWriter{tell: func(line string) {
		select {
		case said <- line: // the first one
		default:
		}
	}}
	p, err := launch(cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("ottla serve said: %s", p.log)
		}
	})
	select {
	case line := <-said:
		addr, ok := strings.CutPrefix(line, "ready bootstrap=")
		require.True(t, ok, "first line on stdout is %q", line)
		p.addr = addr
	case <-p.over:
		require.Fail(t, "ottla serve has ended", "%v; stderr: %s", p.err, p.log)
	case <-time.After(patience):
		require.Fail(t, "ottla serve does not get ready", "stderr: %s", p.log)
	}
	if i := slices.Index(args, "--data"); i >= 0 {
		p.data = args[i+1]
	}
	return p
}

// javaCommand runs a main class of Apache Kafka's jars, with settings for short runs.
func javaCommand(ctx context.Context, class string, args ...string) *exec.Cmd {
	jvm := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + scratchDir}
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
	if r, err := execute(exec.Command("javac", args...), ""); err != nil || r.code != 0 {
		return "", fmt.Errorf("javac: %w\n%s%s", err, r.stdout, r.stderr)
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
	if r, err := execute(cmd, ""); err == nil && r.code == 0 && exists(file) {
		sharedClasses = file
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// java runs a tool and demands success.
func java(t testing.TB, stdin, class string, args ...string) string {
	t.Helper()
	r := run(t, javaCommand(t.Context(), class, args...), stdin)
	require.Zero(t, r.code, "%s %v\nstdout: %s\nstderr: %s", class, args, r.stdout, r.stderr)
	return r.stdout
}
