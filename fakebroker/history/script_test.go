package history

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script plays a history that is written down, one operation a line, on topic "orders":
//
//	w: begin T1                      T1 begins
//	w: send T1 a = 0@3               "a" is sent in T1 (or outside) and acknowledged: partition 0, offset 3
//	w: send b = fail                 ... or not: fail, info, or ? for never
//	w: #1 send c                     begun, and ended by a line of its own
//	#1 = 0@4
//	w: commit T1 = ok                likewise abort; ok, fail, info, ?
//	r: poll 0@3=a 0@4=c              read_committed;  dirty-poll is read_uncommitted
//	w: processed T1 g 0@3            in T1, or outside
//	w: commit-offsets T1 g 0@4 = ok  likewise; reset-offsets g 0@0 = ok
//	w: offsets g 0@4                 the group's committed offsets were seen; "none" for -1
//	w: assigned g 0@0 1@0            likewise revoked g 0, lost g 0, moved 0@0, crashed
type script struct {
	t     *testing.T
	log   *Log
	txns  map[string]*Txn
	calls map[string]func(string)
}

func play(t *testing.T, text string) *Log {
	t.Helper()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		at = at.Add(time.Millisecond)
		return at
	}
	s := &script{t, New(Clock(clock)), map[string]*Txn{}, map[string]func(string){}}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			s.line(line)
		}
	}
	return s.log
}

func (s *script) line(line string) {
	head, outcome, _ := strings.Cut(line, " = ")
	name, rest, ok := strings.Cut(head, ": ")
	if !ok {
		end := s.calls[name]
		require.NotNil(s.t, end, line)
		end(outcome)
		return
	}
	p, words := s.log.Process(name), strings.Fields(rest)
	label := ""
	if strings.HasPrefix(words[0], "#") {
		label, words = words[0], words[1:]
	}
	verb, words := words[0], words[1:]
	var tx *Txn
	if len(words) > 0 && strings.HasPrefix(words[0], "T") && verb != "begin" {
		tx, words = s.txns[words[0]], words[1:]
		require.NotNil(s.t, tx, line)
	}
	end := s.do(p, tx, verb, words)
	if label != "" {
		s.calls[label] = end
	} else if end != nil {
		end(outcome)
	}
}

// do begins an operation and returns what ends it.
func (s *script) do(p *Process, tx *Txn, verb string, words []string) func(string) {
	switch verb {
	case "begin":
		s.txns[words[0]] = p.Begin()
	case "send":
		c := p.Send
		if tx != nil {
			c = tx.Send
		}
		call := c("orders", words[0])
		return func(outcome string) {
			if partition, offset, ok := strings.Cut(outcome, "@"); ok {
				call.OK(int32(s.number(partition)), s.number(offset))
				return
			}
			s.end(&call.Call, outcome)
		}
	case "commit":
		call := tx.Commit()
		return func(outcome string) { s.end(call, outcome) }
	case "abort":
		call := tx.Abort()
		return func(outcome string) { s.end(call, outcome) }
	case "poll", "dirty-poll":
		level := ReadCommitted
		if verb == "dirty-poll" {
			level = ReadUncommitted
		}
		var reads []Read
		for _, w := range words {
			where, value, _ := strings.Cut(w, "=")
			o := s.offset(where)
			reads = append(reads, Read{o.TopicPartition, o.Offset, value})
		}
		p.Poll(level, reads...)
	case "processed":
		o := s.offset(words[1])
		if tx != nil {
			tx.Processed(words[0], o.TopicPartition, o.Offset)
		} else {
			p.Processed(words[0], o.TopicPartition, o.Offset)
		}
	case "commit-offsets":
		c := p.CommitOffsets
		if tx != nil {
			c = tx.CommitOffsets
		}
		call := c(words[0], s.offsets(words[1:])...)
		return func(outcome string) { s.end(call, outcome) }
	case "reset-offsets":
		call := p.ResetOffsets(words[0], s.offsets(words[1:])...)
		return func(outcome string) { s.end(call, outcome) }
	case "offsets":
		p.FetchedOffsets(words[0], s.offsets(words[1:])...)
	case "assigned":
		p.Assigned(words[0], s.offsets(words[1:])...)
	case "moved":
		p.Moved(s.offsets(words)...)
	case "revoked":
		p.Revoked(words[0], s.parts(words[1:])...)
	case "lost":
		p.Lost(words[0], s.parts(words[1:])...)
	case "crashed":
		p.Crashed()
	default:
		require.Fail(s.t, "no such verb", verb)
	}
	return nil
}

func (s *script) end(c *Call, outcome string) {
	switch outcome {
	case "ok":
		c.OK()
	case "fail":
		c.Fail(errors.New("refused"))
	case "info":
		c.Info(errors.New("no answer"))
	default:
		require.Equal(s.t, "?", outcome)
	}
}

func (s *script) number(text string) int64 {
	if text == "none" {
		return Unknown
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(s.t, err)
	return n
}

func (s *script) offset(word string) Offset {
	partition, offset, _ := strings.Cut(word, "@")
	return Offset{TopicPartition{"orders", int32(s.number(partition))}, s.number(offset)}
}

func (s *script) offsets(words []string) (list []Offset) {
	for _, w := range words {
		list = append(list, s.offset(w))
	}
	return list
}

func (s *script) parts(words []string) (list []TopicPartition) {
	for _, w := range words {
		list = append(list, TopicPartition{"orders", int32(s.number(w))})
	}
	return list
}

// story is a history and what Check is to say of it.
type story struct {
	name    string
	text    string
	drained bool
	want    []Finding
}

// check plays the story and returns what the checker says of it. Each anomaly must show the operations it is about.
func (st *story) check(t *testing.T) *Report {
	t.Helper()
	var opts []CheckOption
	if st.drained {
		opts = append(opts, Drained("orders"))
	}
	r, err := Check(play(t, st.text), opts...)
	require.NoError(t, err)
	for _, a := range r.Anomalies {
		require.NotEmpty(t, a.Ops, a.String())
	}
	return r
}
