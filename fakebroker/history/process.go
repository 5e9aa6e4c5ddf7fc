package history

// A Level is the isolation level of a consumer (isolation.level).
type Level uint8

// The isolation levels.
const (
	ReadCommitted Level = iota
	ReadUncommitted
)

// String is Kafka's name of the level.
func (l Level) String() string {
	if l == ReadUncommitted {
		return "read_uncommitted"
	}
	return "read_committed"
}

// A Process takes down what one process does; see Log.Process. The zero value is of no use.
type Process struct {
	log  *Log
	name string
}

// Name is the name of the process.
func (p *Process) Name() string { return p.name }

// Send says that a record is being handed to a producer, outside of transactions. Call it before the producer has it. The
// value identifies the record: what is to be in the topic once has one value, however often it is tried.
func (p *Process) Send(topic, value string) *SendCall { return p.send(0, topic, value) }

func (p *Process) send(txn int, topic, value string) *SendCall {
	i := p.log.add(Op{Process: p.name, Kind: Send, Txn: txn, Topic: topic, Partition: Unknown, Offset: Unknown, Value: shorten(value)})
	return &SendCall{Call{p.log, i}}
}

// Poll says what records a consumer has handed out, in their order. A process with several consumers that read the same
// partitions takes a name for each.
func (p *Process) Poll(level Level, reads ...Read) {
	if len(reads) == 0 {
		return
	}
	kept := make([]Read, len(reads))
	for i, r := range reads {
		r.Value = shorten(r.Value)
		kept[i] = r
	}
	p.log.add(Op{Process: p.name, Kind: Poll, Outcome: OK, Level: level, Reads: kept})
}

// Processed says that a record has been worked on for a group, outside of transactions. A log with any Processed of a group
// holds that group's commits against them; without, what the group's members polled counts as processed.
func (p *Process) Processed(group string, tp TopicPartition, offset int64) {
	p.processed(0, group, tp, offset)
}

func (p *Process) processed(txn int, group string, tp TopicPartition, offset int64) {
	p.log.add(Op{Process: p.name, Kind: Processed, Outcome: OK, Txn: txn, Group: group, Topic: tp.Topic, Partition: tp.Partition, Offset: offset})
}

// CommitOffsets says that offsets of a group are being committed, outside of transactions. As in Kafka an offset is that of
// the next record to read.
func (p *Process) CommitOffsets(group string, offsets ...Offset) *Call {
	return p.begin(Op{Kind: CommitOffsets, Group: group, Offsets: offsets})
}

// FetchedOffsets says what committed offsets of a group a process was told: Unknown for none. Call Asking first where the
// request can be seen: what is committed between question and answer may or may not be in the answer.
func (p *Process) FetchedOffsets(group string, offsets ...Offset) { p.Asking(group).OK(offsets...) }

// Asking says that a group's committed offsets are being asked for.
func (p *Process) Asking(group string) *FetchCall {
	return &FetchCall{*p.begin(Op{Kind: FetchOffsets, Group: group})}
}

// A FetchCall is the Call of a FetchOffsets.
type FetchCall struct{ Call }

// OK says what the answer was.
func (c *FetchCall) OK(offsets ...Offset) {
	c.end(OK, nil, func(o *Op) { o.Offsets = append([]Offset(nil), offsets...) })
}

// ResetOffsets says that somebody is putting a group's committed offsets elsewhere on purpose: a tool, an operator. From
// there on they may go back, and records may be processed again.
func (p *Process) ResetOffsets(group string, offsets ...Offset) *Call {
	return p.begin(Op{Kind: ResetOffsets, Group: group, Offsets: offsets})
}

// Assigned says that a process has been told that partitions are its own, with the offsets at which it begins: the
// committed ones, where there are any, or where its reset policy starts; Unknown where that is not known.
func (p *Process) Assigned(group string, parts ...Offset) { p.instant(Assigned, group, parts) }

// Revoked says that a process gives partitions up in good order: it has done with them, and the group may give them to
// another once it is told. Call it before that.
func (p *Process) Revoked(group string, parts ...TopicPartition) {
	p.instant(Revoked, group, nowhere(parts))
}

// Lost says that a process has heard that partitions are another's by now.
func (p *Process) Lost(group string, parts ...TopicPartition) { p.instant(Lost, group, nowhere(parts)) }

// Moved says that a process puts its own position elsewhere, by a seek or back to the committed offsets after an abort.
func (p *Process) Moved(parts ...Offset) { p.instant(Moved, "", parts) }

// Crashed says that the process ends here without having said anything to anybody.
func (p *Process) Crashed() { p.instant(Crashed, "", nil) }

// Begin says that a transaction begins.
func (p *Process) Begin() *Txn {
	p.log.mu.Lock()
	p.log.txns++
	n := p.log.txns
	p.log.mu.Unlock()
	p.log.add(Op{Process: p.name, Kind: Begin, Outcome: OK, Txn: n})
	return &Txn{p, n}
}

func (p *Process) begin(o Op) *Call {
	o.Process, o.Offsets = p.name, append([]Offset(nil), o.Offsets...)
	return &Call{p.log, p.log.add(o)}
}

func (p *Process) instant(k Kind, group string, parts []Offset) {
	p.log.add(Op{Process: p.name, Kind: k, Outcome: OK, Group: group, Offsets: append([]Offset(nil), parts...)})
}

func nowhere(parts []TopicPartition) []Offset {
	var list []Offset
	for _, tp := range parts {
		list = append(list, Offset{tp, Unknown})
	}
	return list
}

// A Txn takes down one transaction. It is committed when a Commit ended OK, aborted when an Abort ended OK, a Commit ended
// Fail, or nobody ever called Commit, as when its process died before; otherwise its outcome is open, and what readers saw
// of it decides.
type Txn struct {
	p *Process
	n int
}

// Number is what the log calls the transaction.
func (t *Txn) Number() int { return t.n }

// Send is Process.Send in the transaction.
func (t *Txn) Send(topic, value string) *SendCall { return t.p.send(t.n, topic, value) }

// Processed says that a record has been worked on for a group in the transaction: it counts if the transaction does.
func (t *Txn) Processed(group string, tp TopicPartition, offset int64) {
	t.p.processed(t.n, group, tp, offset)
}

// CommitOffsets is Process.CommitOffsets in the transaction (sendOffsetsToTransaction).
func (t *Txn) CommitOffsets(group string, offsets ...Offset) *Call {
	return t.p.begin(Op{Kind: CommitOffsets, Txn: t.n, Group: group, Offsets: offsets})
}

// Commit says that the transaction is being committed. An error after which it may have been committed all the same, or be
// later, is an Info.
func (t *Txn) Commit() *Call { return t.p.begin(Op{Kind: Commit, Txn: t.n}) }

// Abort says that the transaction is being aborted.
func (t *Txn) Abort() *Call { return t.p.begin(Op{Kind: Abort, Txn: t.n}) }
