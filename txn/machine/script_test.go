package machine_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/txn/machine"
	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/message"
	"github.com/ottla-kafka/ottla/wire/wiretest"
)

// TestScripts plays testdata/*.txt. A line is a command, the lines behind it that begin with a blank are what the machine
// made of it. `OTTLA_UPDATE=1 go test ./txn/machine` rewrites those. Coordinators are found at once.
//
//	start | check [implicit] | begin | commit | allow | recall | abort | woke
//	used TOPIC-P...                partitions have records
//	failed CODE [doubt]            a batch was not acknowledged
//	flushed                        the newest flush has come back
//	offsets GROUP GENERATION       offsets for the transaction, of orders-0
//	ok [ID EPOCH [VERSION]] | CODE | lost | unsent     the answer to the oldest request in the air, or its end
//	fencedby ID EPOCH STATE        the answer to DescribeTransactions
//	wait DURATION                  time passes, with a Woke at each deadline
func TestScripts(t *testing.T) { wiretest.Stories(t, play) }

// player is the driver of a script.
type player struct {
	t        *testing.T
	m        *machine.Machine
	now      time.Time
	start    time.Time
	air      []*machine.Request
	flush    int
	implicit bool
	out      strings.Builder
}

func play(t *testing.T, script string) string {
	p := &player{t: t, start: time.Unix(1000, 0), now: time.Unix(1000, 0)}
	p.m = machine.New(machine.Config{ID: id, Timeout: time.Minute, RetryBackoff: 100 * time.Millisecond, RetryBackoffMax: time.Second, Seed: 1})
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, " ") {
			continue
		}
		p.out.WriteString(line + "\n")
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			p.command(words[0], words[1:])
		}
	}
	return p.out.String()
}

