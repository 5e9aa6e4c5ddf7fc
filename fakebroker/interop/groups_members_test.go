package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
)

// share is what a member says of itself: the partitions that it owns and the records that it has read.
type share struct {
	mu    sync.Mutex
	owned map[int32]bool
	read  map[string]int // value -> how often
}

func newShare() *share { return &share{owned: map[int32]bool{}, read: map[string]int{}} }

func (s *share) saw(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[value]++
}

func (s *share) gain(partitions ...int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range partitions {
		s.owned[p] = true
	}
}

func (s *share) lose(partitions ...int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range partitions {
		delete(s.owned, p)
	}
}

func (s *share) owns() []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.owned))
}

// member is one consumer of a fleet, whoever made it. Its name is its client.id, by which the coordinator's view of it is
// found.
type member struct {
	name   string
	share  *share
	silent bool         // it does not tell what it owns
	leave  func() error // ends it in good order
	kill   func()       // ends it as a crash does; nil for one that lives in this process
}

// fleet is what all members of a group agree on.
type fleet struct {
	addr, group, topic string
	assignor           string        // of the classic protocol
	session            time.Duration // after which a member is missed
}

// joining starts a member with a protocol, "classic" or "consumer".
type joining func(t testing.TB, f fleet, protocol string) *member

var joiners = map[string]joining{
	"ottla":        joinOurs,
	"java":         joinConsole,
	"verifiable":   joinVerifiable,
	"confluent":    joinPython("confluent"),
	"kafka-python": joinPython("kafka-python"),
	"franz-go":     joinFranz,
	"sarama":       joinSarama,
}

func joinOurs(t testing.TB, f fleet, protocol string) *member { return joinAs(t, "ottla", f, protocol) }

// joinAs is a member made with package consumer.
func joinAs(t testing.TB, name string, f fleet, protocol string) *member {
	s := newShare()
	numbers := func(parts []consumer.TopicPartition) (list []int32) {
		for _, p := range parts {
			list = append(list, p.Partition)
		}
		return list
	}
	opts := []consumer.Option{consumer.Group(f.group), consumer.Subscribe(f.topic), consumer.GroupProtocol(protocol),
		consumer.OnReset(consumer.Earliest), consumer.AutoCommit(500 * time.Millisecond),
		consumer.OnAssigned(func(_ context.Context, parts []consumer.TopicPartition) { s.gain(numbers(parts)...) }),
		consumer.OnRevoked(func(_ context.Context, parts []consumer.TopicPartition) { s.lose(numbers(parts)...) }),
		consumer.OnLost(func(_ context.Context, parts []consumer.TopicPartition, _ error) { s.lose(numbers(parts)...) })}
	if protocol == "classic" {
		opts = append(opts, consumer.Assignors(f.assignor), consumer.SessionTimeout(f.session, 500*time.Millisecond))
	}
	c, err := consumer.New(newClient(t, f.addr, client.ClientID(name)), opts...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { // ends with ctx
		for r, err := range c.Records(ctx) {
			if err != nil {
				if ctx.Err() == nil {
					over <- fmt.Errorf("%s: %w", name, err)
					return
				}
				break
			}
			s.saw(string(r.Value))
		}
		over <- nil
	}()
	leave := sync.OnceValue(func() error {
		cancel()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return errors.Join(<-over, c.Close(ctx))
	})
	t.Cleanup(func() { leave() })
	return &member{name: name, share: s, leave: leave}
}

func joinFranz(t testing.TB, f fleet, protocol string) *member {
	s := newShare()
	gain := func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { s.gain(parts[f.topic]...) }
	lose := func(_ context.Context, _ *kgo.Client, parts map[string][]int32) { s.lose(parts[f.topic]...) }
	balancer := kgo.RangeBalancer()
	if f.assignor == "cooperative-sticky" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	opts := []kgo.Opt{kgo.SeedBrokers(f.addr), kgo.ClientID("franz-go"), kgo.ConsumerGroup(f.group), kgo.ConsumeTopics(f.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(500 * time.Millisecond), kgo.Balancers(balancer),
		kgo.SessionTimeout(f.session), kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(gain), kgo.OnPartitionsRevoked(lose), kgo.OnPartitionsLost(lose)}
	if protocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	cl, err := kgo.NewClient(opts...)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { // ends with ctx
		defer close(over)
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) { s.saw(string(r.Value)) })
		}
	}()
	leave := sync.OnceValue(func() error {
		cancel()
		<-over
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := cl.CommitUncommittedOffsets(ctx)
		cl.Close()
		return err
	})
	t.Cleanup(func() { leave() })
	return &member{name: "franz-go", share: s, leave: leave}
}

// saramaHandler is the face that sarama's consumer group wants. With a cooperative assignor one session lasts over many
// rebalances and nothing but ConsumeClaim tells what it has.
type saramaHandler struct{ share *share }

