package txn

import (
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
)

// Config is everything a session can be told. DefaultConfig fills it with Apache Kafka 4.x's defaults; an Option
// changes it. The key in each comment is the Java property.
type Config struct {
	// ID names the session across restarts (transactional.id): a new session of the same id fences the old one and
	// ends its open transaction. Required. Two instances that should run beside each other need two ids.
	ID string
	// Timeout is how long a transaction may be open before the coordinator aborts it (transaction.timeout.ms, 60 s).
	// At most the broker's transaction.max.timeout.ms (15 minutes).
	Timeout time.Duration
	// Producer is how records are sent. Acks must be all and Idempotence on.
	Producer producer.Config

	client   []client.Option // for Dial
	problems []error
}

// DefaultConfig is Apache Kafka 4.x's configuration of a transactional producer, without an id.
func DefaultConfig() Config {
	return Config{Timeout: 60 * time.Second, Producer: producer.DefaultConfig()}
}
