package txn

import (
	"context"
	"errors"

	"github.com/ottla-kafka/ottla/client"
)

// Session is a transactional producer: the only one of its id at any time. It has at most one open transaction. All
// methods may be called from any goroutine.
type Session struct {
	cl  *client.Client
	cfg Config

	intakes intakes // consumers whose offsets are committed: pipe_consume.go
}

var errNotBuilt = errors.New("transactions are not built yet")

// New makes a session on a client, which stays the caller's to close, after the session. It asks the coordinator for
// the id's producer id, which fences older sessions of the id and ends the transaction they may have left open, and
// waits for that. The error lists everything that is wrong with the configuration, or says why the coordinator refuses.
func New(ctx context.Context, cl *client.Client, id string, opts ...Option) (*Session, error) {
	cfg := DefaultConfig()
	cfg.ID = id
	for _, o := range opts {
		o(&cfg)
	}
	return NewFromConfig(ctx, cl, cfg)
}

// NewFromConfig is New with a whole configuration, from FromProperties for example.
func NewFromConfig(ctx context.Context, cl *client.Client, cfg Config) (*Session, error) {
	return nil, &Error{Class: Fenced, Op: "New", ID: cfg.ID, Err: errNotBuilt}
}

// Dial makes a session with a client of its own, which Close closes. Options for the client go in with Client.
func Dial(ctx context.Context, seeds []string, id string, opts ...Option) (*Session, error) {
	return nil, &Error{Class: Fenced, Op: "Dial", ID: id, Err: errNotBuilt}
}

// Begin starts a transaction. It waits for the end of the one before, where that is still going on or in doubt: a
// commit without an answer is asked about again, and Last says what came out. It does no I/O otherwise.
func (s *Session) Begin(ctx context.Context) (*Tx, error) {
	return nil, s.fail("Begin", Fenced, errNotBuilt)
}

// Do runs f in a transaction: nil commits, an error or a panic aborts, and a panic goes on afterwards. The error is
// f's, joined with what went wrong with the abort, or that of the commit; see Class. f's ctx ends when the transaction
// can only be aborted any more. Nothing is tried again: whether f may run again is f's business.
func (s *Session) Do(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	return s.fail("Do", Fenced, errNotBuilt)
}

// Close ends the session: an open transaction is aborted. It returns by ctx's end; what it could not do by then, the
// coordinator's timeout does. Further calls wait for the first.
func (s *Session) Close(ctx context.Context) error { return nil }

// ID is the transactional id.
func (s *Session) ID() string { return s.cfg.ID }

// Client is the client the session works on.
func (s *Session) Client() *client.Client { return s.cl }

// Config is a copy of the configuration in use.
func (s *Session) Config() Config { return s.cfg }

func (s *Session) fail(op string, class ErrorClass, err error) error {
	return &Error{Class: class, Op: op, ID: s.cfg.ID, Err: err}
}
