package fetch

import (
	"sync/atomic"

	"github.com/ottla-kafka/ottla/client"
)

// charge is what one answer holds of the client's memory budget. Its chunks share it; the last one that is left
// behind gives it back. What the application keeps of the records afterwards is its own affair.
type charge struct {
	budget *client.Budget
	bytes  int64
	users  atomic.Int32

	pool  *pool       // takes block when nobody uses it any more; nil: the garbage collector does
	block []byte      // the memory of the answer
	kept  atomic.Bool // the application may look at block for ever
}

// settle turns what was reserved for an answer into what it took. Nothing can make an answer wait that is here
// already, so what goes beyond the reservation overdraws the budget. That is at most the rest of one batch, which
// brokers send whole.
func settle(b *client.Budget, reserved, size int64) *charge {
	switch {
	case size < reserved:
		b.Release(reserved - size)
	case size > reserved:
		b.Charge(size - reserved)
	}
	c := &charge{budget: b, bytes: size}
	c.users.Store(1)
	return c
}

func (c *charge) use() { c.users.Add(1) }

// leave gives up one use.
func (c *charge) leave() {
	if c.users.Add(-1) == 0 {
		c.budget.Release(c.bytes)
		if c.pool != nil && !c.kept.Load() {
			c.pool.put(c.block)
		}
	}
}