func (saramaHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (saramaHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h saramaHandler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	h.share.gain(claim.Partition())
	defer h.share.lose(claim.Partition())
	for m := range claim.Messages() {
		h.share.saw(string(m.Value))
		s.MarkMessage(m, "")
	}
	return nil
}

func joinSarama(t testing.TB, f fleet, protocol string) *member {
	require.Equal(t, "classic", protocol, "sarama has no other")
	cfg := sarama.NewConfig()
	cfg.Version, cfg.ClientID = sarama.V3_6_0_0, "sarama"
	cfg.Consumer.Offsets.Initial, cfg.Consumer.Offsets.AutoCommit.Interval = sarama.OffsetOldest, 500*time.Millisecond
	cfg.Consumer.Group.Session.Timeout, cfg.Consumer.Group.Heartbeat.Interval = f.session, 500*time.Millisecond
	cfg.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	if f.assignor == "cooperative-sticky" {
		cfg.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyCooperativeSticky()}
	}
	g, err := sarama.NewConsumerGroup([]string{f.addr}, f.group, cfg)
	require.NoError(t, err)
	s := newShare()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { // ends with ctx; Consume returns at each rebalance
		var err error
		for ctx.Err() == nil && err == nil {
			err = g.Consume(ctx, []string{f.topic}, saramaHandler{s})
		}
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		over <- err
	}()
	leave := sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-over, g.Close())
	})
	t.Cleanup(func() { leave() })
	return &member{name: "sarama", share: s, leave: leave}
}

// joinProcess starts a member that is a process of its own; understand is given its lines.
func joinProcess(t testing.TB, name string, cmd *exec.Cmd, understand func(s *share, line string)) *member {
	s := newShare()
	cmd.Stdout = &lineWriter{tell: func(line string) { understand(s, line) }}
	p, err := launch(cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said: %s", name, p.log)
		}
	})
	leave := func() error { // a JVM that is told to end in good order exits with 143
		var exit *exec.ExitError
		err := p.stop()
		if errors.As(err, &exit) && exit.ExitCode() == 143 {
			return nil
		}
		return err
	}
	return &member{name: name, share: s, leave: leave, kill: p.kill}
}

func joinPython(name string) joining {
	script := "peers/" + strings.ReplaceAll(name, "-", "") + "_group.py"
	return func(t testing.TB, f fleet, protocol string) *member {
		cmd := exec.Command(os.Getenv("OTTLA_PYTHON"), script, f.addr, f.group, f.topic, protocol, f.assignor, fmt.Sprint(f.session.Milliseconds()))
		return joinProcess(t, name, cmd, func(s *share, line string) {
			verb, rest, _ := strings.Cut(line, " ")
			switch verb {
			case "owns":
				s.lose(s.owns()...)
				for _, word := range strings.Fields(rest) {
					s.gain(number(word))
				}
			case "read":
				_, value, _ := strings.Cut(rest, " ")
				s.saw(value)
			}
		})
	}
}

func number(word string) (n int32) {
	fmt.Sscan(word, &n)
	return n
}

// javaAssignors are the classes behind the names.
var javaAssignors = map[string]string{
	"range":              "org.apache.kafka.clients.consumer.RangeAssignor",
	"cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}

// javaSettings are the properties of a Java member.
func javaSettings(f fleet, protocol, clientID string) []string {
	list := []string{"client.id=" + clientID, "auto.commit.interval.ms=500", "group.protocol=" + protocol}
	if protocol == "classic" {
		list = append(list, fmt.Sprintf("session.timeout.ms=%d", f.session.Milliseconds()), "heartbeat.interval.ms=500", "partition.assignment.strategy="+javaAssignors[f.assignor])
	}
	return list
}

// joinConsole is Java's console consumer, which prints records and nothing else.
func joinConsole(t testing.TB, f fleet, protocol string) *member {
	args := []string{"--bootstrap-server", f.addr, "--topic", f.topic, "--group", f.group, "--from-beginning"}
	for _, setting := range javaSettings(f, protocol, "java") {
		args = append(args, "--command-property", setting)
	}
	m := joinProcess(t, "java", javaCommand(context.Background(), consoleReader, args...), func(s *share, line string) { s.saw(line) })
	m.silent = true
	return m
}

// joinVerifiable is Java's VerifiableConsumer, which prints what happens to it as JSON.
func joinVerifiable(t testing.TB, f fleet, protocol string) *member {
	file := filepath.Join(t.TempDir(), "verifiable.properties")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(javaSettings(f, protocol, "verifiable"), "\n")), 0o644))
	args := []string{"--bootstrap-server", f.addr, "--topic", f.topic, "--group-id", f.group, "--verbose", "--group-protocol", protocol,
		"--command-config", file}
	if protocol == "classic" {
		args = append(args, "--assignment-strategy", javaAssignors[f.assignor], "--session-timeout", fmt.Sprint(f.session.Milliseconds()))
	}
	cmd := javaCommand(context.Background(), "org.apache.kafka.tools.VerifiableConsumer", args...)
	return joinProcess(t, "verifiable", cmd, func(s *share, line string) {
		var event struct {
			Name       string
			Value      string
			Partitions []struct{ Partition int32 }
		}
		if json.Unmarshal([]byte(line), &event) != nil {
			return
		}
		switch event.Name {
		case "partitions_assigned":
			for _, p := range event.Partitions {
				s.gain(p.Partition)
			}
		case "partitions_revoked":
			for _, p := range event.Partitions {
				s.lose(p.Partition)
			}
		case "record_data":
			s.saw(event.Value)
		}
	})
}