func (p *player) command(name string, a []string) {
	simple := map[string]machine.Event{"start": machine.Started{}, "begin": machine.Begun{}, "commit": machine.CommitAsked{}, "allow": machine.CommitAllowed{},
		"recall": machine.CommitRecalled{}, "abort": machine.AbortAsked{Cause: errAborted}, "woke": machine.Woke{}}
	switch e, ok := simple[name]; {
	case ok:
		p.step(e)
	case name == "check":
		p.implicit = len(a) > 0
		p.step(machine.Checked{Implicit: p.implicit})
	case name == "used":
		var used []client.TopicPartition
		for _, w := range a {
			topic, n, _ := strings.Cut(w, "-")
			used = append(used, client.TopicPartition{Topic: topic, Partition: int32(number(n))})
		}
		p.step(machine.PartitionsUsed{Parts: used})
	case name == "failed":
		c := p.code(a[0])
		p.step(machine.BatchFailed{TopicPartition: parts[0], InDoubt: len(a) > 1, Sequenced: true, Code: c, Err: c})
	case name == "flushed":
		p.step(machine.Flushed{Number: p.flush})
	case name == "offsets":
		p.step(machine.OffsetsGiven{Job: &machine.OffsetJob{Group: a[0], MemberID: "m", Generation: int32(number(a[1])),
			Offsets: []machine.PartitionOffset{{TopicPartition: client.TopicPartition{Topic: "orders"}, Offset: 7}}}})
	case name == "wait":
		d, err := time.ParseDuration(a[0])
		require.NoError(p.t, err)
		p.wait(d)
	default:
		p.reply(name, a)
	}
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

func (p *player) wait(d time.Duration) {
	end := p.now.Add(d)
	for n := 0; !p.m.Deadline().After(end); n++ {
		require.Less(p.t, n, 1000, "the deadline does not move")
		if p.m.Deadline().After(p.now) {
			p.now = p.m.Deadline()
		}
		p.step(machine.Woke{})
	}
	p.now = end
}

// reply ends the oldest request in the air.
func (p *player) reply(what string, a []string) {
	require.NotEmpty(p.t, p.air, what)
	r := p.air[0]
	p.air = p.air[1:]
	version := int16(4)
	switch what {
	case "lost", "unsent":
		p.step(machine.Failed{Request: r, Err: errors.New("connection lost"), Written: what == "lost"})
		return
	case "fencedby":
		p.step(machine.Answered{Request: r, Response: &message.DescribeTransactionsResponse{TransactionStates: []message.DescribeTransactionsResponseTransactionState{
			{TransactionalId: id, ProducerId: int64(number(a[0])), ProducerEpoch: int16(number(a[1])), TransactionState: a[2], TransactionTimeoutMs: 60_000}}}})
		return
	}
	code := errcode.None
	if what != "ok" {
		code = p.code(what)
	}
	var c coordinator
	resp := c.refuse(r, code)
	if what == "ok" && len(a) > 1 {
		switch resp := resp.(type) {
		case *message.InitProducerIdResponse:
			resp.ProducerId, resp.ProducerEpoch = int64(number(a[0])), int16(number(a[1]))
		case *message.EndTxnResponse:
			resp.ProducerId, resp.ProducerEpoch = int64(number(a[0])), int16(number(a[1]))
			version = 5
		}
	}
	if len(a) > 2 {
		version = int16(number(a[2]))
	}
	p.step(machine.Answered{Request: r, Response: resp, Version: version, Broker: "broker 1"})
}

// step takes events to the machine and says what it wants.
func (p *player) step(events ...machine.Event) {
	eff := p.m.Step(p.now, events...)
	for _, tr := range eff.Transitions {
		p.say("%s -> %s", tr.From, tr.To)
	}
	switch {
	case eff.Seal:
		p.say("the producer takes no more records")
	case eff.Unseal:
		p.say("the producer takes records again")
	}
	if eff.Drop != nil {
		p.say("give up what was not sent: %v", eff.Drop)
	}
	for _, tp := range eff.Enlisted {
		p.say("records of %v may go", tp)
	}
	if eff.Flush > 0 {
		p.flush = eff.Flush
		p.say("flush")
	}
	if eff.Open {
		pid, epoch := p.m.Producer()
		p.say("transaction %d is open: id %d epoch %d", p.m.Serial(), pid, epoch)
	}
	for _, j := range eff.Done {
		p.say("offsets of %s: %v (stale %v)", j.Group, j.Err, j.Stale)
	}
	if f := eff.Finished; f != nil {
		p.say("transaction %d is %s: %v", f.Serial, f.Outcome, f.Err)
	}
	if err := p.m.Err(); err != nil && len(eff.Transitions) > 0 {
		by := ""
		if err.Fence != nil {
			by = ", fenced by " + err.Fence.By.String()
		}
		p.say("the session is over%s", by)
	}
	for _, r := range eff.Send {
		p.air = append(p.air, r)
		p.say("ask the %s coordinator: %s", r.Coordinator.Kind, describe(r))
	}
	for _, c := range eff.Find {
		p.step(machine.CoordinatorFound{Coordinator: c, Broker: 1})
	}
}

func describe(r *machine.Request) string {
	switch req := r.Body.(type) {
	case *message.InitProducerIdRequest:
		return fmt.Sprintf("InitProducerId(id %d epoch %d)", req.ProducerId, req.ProducerEpoch)
	case *message.AddPartitionsToTxnRequest:
		return fmt.Sprintf("AddPartitionsToTxn(epoch %d, %d topics)", req.V3AndBelowProducerEpoch, len(req.V3AndBelowTopics))
	case *message.AddOffsetsToTxnRequest:
		return fmt.Sprintf("AddOffsetsToTxn(epoch %d, group %s)", req.ProducerEpoch, req.GroupId)
	case *message.TxnOffsetCommitRequest:
		return fmt.Sprintf("TxnOffsetCommit(epoch %d, generation %d)", req.ProducerEpoch, req.GenerationIdOrMemberEpoch)
	case *message.EndTxnRequest:
		return fmt.Sprintf("EndTxn(epoch %d, commit %v)", req.ProducerEpoch, req.Committed)
	}
	return r.Body.Key().String()
}

func (p *player) say(format string, a ...any) {
	fmt.Fprintf(&p.out, "  %5dms  %s\n", p.now.Sub(p.start).Milliseconds(), fmt.Sprintf(format, a...))
}

func (p *player) code(name string) errcode.Code {
	for c := errcode.Code(-1); c < 200; c++ {
		if c.Known() && c.Name() == name {
			return c
		}
	}
	p.t.Fatalf("no error code %s", name)
	return 0
}
