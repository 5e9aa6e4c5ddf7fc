package producer

import "context"

// Interceptor sees every record on its way out and every end. Several are called in the order in which they were
// added, and possibly from several goroutines at once. A nil error means the record was acknowledged.
type Interceptor interface {
	// OnSend is called by Submit, Send and TrySubmit, on the caller's goroutine, before the partition is chosen. It
	// may change the record (add a header, say). An error keeps the record from being sent and is returned to the
	// caller, wrapped; the interceptors behind it do not see the record then. A call whose ctx had ended before is not told
	// of.
	OnSend(ctx context.Context, r *Record) error
	// OnEnd is called before the record's own callback, in the same order, or by the call that could not submit the
	// record. For a record that was not acknowledged ack names topic and, when it had one, partition (-1 otherwise), with offset -1. It must not block.
	OnEnd(ack Ack, err error)
}
