package coordinator

import (
	"time"

	"github.com/ottla-kafka/ottla/wire/errcode"
	"github.com/ottla-kafka/ottla/wire/logrecord"
)

// A Record is one record of a coordinator's log.
type Record struct {
	Key     logrecord.Record
	Value   logrecord.Record // nil writes a tombstone
	Version int16            // of Value
}

// A Ticket names a request that has not been answered yet. Machines keep tickets of requests that wait for others; they
// mean nothing after a restart.
type Ticket uint64

// NoTicket belongs to no request.
const NoTicket Ticket = 0

// A Request is what a shard is asked.
type Request struct {
	Ticket Ticket
	// Body is a message of the protocol or a type of the machine's own.
	Body any
	// Version is the version of the protocol message; the newest for what comes from inside.
	Version int16
	// ClientID and ClientHost say who asks, as records and descriptions name it ("/127.0.0.1").
	ClientID, ClientHost string
}

// A Reply answers one ticket: with a response, or with an error code from which the asker makes one.
type Reply struct {
	Ticket   Ticket
	Response any
	Code     errcode.Code
}

// A Result is what came of a request or a tick. The runtime appends Records as one batch, replays them, calls Written,
// and lets Replies go when everything they rest on is committed.
//
// If the append is refused nothing is replayed. Failed is called instead of Written; without Failed the tickets in
// Replies get the code.
type Result struct {
	Records []Record
	Replies []Reply
	Written []func(now time.Time, out *Result)
	Failed  []func(now time.Time, code errcode.Code, out *Result)
	// Divisible lets many records go in several batches: each of them makes sense alone. Replies and Written follow the
	// last one.
	Divisible bool
}

// Record adds a record with a value.
func (r *Result) Record(key, value logrecord.Record, version int16) {
	r.Records = append(r.Records, Record{Key: key, Value: value, Version: version})
}

// Tombstone adds a record that ends a key.
func (r *Result) Tombstone(key logrecord.Record) { r.Records = append(r.Records, Record{Key: key}) }

// Reply answers a ticket; NoTicket is nobody's.
func (r *Result) Reply(t Ticket, response any) {
	if t != NoTicket {
		r.Replies = append(r.Replies, Reply{Ticket: t, Response: response})
	}
}

// Refuse answers a ticket with a code.
func (r *Result) Refuse(t Ticket, code errcode.Code) {
	if t != NoTicket {
		r.Replies = append(r.Replies, Reply{Ticket: t, Code: code})
	}
}

// A Shard is the coordinator of one partition. All methods are called by one goroutine at a time; none may block.
type Shard interface {
	// Handle proposes what a request asks for. It may change what is not durable (who waits, timers) and nothing else.
	Handle(now time.Time, r Request, out *Result)
	// Replay takes one record into the state; a nil value is a tombstone. An error stops loading: the log makes no sense.
	Replay(offset int64, key, value logrecord.Record) error
	// Loaded is called once, after the replay of the log: timers start from now.
	Loaded(now time.Time, out *Result)
	// Deadline is when Tick has something to do; zero for never.
	Deadline() time.Time
	// Tick does one thing that is due at now.
	Tick(now time.Time, out *Result)
}
