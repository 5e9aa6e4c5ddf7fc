package txn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
	"github.com/ottla-kafka/ottla/txn/machine"
)

// Session is a transactional producer: the only one of its id at any time. It has at most one open transaction. All
// methods may be called from any goroutine.
type Session struct {
	cl     *client.Client
	ownsCl bool
	cfg    Config
	p      *producer.Transactional

	life  context.Context // ends with the session
	end   context.CancelFunc
	finds sync.WaitGroup

	mu      sync.Mutex
	m       *machine.Machine
	todo    []machine.Effects // of the steps that whoever holds the lock has made
	tx      *Tx               // the newest
	changed chan struct{}     // closed at the next change
	timer   *time.Timer       // of machine.Woke

	fences  atomic.Bool // a group's coordinator is known to check generations: age.go
	intakes intakes     // consumers whose offsets are committed: pipe_consume.go

	closeOnce sync.Once
	closeErr  error
}

// State is where a session is; see package machine for the transitions.
type State = machine.State

// The states.
const (
	Initializing  = machine.Initializing  // asks the coordinator for the producer id or another epoch of it
	Ready         = machine.Ready         // no transaction is open
	InTransaction = machine.InTransaction // one is
	Committing    = machine.Committing
	Aborting      = machine.Aborting
	Doomed        = machine.Doomed // it can only be aborted
	Over          = machine.Over   // fenced, or at its end for another reason
	Closed        = machine.Closed
)

// New makes a session on a client, which stays the caller's to close, after the session. It asks the coordinator for
// the id's producer id, which fences older sessions of the id and ends the transaction they may have left open, and
// waits for that, as long as ctx and max.block.ms (60 s) allow; while nobody answers a warning in the client's log says
// why, after 3 s and then ever more rarely. The error lists everything that is wrong with the configuration, or says why
// the coordinator refuses or who did not answer.
func New(ctx context.Context, cl *client.Client, id string, opts ...Option) (*Session, error) {
	cfg := DefaultConfig()
	base := cl.Config()
	cfg.Producer.RequestTimeout = base.RequestTimeout
	cfg.Producer.RetryBackoff, cfg.Producer.RetryBackoffMax = base.RetryBackoff, base.RetryBackoffMax
	cfg.ID = id
	for _, o := range opts {
		o(&cfg)
	}
	return NewFromConfig(ctx, cl, cfg)
}

// NewFromConfig is New with a whole configuration, from FromProperties for example.
func NewFromConfig(ctx context.Context, cl *client.Client, cfg Config) (*Session, error) {
	if ctx.Err() != nil {
		return nil, &Error{Class: Abortable, Op: "New", ID: cfg.ID, Err: context.Cause(ctx)}
	}
	if len(cfg.client) > 0 {
		cfg.problems = append(cfg.problems, errors.New("txn.Client is for Dial; New is given a client, which has its options"))
	}
	if err := cfg.Validate(); err != nil {
		return nil, &Error{Class: Fenced, Op: "New", ID: cfg.ID, Err: err}
	}
	return start(ctx, cl, cfg, "New")
}

// Dial makes a session with a client of its own, which Close closes. Options for the client go in with Client.
func Dial(ctx context.Context, seeds []string, id string, opts ...Option) (*Session, error) {
	if ctx.Err() != nil {
		return nil, &Error{Class: Abortable, Op: "Dial", ID: id, Err: context.Cause(ctx)}
	}
	cfg := DefaultConfig()
	cfg.ID = id
	for _, o := range opts {
		o(&cfg)
	}
	copts := append([]client.Option{client.Seeds(seeds...), client.RequestTimeout(cfg.Producer.RequestTimeout),
		client.RetryBackoff(cfg.Producer.RetryBackoff, cfg.Producer.RetryBackoffMax)}, cfg.client...)
	cfg.client = nil
	err := cfg.Validate()
	cl, clErr := client.New(copts...)
	if err = errors.Join(clErr, err); err != nil {
		if cl != nil {
			_ = cl.Close(context.WithoutCancel(ctx))
		}
		return nil, &Error{Class: Fenced, Op: "Dial", ID: id, Err: err}
	}
	s, err := start(ctx, cl, cfg, "Dial")
	if err != nil {
		return nil, errors.Join(err, cl.Close(ctx))
	}
	s.ownsCl = true
	return s, nil
}

