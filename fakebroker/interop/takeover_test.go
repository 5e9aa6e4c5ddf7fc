package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/admin"
	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
)

// TestBrokersTakeOverEachOthersFolder runs ottla, Apache Kafka and ottla again on one data folder: metadata log, snapshot,
// quorum state, checkpoints and segments of one are what the other goes on from.
func TestBrokersTakeOverEachOthersFolder(t *testing.T) {
	t.Parallel()
	data, port := t.TempDir(), reserve(t, 2)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	controller := fmt.Sprintf("127.0.0.1:%d", port+1) // where ottla says that its controller is
	conf := filepath.Join(t.TempDir(), "server.properties")
	require.NoError(t, os.WriteFile(conf, []byte(strings.Join([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.bootstrap.servers=" + controller,
		"listeners=PLAINTEXT://" + addr + ",CONTROLLER://" + controller, "controller.listener.names=CONTROLLER",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "log.dirs=" + data, "",
	}, "\n")), 0o644))
	var want []string
	turn := func(who string, p *process) {
		defer func() { require.NoError(t, ended(p), "%s: %s", who, p.log) }()
		cl, err := client.New(client.Seeds(p.addr))
		require.NoError(t, err)
		defer cl.Close(t.Context())
		a := admin.New(cl)
		if len(want) == 0 {
			_, err := a.CreateTopics(t.Context(), admin.NewTopic{Name: "shared", Partitions: 1, Replicas: 1, Configs: map[string]string{"segment.bytes": "1048576"}},
				admin.NewTopic{Name: "empty", Partitions: 3, Replicas: 1})
			require.NoError(t, err)
		}
		_, err = a.CreateTopics(t.Context(), admin.NewTopic{Name: "by-" + who, Partitions: 1, Replicas: 1})
		require.NoError(t, err)
		require.NoError(t, a.AwaitTopic(t.Context(), "shared"))
		for _, codec := range codecs {
			w, err := producer.New(cl, producer.Compression(codec))
			require.NoError(t, err)
			for i := range 20 {
				line := fmt.Sprintf("%s %s %d %s", who, codec, i, strings.Repeat("x", 30000))
				want = append(want, line)
				_, err := w.Send(t.Context(), producer.Record{Topic: "shared", Value: []byte(line)})
				require.NoError(t, err)
			}
			require.NoError(t, w.Close(t.Context()))
		}
		for i, r := range readAll(t, cl, "shared", 1) {
			require.EqualValues(t, i, r.Offset, "%s reads", who)
			require.True(t, want[i] == string(r.Value), "%s reads %.50q as record %d, which is %.50q", who, r.Value, i, want[i])
		}
	}
	turn("ottla", startOttla(t, "--data", data, "--port", fmt.Sprint(port)))
	kafka, err := runKafka(conf, data, listeners{"PLAINTEXT": addr})
	require.NoError(t, err)
	t.Cleanup(func() { kafka.stop() })
	turn("kafka", kafka)
	last := startOttla(t, "--data", data, "--port", fmt.Sprint(port))
	turn("ottla-again", last)
	require.Len(t, want, 3*5*20)
	for _, topic := range []string{"by-ottla", "by-kafka", "by-ottla-again", "empty"} {
		require.DirExists(t, filepath.Join(data, topic+"-0"))
	}
}

// ended stops a process; Java tells that it was asked to by 143, which is no failure.
func ended(p *process) error {
	if err := p.stop(); p.cmd.ProcessState.ExitCode() != 143 {
		return err
	}
	return nil
}
