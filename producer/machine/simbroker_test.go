package machine_test

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/producer/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
)

// broker answers one request as Kafka would.
func (w *world) broker(id int32, f fault, frame []wire) []machine.Result {
	var out []machine.Result
	for _, x := range frame {
		out = append(out, w.appendTo(id, f, x))
	}
	return out
}

func (w *world) appendTo(broker int32, f fault, x wire) machine.Result {
	no := func(c errcode.Code) machine.Result { return machine.Result{Code: c, BaseOffset: -1, AppendTime: -1} }
	switch f {
	case notLeader:
		w.move(x.sp)
	case forgotten:
		if w.late == 0 && x.sp.settled() && (x.sp.strict || x.sp.oldest(x.recs)) {
			x.sp.producer = map[int64]*producerState{}
		}
	}
	if broker != x.sp.leader {
		return no(errcode.NotLeaderOrFollower)
	}
	switch f {
	case fewReplicas:
		return no(errcode.NotEnoughReplicas)
	case tooLarge:
		return no(errcode.MessageTooLarge)
	case denied:
		return no(errcode.TopicAuthorizationFailed)
	case invalid:
		return no(errcode.InvalidRecord)
	}
	offset, code := x.sp.append(x)
	if code != errcode.None {
		return no(code)
	}
	switch f {
	case timedOut:
		return no(errcode.RequestTimedOut)
	case tooFew:
		return no(errcode.NotEnoughReplicasAfterAppend)
	case movesAfter:
		w.move(x.sp)
		return no(errcode.NotLeaderOrFollower)
	}
	return machine.Result{BaseOffset: offset, AppendTime: -1}
}

func (w *world) move(sp *simPart) {
	sp.leader = 3 - sp.leader
	sp.epoch++
}

// settled: the client knows of everything in the log that it is there. A broker that forgets a producer whose retry
// or an old request is on its way cannot but take it for new.
func (sp *simPart) settled() bool {
	for _, sb := range sp.sent {
		if (!sb.told || sb.outcome != machine.Acked) && slices.Contains(sp.log, sb.records[0]) {
			return false
		}
	}
	return true
}

// oldest: everything before these records has its verdict. A broker that takes any sequence from a producer it forgot
// takes them in any order.
func (sp *simPart) oldest(recs []string) bool {
	for _, sb := range sp.sent {
		if sb.records[0] == recs[0] {
			return true
		}
		if !sb.told {
			return false
		}
	}
	return false
}

// append is a leader's idempotent append: five remembered batches, gaps refused, a new epoch starts at 0.
func (sp *simPart) append(x wire) (int64, errcode.Code) {
	s := sp.producer[x.id]
	n := int32(len(x.recs))
	if s != nil {
		switch {
		case x.epoch < s.epoch:
			return 0, errcode.InvalidProducerEpoch
		case x.epoch == s.epoch:
			for _, d := range s.last {
				if d.first == x.seq && d.count == n {
					return d.offset, errcode.None
				}
			}
			end := s.last[len(s.last)-1]
			if end.first+end.count != x.seq {
				return 0, errcode.OutOfOrderSequenceNumber
			}
		case x.seq != 0:
			return 0, errcode.OutOfOrderSequenceNumber
		default:
			s.last = nil
		}
	} else {
		if x.seq != 0 && sp.strict {
			return 0, errcode.UnknownProducerId
		}
		s = &producerState{}
		sp.producer[x.id] = s
	}
	s.epoch = x.epoch
	offset := int64(len(sp.log))
	s.last = append(s.last, written{x.seq, n, offset})
	if len(s.last) > 5 {
		s.last = s.last[1:]
	}
	sp.log = append(sp.log, x.recs...)
	return offset, errcode.None
}

// check holds the promises.
func (w *world) check() {
	fail := func(format string, a ...any) {
		w.t.Helper()
		for _, l := range w.trace {
			w.t.Log(l)
		}
		w.t.Fatalf(format, a...)
	}
	require.Empty(w.t, w.open, "batches never released\n%v", w.trace)
	require.True(w.t, w.m.Idle())
	for _, sp := range w.parts {
		at := map[string]int{}
		for i, r := range sp.log {
			if _, twice := at[r]; twice {
				fail("%s is in the log twice", r)
			}
			at[r] = i
		}
		last := -1
		for _, sb := range sp.sent {
			if !sb.told {
				fail("no verdict for %v", sb.records)
			}
			for _, r := range sb.records {
				i, there := at[r]
				switch {
				case sb.outcome == machine.Acked && !there:
					fail("%s was acknowledged and is not in the log", r)
				case sb.outcome == machine.NotWritten && there:
					fail("%s is said not to be written and is at %d", r, i)
				case there && i < last:
					fail("%s at %d comes before an earlier record at %d", r, i, last)
				case there:
					last = i
				}
			}
		}
	}
}
