package transaction

import (
	"time"

	"github.com/ottla-kafka/ottla/fakebroker/internal/config"
)

// An Environment is what a machine goes by that does not come from its log. A new one comes as a request.
type Environment struct {
	// Level is the finalised level of transaction.version: 0, 1 (flexible records) or 2 (KIP-890: the epoch rises with
	// every end).
	Level  int16
	Config *config.Layers
}

// settings are the broker's configs in the form that the machine uses.
type settings struct {
	abortCheck  time.Duration // transaction.abort.timed.out.transaction.cleanup.interval.ms
	expiration  time.Duration // transactional.id.expiration.ms
	expiryCheck time.Duration // transaction.remove.expired.transaction.cleanup.interval.ms
}

func readSettings(c *config.Layers) settings {
	ms := func(name string) time.Duration { return time.Duration(c.Int(name)) * time.Millisecond }
	return settings{
		abortCheck:  ms("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
		expiration:  ms("transactional.id.expiration.ms"),
		expiryCheck: ms("transaction.remove.expired.transaction.cleanup.interval.ms"),
	}
}

// follow takes a new environment.
func (m *Machine) follow(now time.Time, e Environment) {
	m.env, m.set = e, readSettings(e.Config)
	m.schedule(now)
}
