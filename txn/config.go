package txn

import (
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
)

// Config is everything a session can be told. DefaultConfig fills it with Apache Kafka 4.x's defaults, but for batch.size; an
// Option changes it. The key in each comment is the Java property.
type Config struct {
	// ID names the session across restarts (transactional.id): a new session of the same id fences the old one and
	// ends its open transaction. Required. Two instances that should run beside each other need two ids.
	ID string
	// Timeout is how long a transaction may be open before the coordinator aborts it (transaction.timeout.ms, 60 s).
	// At most the broker's transaction.max.timeout.ms (15 minutes).
	Timeout time.Duration
	// Producer is how records are sent. Acks must be all and Idempotence on. Its BatchSize (batch.size) is 256 KiB unless
	// set: what a transaction has is sent in a burst, and takes a third less CPU, here and at the brokers, than in Kafka's
	// 16 KiB. Memory is taken as batches fill. Its MaxBlock (max.block.ms) bounds New as well.
	Producer producer.Config

	client   []client.Option // for Dial
	problems []error
}

// batchSize is the default of batch.size within transactions.
const batchSize = 256 << 10

// DefaultConfig is Apache Kafka 4.x's configuration of a transactional producer, but for batch.size, and without an id.
func DefaultConfig() Config {
	c := Config{Timeout: 60 * time.Second, Producer: producer.DefaultConfig()}
	c.Producer.BatchSize = batchSize
	return c
}
