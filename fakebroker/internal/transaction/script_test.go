package transaction

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/fakebroker/internal/coordinator"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// TestScripts runs the stories in testdata: each line that starts with a letter is a command, the lines behind it are
// what came of it. OTTLA_UPDATE=1 go test writes them anew.
//
//	broker level=2 [patience=20ms] [config=value ...]   a new coordinator
//	init ID [timeout=MS] [as=PID/EPOCH]            InitProducerId
//	add|add2 ID PID/EPOCH TOPIC:N ...              AddPartitionsToTxn of a client of transaction.version 0 or 2
//	verify ID PID/EPOCH TOPIC:N ...                the same, asking only
//	commit|abort|commit2|abort2 ID PID/EPOCH       EndTxn
//	written N                                      the markers of order N are written
//	timeout ID                                     times out now
//	wait DURATION      level N      refuse CODE (the next append)
//	epoch ID N         what InitProducerId and EndTxn would take very long to reach
//	reload             replays the log into a new coordinator of the next epoch
//	show ID            list [state=NAME] [producer=PID] [duration=MS] [pattern=RE]
//
// Lines: "= answer", "+ record", "! markers ordered", "? a producer id was needed".
func TestScripts(t *testing.T) { wiretest.Stories(t, runScript) }

type script struct {
	*bench
	text strings.Builder
}

func runScript(t *testing.T, text string) string {
	s := &script{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "  ") {
			continue // what it printed last time
		}
		s.text.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if words[0] == "broker" {
			level, configs := int16(2), map[string]string{}
			for key, value := range pairs(words[1:]) {
				if key == "level" {
					level = int16(number(t, value))
				} else {
					configs[key] = value
				}
			}
			wait := configs["patience"]
			delete(configs, "patience")
			s.bench = newBench(t, level, configs)
			if wait != "" {
				d, err := time.ParseDuration(wait)
				require.NoError(t, err)
				s.wait, s.m.o.Patience = d, d
			}
			s.printf = func(format string, args ...any) { fmt.Fprintf(&s.text, "  "+format+"\n", args...) }
			continue
		}
		s.line(words)
		s.requireReplays()
	}
	return s.text.String()
}

func pairs(words []string) map[string]string {
	m := make(map[string]string)
	for _, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			m[key] = value
		}
	}
	return m
}

func number(t testing.TB, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	require.NoError(t, err)
	return n
}

func producer(t testing.TB, s string) Producer {
	id, epoch, ok := strings.Cut(s, "/")
	require.True(t, ok, "%q is no PID/EPOCH", s)
	return Producer{number(t, id), int16(number(t, epoch))}
}

func partitions(t testing.TB, words []string) (parts []TopicPartition) {
	for _, w := range words {
		topic, index, ok := strings.Cut(w, ":")
		require.True(t, ok, "%q is no TOPIC:N", w)
		parts = append(parts, TopicPartition{topic, int32(number(t, index))})
	}
	return parts
}

func (s *script) line(words []string) {
	t := s.t
	switch name, args := words[0], words[1:]; name {
	case "init":
		r := InitProducerID{ID: args[0], TimeoutMs: 60_000, Expected: NoProducer, NewProducerID: noProducerID}
		options := pairs(args)
		if v, ok := options["timeout"]; ok {
			r.TimeoutMs = int32(number(t, v))
		}
		if v, ok := options["as"]; ok {
			r.Expected = producer(t, v)
		}
		s.ask(r)
	case "add", "add2":
		r := AddPartitions{ID: args[0], Producer: producer(t, args[1]), Partitions: partitions(t, args[2:])}
		if name == "add2" {
			r.Version = 2
		}
		s.ask(r)
	case "verify":
		s.ask(VerifyPartitions{ID: args[0], Producer: producer(t, args[1]), Partitions: partitions(t, args[2:])})
	case "commit", "abort", "commit2", "abort2":
		r := EndTxn{ID: args[0], Producer: producer(t, args[1]), Commit: strings.HasPrefix(name, "commit"), NewProducerID: noProducerID}
		if strings.HasSuffix(name, "2") {
			r.Version = 2
		}
		s.ask(r)
	case "written":
		s.ask(s.orders[number(t, args[0])].Written())
	case "timeout":
		s.ask(TimeOut{ID: args[0], Producer: NoProducer, NewProducerID: noProducerID})
	default:
		s.control(name, args)
	}
}

func (s *script) control(name string, args []string) {
	t := s.t
	switch name {
	case "wait":
		d, err := time.ParseDuration(args[0])
		require.NoError(t, err)
		s.pass(d)
	case "level":
		s.ask(Environment{Level: int16(number(t, args[0])), Config: s.m.env.Config})
	case "refuse":
		s.refuse = codeNamed(t, args[0])
	case "epoch":
		s.setEpoch(args[0], int16(number(t, args[1])))
	case "reload":
		s.reload()
	case "show":
		s.ask(Describe{ID: args[0]})
	case "list":
		r := message.NewListTransactionsRequest()
		for key, value := range pairs(args) {
			switch key {
			case "state":
				r.StateFilters = append(r.StateFilters, value)
			case "producer":
				r.ProducerIdFilters = append(r.ProducerIdFilters, number(t, value))
			case "duration":
				r.DurationFilter = number(t, value)
			case "pattern":
				r.TransactionalIdPattern = &value
			}
		}
		f, unknown, code := NewFilter(r)
		if code != errcode.None {
			s.printf("= %s", code.Name())
			return
		}
		for _, name := range unknown {
			s.printf("= unknown state %s", name)
		}
		s.ask(f)
	default:
		t.Fatalf("%q is no command", name)
	}
}

func codeNamed(t testing.TB, name string) errcode.Code {
	for c := errcode.Code(0); c < 200; c++ {
		if c.Name() == name {
			return c
		}
	}
	t.Fatalf("%q is no code", name)
	return 0
}

var _ coordinator.Shard = (*Machine)(nil)
