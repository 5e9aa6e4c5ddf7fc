package harness

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/consumer"
)

// TB is the part of testing.TB that CheckExactlyOnce needs.
type TB interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// CheckExactlyOnce fails the test unless every record of topic in has had its effect in topic out exactly once. It reads
// both topics as read_committed from their beginnings to their ends and checks that
//
//   - what is to come of each input record is in out, once, and nothing else is (by value, unless the options say otherwise);
//   - results of input records with the same key lie in out in the order of the records, partition by partition;
//   - no transaction is open in out: its last stable offsets are its high watermarks;
//   - the group, if one is named, has committed all of in.
//
// Call it when the pipeline is expected to be done: it waits for open transactions and for the group as long as Within
// says, and for nothing that is still to be written. A topic that does not exist is a failure, and so is a cluster that
// gives out nothing for a minute. The failure names the first records that differ, with where they are.
// The embedded cluster is such a source; Seeds makes one of a running cluster.
func CheckExactlyOnce(tb TB, k client.ClusterSource, in, out string, opts ...Option) {
	tb.Helper()
	o := options(opts)
	cl, err := client.New(append([]client.Option{client.Cluster(k)}, o.client...)...)
	if err != nil {
		tb.Fatalf("CheckExactlyOnce: %v", err)
	}
	ctx := context.WithoutCancel(tb.Context()) // it may be called from a cleanup
	defer func() { _ = cl.Close(ctx) }()
	r, err := exactlyOnce(ctx, cl, in, out, o)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		tb.Fatalf("CheckExactlyOnce: %v", err)
	}
	tb.Logf("CheckExactlyOnce: %s → %s: %s", in, out, r)
}

// ExactlyOnce is CheckExactlyOnce for programs: the error is about reading the topics, or the cause of ctx; what was found
// is in the Result.
func ExactlyOnce(ctx context.Context, cl *client.Client, in, out string, opts ...Option) (*Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return exactlyOnce(ctx, cl, in, out, options(opts))
}

// An Option says what the pipeline makes of its records, and how it is looked at.
type Option func(*settings)

type settings struct {
	inID    func(consumer.Record) string
	outID   func(consumer.Record) string
	expand  func(consumer.Record) []string
	group   string
	within  time.Duration
	ordered bool
	client  []client.Option
}

func options(opts []Option) *settings {
	value := func(r consumer.Record) string { return string(r.Value) }
	s := &settings{inID: value, outID: value, within: 30 * time.Second, ordered: true}
	for _, o := range opts {
		o(s)
	}
	return s
}

// ByKey identifies records by their keys instead of their values.
func ByKey() Option { return Identity(func(r consumer.Record) string { return string(r.Key) }) }

// ByHeader identifies records by the last header of a name; those without it are all the same.
func ByHeader(name string) Option {
	return Identity(func(r consumer.Record) string {
		v, _ := r.Headers.Last(name)
		return string(v)
	})
}

// Identity identifies records of both topics by what f says: two that are the same thing have the same text.
func Identity(f func(consumer.Record) string) Option {
	return func(s *settings) { s.inID, s.outID = f, f }
}

// OutIdentity identifies the records of out by what f says: the identity of the input record that each comes from.
func OutIdentity(f func(consumer.Record) string) Option {
	return func(s *settings) { s.outID = f }
}

// Expect says which identities in out an input record leads to: none for one that is filtered out, several for one that is
// split. An identity that several input records lead to is expected as often.
func Expect(f func(in consumer.Record) []string) Option {
	return func(s *settings) { s.expand = f }
}

// Group has a group's committed offsets checked too: no record of in may be left to read.
func Group(id string) Option { return func(s *settings) { s.group = id } }

// Within sets how long to wait for open transactions to end, and for the group to be done; the default is 30 s.
func Within(d time.Duration) Option { return func(s *settings) { s.within = d } }

// AnyOrder leaves the order of the output unchecked.
func AnyOrder() Option { return func(s *settings) { s.ordered = false } }

// Client gives options to the client that CheckExactlyOnce makes: TLS, SASL.
func Client(opts ...client.Option) Option {
	return func(s *settings) { s.client = append(s.client, opts...) }
}

// Seeds is a running cluster at the given addresses, host:port.
func Seeds(addrs ...string) client.ClusterSource { return seeds(addrs) }

type seeds []string

// Addrs implements client.ClusterSource.
func (s seeds) Addrs() []string { return s }

// DialContext implements client.ClusterSource.
func (s seeds) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// A Result is what ExactlyOnce found.
type Result struct {
	In, Out    int   // records that read_committed readers see
	Lost       int   // results that are missing
	Duplicates int   // results that are there more often than they should be
	Unexpected int   // records in out that come from no record in in
	Reordered  int   // results that lie before those of an earlier record with the same key
	Open       int   // partitions of out with an open transaction
	Left       int64 // records of in that the group has not committed; 0 without a group

	findings []string
}

// maxFindings is how many findings of one kind are described.
const maxFindings = 5

// Err is nil when everything is as it should be; otherwise it says what is not.
func (r *Result) Err() error {
	if r.Lost+r.Duplicates+r.Unexpected+r.Reordered+r.Open == 0 && r.Left == 0 {
		return nil
	}
	return fmt.Errorf("not exactly once: %s\n  %s", r, strings.Join(r.findings, "\n  "))
}

// String is the result in one line.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "in %d · out %d · duplicates %d · lost %d", r.In, r.Out, r.Duplicates, r.Lost)
	for _, more := range []struct {
		n    int64
		what string
	}{{int64(r.Unexpected), "unexpected"}, {int64(r.Reordered), "reordered"}, {int64(r.Open), "partitions with an open transaction"}, {r.Left, "not committed by the group"}} {
		if more.n > 0 {
			fmt.Fprintf(&b, " · %s %d", more.what, more.n)
		}
	}
	return b.String()
}

// finding counts one of its kind and describes the first ones.
func (r *Result) finding(count *int, format string, args ...any) {
	if *count++; *count <= maxFindings {
		r.findings = append(r.findings, fmt.Sprintf(format, args...))
	}
}
