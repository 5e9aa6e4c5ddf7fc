// Package client connects to a Kafka cluster: it finds brokers, keeps connections and metadata, negotiates versions,
// logs in, and routes requests. Producers, consumers and administrators sit on a Client and share it.
//
//	c, err := client.New(client.Seeds("broker1:9092", "broker2:9092"))
//	defer c.Close(ctx)
//	p, err := producer.New(c)
//
// New does no I/O. Connections are opened by the first call that needs them, at most one for each broker and
// Purpose, because a broker answers one request of a connection at a time: a consumer of partitions led by three
// brokers has 1 (metadata) + 1 (group coordinator) + 3 (fetch), a producer to N brokers 1 + N.
//
// # Two ways to send
//
// Client.Request finds the right broker (any, controller, leader, coordinator, by id), tries again after errors
// that pass, and blocks within ctx and default.api.timeout.ms. Administrators use it.
//
// Client.Issue is one attempt at one broker and does not block: the outcome goes to Call.Done. Requests are
// pipelined, written with few system calls, their large parts from where they are. Producers and consumers use it.
//
// # Configuration
//
// Options are functions over the exported Config, which DefaultConfig fills with Apache Kafka 4.x's defaults.
// Properties takes Java property names. New reports everything that is wrong at once; each line names Kafka's key.
// The defaults that differ from Kafka's, with why, are the Differs fields of ClientProperties.
//
// # Errors
//
// Errors of the network and of brokers are *OpError: what was asked, where, how often, how long, why, and often a
// hint that says what it is ("this port speaks TLS") and what to do. errors.Is finds errcode.Code values and the
// Err variables of this package. Retriable tells whether waiting may help.
//
// # For a newcomer
//
//	config.go options.go validate.go lint.go   what a client can be told
//	properties*.go jaas.go ssl.go              the same by Java's names, from a map or a .properties file
//	client.go lifetime.go                      New, Close, the table of links
//	link*.go                                   one broker and purpose: queue, dialling, cleaning up
//	conn.go conn_write.go answer.go            one connection: reading half, writing half
//	dial.go hint.go                            TCP, TLS, versions, login; what failures mean
//	metadata*.go await.go                      the goroutine that keeps the Topology, and waiting for it
//	request.go target.go coordinator.go        routing and retries
//	feature.go                                 levels of the cluster's features
//	topic_partition.go errors.go               what all roles share
//	metrics.go observer.go health.go budget.go what can be watched and bounded
//
// What decides is in package machine and pure; the goroutines here carry it out. No goroutine holds a mutex while
// it waits for anything, so all of it runs in testing/synctest.
//
// # What it does not do yet
//
// Logins other than PLAIN. A login that expires (KIP-368) is renewed by a new connection between two requests, not
// by a second exchange on the same one. Metrics are not pushed to the broker (KIP-714).
package client
