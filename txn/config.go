package txn

import (
	"errors"
	"math"
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

// Validate reports everything that is wrong with the configuration, as errors.Join of *client.FieldError.
func (c *Config) Validate() error {
	errs := append([]error(nil), c.problems...)
	bad := func(key, value, reason string) {
		errs = append(errs, &client.FieldError{Key: key, Value: value, Reason: reason})
	}
	if c.ID == "" {
		bad("transactional.id", "", "is empty; give each instance an id of its own that it keeps across restarts")
	}
	if c.Timeout < time.Millisecond || c.Timeout > math.MaxInt32*time.Millisecond {
		bad("transaction.timeout.ms", c.Timeout.String(), "must be between 1 ms and 24 days")
	}
	c.Producer.Idempotence = c.Producer.Idempotence || c.Producer.Acks == producer.AcksAll
	producer.Idempotent(true)(&c.Producer) // asked for: what forbids it is an error
	if err := c.Producer.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Lint says what is allowed and still probably not meant. New logs each line as a warning.
func (c *Config) Lint() []string { return nil }
