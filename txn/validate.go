package txn

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
)

// Validate reports everything that is wrong with the configuration, as errors.Join of *client.FieldError. What
// transactions need of the producer (acks=all, idempotence, retries) is an error where it was set otherwise, as in Kafka.
func (c *Config) Validate() error {
	errs := append([]error(nil), c.problems...)
	bad := func(key, value, reason string) {
		errs = append(errs, &client.FieldError{Key: key, Value: value, Reason: reason})
	}
	if c.ID == "" {
		bad("transactional.id", "", "is empty; give each instance an id of its own, which it keeps across restarts")
	}
	if c.Timeout < time.Millisecond || c.Timeout > math.MaxInt32*time.Millisecond {
		bad("transaction.timeout.ms", c.Timeout.String(), "must be between 1 ms and 24 days; the broker allows at most transaction.max.timeout.ms (15 minutes unless set)")
	}
	if !c.Producer.Idempotence {
		bad("enable.idempotence", "false", "transactions need idempotence; leave it out")
	}
	p := c.Producer
	producer.Idempotent(true)(&p) // asked for: what forbids it is an error now
	if err := p.Validate(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		c.Producer = p // with a default that was raised
	}
	return errors.Join(errs...)
}

// The broker's own limits, where nobody has changed them.
const (
	brokersMaxTimeout = 15 * time.Minute // transaction.max.timeout.ms
	shortTimeout      = 5 * time.Second
)

// Lint says what is allowed and still probably not meant. New logs each line as a warning.
func (c *Config) Lint() []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if c.Timeout > brokersMaxTimeout {
		warn("transaction.timeout.ms is %s: brokers refuse more than 15m0s unless transaction.max.timeout.ms says otherwise", c.Timeout)
	}
	if c.Timeout < shortTimeout {
		warn("transaction.timeout.ms is %s: a broker that restarts or a pause of this process takes longer, and costs the session", c.Timeout)
	}
	if c.Timeout <= c.Producer.RequestTimeout {
		warn("transaction.timeout.ms (%s) is not above request.timeout.ms (%s): one request without an answer costs the session", c.Timeout, c.Producer.RequestTimeout)
	}
	if c.Producer.Linger > c.Timeout/4 {
		warn("linger.ms (%s) takes more than a quarter of transaction.timeout.ms (%s)", c.Producer.Linger, c.Timeout)
	}
	return append(out, c.Producer.Lint()...)
}

// String prints the configuration, one key a line.
func (c Config) String() string {
	return fmt.Sprintf("transactional.id=%s\ntransaction.timeout.ms=%d\n%s", c.ID, c.Timeout.Milliseconds(), c.Producer)
}
