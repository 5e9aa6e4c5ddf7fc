package txn

import (
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
)

// Option changes a Config. Options run in order, so a later one wins. A function literal over Config's fields is an
// Option too.
type Option func(*Config)

// TransactionTimeout sets transaction.timeout.ms: how long a transaction may be open before the coordinator aborts it.
func TransactionTimeout(d time.Duration) Option { return func(c *Config) { c.Timeout = d } }

// Producer gives options to the session's producer: linger, compression, partitioner.
func Producer(opts ...producer.Option) Option {
	return func(c *Config) {
		for _, o := range opts {
			o(&c.Producer)
		}
	}
}

// Client gives options to the client that Dial makes. With New, which is given a client, it is an error.
func Client(opts ...client.Option) Option {
	return func(c *Config) { c.client = append(c.client, opts...) }
}
