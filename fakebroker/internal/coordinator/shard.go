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
	// Txn makes the batch one of a producer's transaction, which the machine must be a TxnShard for: what was written
	// counts when the marker has come. Nil for what counts at once.
	Txn *TxnBatch
	// Committed are effects that run, in order and after Replies, once everything the shard has written up to here is below
	// the high watermark: what leaves it can no longer be lost. They run on the runtime's goroutine and must not block. They
	// are dropped with the shard, and when the append is refused.
	Committed []func()
}

// A TxnBatch says whose transaction a batch belongs to.
type TxnBatch struct {
	ProducerID    int64
	ProducerEpoch int16
	// Guard is what the log gave out for the verification of the transaction (storage.Log.StartVerification); 0 for none.
	Guard uint64
}

// A Marker ends a producer's transaction in a log.
type Marker struct {
	ProducerID       int64
	ProducerEpoch    int16
	CoordinatorEpoch int32 // of the transaction coordinator
	Commit           bool
	// TransactionVersion is that of the transaction: from 2 on the epoch must be higher than that of what it ends (KIP-890).
	TransactionVersion int8
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

// A TxnShard is a Shard whose log may hold transactions. The records of several producers come interleaved, on loading as
// when they are written; what has no end when the log is loaded is still open.
type TxnShard interface {
	Shard
	// ReplayTxn is Replay for a record that counts when the producer's transaction is committed.
	ReplayTxn(offset int64, producerID int64, key, value logrecord.Record) error
	// EndTxn takes the marker at offset; the producer may have nothing open.
	EndTxn(offset, producerID int64, commit bool) error
}