func start(ctx context.Context, cl *client.Client, cfg Config, op string) (*Session, error) {
	for _, w := range cfg.Lint() {
		cl.Logger().Warn("kafka transactions: "+w, "transactional.id", cfg.ID)
	}
	base := cl.Config()
	seed := base.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	s := &Session{cl: cl, cfg: cfg, changed: make(chan struct{})}
	s.m = machine.New(machine.Config{ID: cfg.ID, Timeout: cfg.Timeout, RetryBackoff: base.RetryBackoff, RetryBackoffMax: base.RetryBackoffMax, Seed: seed})
	s.life, s.end = context.WithCancel(context.Background())
	s.timer = time.AfterFunc(time.Hour, func() { s.step(machine.Woke{}) }) // until Close
	s.timer.Stop()
	var err error
	if s.p, err = producer.NewTransactional(cl, cfg.Producer, cfg.ID, s.hooks()); err != nil {
		s.timer.Stop()
		s.end()
		return nil, &Error{Class: Fenced, Op: op, ID: cfg.ID, Err: err}
	}
	if err = s.register(ctx); err != nil {
		err = s.failed(op, Abortable, fmt.Errorf("the coordinator has not given out the producer id: %w", err))
	} else if over := s.overErr(op); over != nil {
		err = over
	}
	if err != nil {
		_ = s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// register asks for the producer id and waits for it.
func (s *Session) register(ctx context.Context) error {
	limit := s.cfg.Producer.MaxBlock
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w within max.block.ms (%s)", client.ErrTimeout, limit))
	defer cancel()
	defer s.complain()()
	s.step(machine.Started{})
	return s.await(ctx, func() bool { return s.m.State() != machine.Initializing })
}

// The first complaint about a coordinator that does not answer, and the longest time between two.
const (
	firstComplaint = 3 * time.Second
	rareComplaint  = time.Minute
)

// complain logs what stands in the way, until stop is called.
func (s *Session) complain() (stop func()) {
	began, next := time.Now(), firstComplaint
	var mu sync.Mutex // guards timer, which its function sets again
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(next, func() {
		s.cl.Logger().Warn("kafka transactions: no producer id yet", "transactional.id", s.cfg.ID, "bootstrap.servers", s.cl.Config().Seeds,
			"after", time.Since(began).Round(time.Second), "error", s.obstacle())
		mu.Lock()
		defer mu.Unlock()
		if next = min(2*next, rareComplaint); timer != nil {
			timer.Reset(next)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		timer = nil
	}
}

// implicitLevel is the transaction.version from which leaders add their partitions to transactions themselves (KIP-890).
const implicitLevel = 2

// await waits until ready, which is asked under the lock, or the end of ctx, whose cause it returns.
func (s *Session) await(ctx context.Context, ready func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := ready(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s.interrupted(ctx)
		}
	}
}

// interrupted is ctx's cause, with what stood in the way.
func (s *Session) interrupted(ctx context.Context) error {
	if trouble := s.obstacle(); trouble != nil {
		return fmt.Errorf("%w; the last attempt said: %w", context.Cause(ctx), trouble)
	}
	return context.Cause(ctx)
}

// obstacle is why a coordinator has not answered what it is being asked, nil when nothing has gone wrong.
func (s *Session) obstacle() error {
	s.mu.Lock()
	trouble := s.m.Trouble()
	s.mu.Unlock()
	if trouble != nil {
		return trouble
	}
	gone, cancel := context.WithCancel(s.life)
	cancel() // nobody shall be asked: what the client knows will do
	if last := s.cl.Health(gone).LastError; last != "" {
		return errors.New(last)
	}
	return nil
}

// Begin starts a transaction. It waits for the end of the one before, where that is still going on or in doubt: a
// commit without an answer is asked about again, and Last says what came out. It does no I/O otherwise.
func (s *Session) Begin(ctx context.Context) (*Tx, error) {
	if ctx.Err() != nil {
		if st := s.State(); st != InTransaction && st != Doomed { // what is open is not touched
			s.intakes.void(context.Cause(ctx))
		}
		return nil, s.fail("Begin", Abortable, context.Cause(ctx))
	}
	for {
		err := s.await(ctx, func() bool {
			switch s.m.State() {
			case Ready, InTransaction, Doomed, Over, Closed:
				return true
			}
			return false
		})
		if err != nil {
			s.intakes.void(err)
			return nil, s.failed("Begin", Abortable, fmt.Errorf("waiting for the end of the transaction before: %w", err))
		}
		if err := s.overErr("Begin"); err != nil {
			return nil, err
		}
		if err := s.intakes.ready(ctx, s.settle); err != nil {
			s.intakes.void(err)
			return nil, s.failed("Begin", Abortable, err)
		}
		level, _, _ := s.cl.Feature("transaction.version")
		s.mu.Lock()
		if st := s.m.State(); st == InTransaction || st == Doomed {
			s.unlock()
			return nil, s.failed("Begin", Abortable, fmt.Errorf("%w; Commit or Abort it", ErrOpen))
		}
		s.stepLocked(machine.Checked{Implicit: level >= implicitLevel})
		if s.m.State() != Ready { // it needs another epoch first
			s.unlock()
			continue
		}
		tx := newTx(s, s.m.Serial()+1)
		s.tx = tx
		s.stepLocked(machine.Begun{})
		s.unlock()
		return tx, nil
	}
}

// Last is what became of the newest transaction, and why, where it is not committed.
func (s *Session) Last() (Outcome, error) {
	s.mu.Lock()
	tx := s.tx
	s.mu.Unlock()
	if tx == nil {
		return Open, nil
	}
	out, err := tx.result()
	return out, err
}

// settle tells the consumers what became of the newest transaction, once.
func (s *Session) settle(ctx context.Context) error {
	s.mu.Lock()
	tx := s.tx
	s.mu.Unlock()
	if tx == nil {
		return nil
	}
	return tx.settle(ctx)
}

// unsettled tells that the consumers do not know yet what became of the newest transaction.
func (s *Session) unsettled() bool {
	s.mu.Lock()
	tx := s.tx
	s.mu.Unlock()
	if tx == nil {
		return false
	}
	_, settled, _ := tx.ending()
	return !settled
}

// Close ends the session: an open transaction is aborted, a commit without an answer is waited for. It returns by ctx's
// end, and after transaction.timeout.ms in any case: what it could not do by then, the coordinator has done. Further calls
// wait for the first.
func (s *Session) Close(ctx context.Context) error {
	s.closeOnce.Do(func() {
		s.closeErr = s.shutDown(ctx)
	})
	return s.closeErr
}

func (s *Session) shutDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, fmt.Errorf("transaction.timeout.ms (%s) has passed", s.cfg.Timeout))
	defer cancel()
	s.step(machine.AbortAsked{Cause: s.fail("Close", Fenced, ErrClosed)})
	err := s.await(ctx, func() bool {
		st := s.m.State()
		return st != Committing && st != Aborting
	})
	if err != nil {
		class := Abortable
		s.mu.Lock()
		if s.m.InDoubt() {
			class = OutcomeUnknown
		}
		s.mu.Unlock()
		err = s.failed("Close", class, fmt.Errorf("the transaction has not ended yet: %w", err))
	}
	s.step(machine.Ended{})
	if lost := s.leave(ctx); lost != nil {
		err = errors.Join(err, lost)
	}
	s.end()
	s.timer.Stop()
	var lost *producer.LostError
	if perr := s.p.Close(ctx); perr != nil && !errors.As(perr, &lost) { // what was lost was in an aborted transaction
		err = errors.Join(err, perr)
	}
	s.finds.Wait() // at once: their ctx has ended
	if s.ownsCl {
		err = errors.Join(err, s.cl.Close(ctx))
	}
	return err
}

// leave tells the consumers what has become of the last transaction, as far as that is known or can be found out, and lets
// go of those that are parked.
func (s *Session) leave(ctx context.Context) (err error) {
	s.mu.Lock()
	tx := s.tx
	s.mu.Unlock()
	if tx != nil {
		switch out, settled, over := tx.ending(); {
		case settled:
		case over:
			err = tx.lookUp(ctx)
		case out == Committed:
			err = tx.settle(ctx)
		}
	}
	s.intakes.release(func(f *feed) bool { return f.parked })
	return err
}

// ID is the transactional id.
func (s *Session) ID() string { return s.cfg.ID }

// Client is the client the session works on.
func (s *Session) Client() *client.Client { return s.cl }

// Config is a copy of the configuration in use.
func (s *Session) Config() Config { return s.cfg }

// State is where the session is.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.State()
}

// Producer is the session's producer id and epoch, as they show in the broker's logs and to administrators.
func (s *Session) Producer() (id int64, epoch int16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Producer()
}

// Warm fetches the metadata of topics before the first record needs it.
func (s *Session) Warm(ctx context.Context, topics ...string) error {
	if ctx.Err() != nil {
		return s.fail("Warm", Abortable, context.Cause(ctx))
	}
	if err := s.p.Warm(ctx, topics...); err != nil {
		return s.failed("Warm", Abortable, err)
	}
	return nil
}

// Partitions is the number of partitions of a topic; it may wait for metadata.
func (s *Session) Partitions(ctx context.Context, topic string) (int32, error) {
	if ctx.Err() != nil {
		return 0, s.fail("Partitions", Abortable, context.Cause(ctx))
	}
	n, err := s.p.Partitions(ctx, topic)
	if err != nil {
		return 0, s.failed("Partitions", Abortable, err)
	}
	return n, nil
}
