package txn

import (
	"slices"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/producer"
)

// FromProperties reads the Java properties of a transactional producer: those of its connections into a client.Config,
// the others into a Config. Unknown keys, refused ones and bad values are all in the error, errors.Join of
// *client.FieldError. Both results are meant to be looked at and changed before client.NewFrom and NewFromConfig.
func FromProperties(properties map[string]string) (client.Config, Config, error) {
	of, c := client.DefaultConfig(), DefaultConfig()
	own := Properties()
	sending := slices.DeleteFunc(producer.Properties(), func(p client.Property[producer.Config]) bool {
		_, ours := own.Lookup(p.Key)
		return ours
	})
	err := client.LoadProperties(properties, client.ClientProperties().Bind(&of), sending.Bind(&c.Producer), own.Bind(&c))
	return of, c, err
}

// Properties is the table of the keys that transactional producers have beside those of client.ClientProperties and
// producer.Properties, or that mean more in transactions than there.
func Properties() client.PropertyTable[Config] {
	return client.PropertyTable[Config]{
		{Key: "transactional.id", Default: "(null)", Doc: "names the session across restarts; a newer one fences the older", Apply: client.SetString(func(c *Config) *string { return &c.ID })},
		{Key: "transaction.timeout.ms", Default: "60000", Doc: "the coordinator aborts what is open for longer", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.Timeout })},
		{Key: "batch.size", Default: "16384", Doc: "bytes of a full batch, before compression", Differs: "262144 in transactions: their records come in bursts, and take a third less CPU in large batches",
			Apply: client.SetInt(func(c *Config) *int { return &c.Producer.BatchSize })},
		{Key: "max.block.ms", Default: "60000", Doc: "how long New waits for the producer id, Submit for memory and metadata", Apply: client.SetMillis(func(c *Config) *time.Duration { return &c.Producer.MaxBlock })},
		{Key: "transaction.two.phase.commit.enable", Default: "false", Refuse: "two-phase commit (KIP-939) is not built; leave it out"},
	}
}
