// Package intests shows how to test code that talks to Kafka: with a broker in the test itself.
package intests

import (
	"testing"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/fakebroker"
	"github.com/ottla-kafka/ottla/fakebroker/fault"
	"github.com/ottla-kafka/ottla/producer"
)

func TestOrdersSurviveALostAnswer(t *testing.T) {
	k := fakebroker.Start(t, fakebroker.Topic("orders", 1)) // a real broker, in memory, gone when the test ends
	k.Inject(fault.Produce().Topic("orders").LoseResponse().Times(1))

	cl, _ := client.New(client.Cluster(k))
	defer cl.Close(t.Context())
	p, _ := producer.New(cl)
	defer p.Close(t.Context())
	ack, err := p.Send(t.Context(), producer.Record{Topic: "orders", Value: []byte("book")})
	stored, _ := k.Records("orders", 0, 0)
	if err != nil || ack.Offset != 0 || len(stored) != 1 { // there once, although it was sent twice
		t.Fatalf("acknowledged at %d with error %v, stored %d times", ack.Offset, err, len(stored))
	}
}
