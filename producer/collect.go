package producer

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ottla-kafka/ottla/wire/record"
)

// collector counts the verdicts of SendAll.
type collector struct {
	mu     sync.Mutex
	ok     int
	failed int
	errs   []error
}

const maxCollected = 10

func (c *collector) done(_ Ack, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.ok++
		return
	}
	c.failed++
	if len(c.errs) < maxCollected {
		c.errs = append(c.errs, err)
	}
}

// result sums up n submitted records; other is what went wrong beside them.
func (c *collector) result(n int, other error) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := []error{other}
	if c.failed > 0 {
		errs = append(errs, fmt.Errorf("%d of %d records failed: %w", c.failed, n, errors.Join(c.errs...)))
	}
	return c.ok, errors.Join(errs...)
}

// exactSize is what a record takes as the only one of its batch, header included, which is what Kafka compares with
// max.request.size.
func exactSize(r *Record) int {
	var b record.Builder
	b.Reset(nil)
	return b.Size() + b.SizeOf(0, r.Key, r.Value, r.Headers)
}
