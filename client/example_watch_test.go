package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/ottla-kafka/ottla/client"
	"github.com/ottla-kafka/ottla/wire/message"
)

// Health is what a readiness probe asks: it always returns, and by ctx's end.
func ExampleClient_Health() {
	_, peer, c, end := connected(3, nil)
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h := c.Health(ctx)
	fmt.Println(h.OK, h.Brokers, "brokers,", h.Connections > 0, h.Err)
	for id := range int32(3) {
		peer.Stop(id + 1)
	}
	down, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	h = c.Health(down)
	fmt.Println(h.OK, h.Err != nil)
	// Output:
	// true 3 brokers, true <nil>
	// false true
}

// Metrics is a snapshot for whatever scrapes the program.
func ExampleClient_Metrics() {
	ctx, _, c, end := connected(1, answerCluster)
	defer end()
	for range 3 {
		c.Request(ctx, client.AnyBroker(), message.NewDescribeClusterRequest())
	}
	m := c.Metrics()
	fmt.Println(m.Connections, "connection,", m.Dials, "dial,", m.RequestErrors, "errors")
	fmt.Println(m.Requests > 3, m.BytesOut > 0, m.BytesIn > 0) // metadata and the hello on the connection count too
	// Output:
	// 1 connection, 1 dial, 0 errors
	// true true true
}

// connections is an observer that is interested in two of its events.
type connections struct {
	client.NopObserver
	up, down atomic.Int64
}

func (o *connections) Connected(e client.ConnectEvent) {
	if e.Err == nil {
		o.up.Add(1)
	}
}

func (o *connections) Disconnected(client.DisconnectEvent) { o.down.Add(1) }

// An observer embeds NopObserver and counts, or hands on to a tracing library; it must not block.
func ExampleWithObserver() {
	var seen connections
	ctx, _, c, end := connected(2, answerCluster, client.WithObserver(&seen))
	c.Request(ctx, client.Broker(1), message.NewDescribeClusterRequest())
	c.Request(ctx, client.Broker(2), message.NewDescribeClusterRequest())
	end()
	fmt.Println(seen.up.Load() >= 2, seen.up.Load() == seen.down.Load())
	// Output: true true
}

// What a role has to tell beside numbers goes to all observers and to the log.
func ExampleClient_Note() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
	_, _, c, end := connected(1, nil, client.Logger(log))
	c.Note(client.NoteEvent{Role: "consumer", Kind: "offset-reset", Topic: "orders", Partition: 3, Text: "from 17 to 40"})
	end()
	// Output: level=DEBUG msg="kafka: offset-reset" role=consumer topic=orders partition=3 text="from 17 to 40"
}

// A role of one's own counts on the client's meter and shows in its metrics.
func ExampleClient_Meter() {
	_, _, c, end := connected(1, nil)
	defer end()
	meter := c.Meter()
	meter.FetchedRecords.Add(500)
	meter.FetchLatency.Add(12 * time.Millisecond)
	meter.SetLag("orders", 3, 40)
	m := c.Metrics()
	fmt.Println(m.FetchedRecords, m.FetchLatency.Count, m.Lag)
	meter.ForgetLag("orders", 3)
	fmt.Println(c.Metrics().Lag)
	// Output:
	// 500 1 [{orders 3 40}]
	// []
}

// A Latency keeps quantiles in a fixed amount of memory.
func ExampleLatency() {
	var l client.Latency
	for i := range 1000 {
		l.Add(time.Duration(i+1) * time.Millisecond)
	}
	s := l.Stats()
	fmt.Println(s.Count, s.Mean, s.Max)
	fmt.Println(s.P50 > 450*time.Millisecond && s.P50 < 550*time.Millisecond)
	// Output:
	// 1000 500.5ms 1s
	// true
}
