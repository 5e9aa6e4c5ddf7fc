package groupmember

import (
	"context"
	"iter"

	"github.com/ottla-kafka/ottla/client"
)

// Member is a member of a group. All methods may be called from any goroutine.
type Member struct {
	cfg Config
	cl  *client.Client
}

// Join makes a member and waits until the coordinator has given it its first assignment, which may be empty. The
// error is about the configuration, about a group that refuses it, or the end of ctx; then nothing is left behind.
func Join(ctx context.Context, cl *client.Client, opts ...Option) (*Member, error) { return nil, nil }

// Start is Join without waiting: it does no I/O itself, and the error is only ever about the configuration.
// Use it where a Listener needs the Member.
func Start(cl *client.Client, opts ...Option) (*Member, error) { return nil, nil }

// StartFromConfig is Start with a finished Config; begin with DefaultConfig, since zero means zero.
func StartFromConfig(cl *client.Client, cfg Config) (*Member, error) { return nil, nil }

// Await waits until the member is Stable for the first time, or has ended.
func (m *Member) Await(ctx context.Context) error { return nil }

// State is where the member is.
func (m *Member) State() State { return Unknown }

// Generation identifies the present membership; its ID is -1 while there is none.
func (m *Member) Generation() Generation { return Generation{} }

// Assignment is what is held at present, sorted. Partitions that are being revoked belong to it until confirmed.
func (m *Member) Assignment() []TopicPartition { return nil }

// Context ends when the member has ended, with ErrClosed or the final error as its cause.
func (m *Member) Context() context.Context { return context.Background() }

// Claim is the lifetime of a held partition: its context ends when the partition is being revoked (ErrRevoked), is
// lost (ErrLost, ErrFenced) or the member closes (ErrClosed). For a partition that is not held it has ended already, with
// ErrNotOwned.
func (m *Member) Claim(tp TopicPartition) context.Context { return context.Background() }

// Subscribe changes the subscription to topics by name; a rebalance follows.
func (m *Member) Subscribe(topics ...string) error { return nil }

// SubscribePattern changes the subscription to an RE2 expression; a rebalance follows.
func (m *Member) SubscribePattern(re2 string) error { return nil }

// Rejoin starts a rebalance (classic) or sends a heartbeat at once (KIP-848).
func (m *Member) Rejoin(reason string) {}

// Stall tells that the owner does not process any more (max.poll.interval.ms): the member leaves the group, loses its
// partitions with ErrStalled, and stays out until Resume.
func (m *Member) Stall() {}

// Resume undoes Stall.
func (m *Member) Resume() {}

// Commit stores offsets of held partitions with this member's generation, retrying what passes, until ctx ends or
// default.api.timeout.ms has passed. The commits of one member are carried out in the order of the calls. A commit that a
// rebalance overtakes is repeated under the new generation for what is still held; the rest fails with ErrNotOwned.
func (m *Member) Commit(ctx context.Context, offsets map[TopicPartition]Offset) error { return nil }

// CommitAsync is Commit without waiting; done, which may be nil, gets the outcome from the member's goroutine and must
// not block. Commits that wait behind each other are merged.
func (m *Member) CommitAsync(offsets map[TopicPartition]Offset, done func(error)) {}

// Committed asks for committed offsets of any partitions; those without one are not in the answer. It waits for open
// transactions to end (KIP-447).
func (m *Member) Committed(ctx context.Context, parts ...TopicPartition) (map[TopicPartition]Offset, error) {
	return nil, nil
}

// Leave gives up all partitions in good order (Revoked, confirmation), leaves the group, a static member too, and
// ends the member. It returns when that is done or ctx ends; then the coordinator will notice by SessionTimeout.
func (m *Member) Leave(ctx context.Context) error { return nil }

// Close is Leave, except that a static member stays in the group, so that its partitions wait for it to come back
// within SessionTimeout.
func (m *Member) Close(ctx context.Context) error { return nil }

// Generations yields a Lifetime for each assignment, until ctx or the member ends; the last error says why.
func (m *Member) Generations(ctx context.Context) iter.Seq2[*Lifetime, error] { return nil }

// Lifetime is one assignment, as Generations yields it.
type Lifetime struct {
	Assignment
}

// Go runs f for each partition that this assignment added, each in a goroutine of its own, with a context that ends with
// the claim (Cause: ErrRevoked, ErrLost, ErrFenced, ErrClosed). A revocation is confirmed when the partition's f has
// returned.
func (l *Lifetime) Go(f func(ctx context.Context, tp TopicPartition)) {}

// Hold is Go's part for one partition of Added: a context that ends with the claim, and release, which must be called when
// the work has stopped.
func (l *Lifetime) Hold(tp TopicPartition) (ctx context.Context, release func()) { return nil, nil }
