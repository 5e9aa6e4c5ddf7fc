// Package fakebroker is Apache Kafka's broker in Go, small enough to start inside a test in milliseconds: KRaft metadata,
// real logs, real sockets if wanted, and faults on demand. "Fake" is where it runs, not what it does: clients, Apache
// Kafka's tools and its data folders cannot tell the difference.
//
//	func TestOrders(t *testing.T) {
//		k := fakebroker.Start(t, fakebroker.Topic("orders", 6))
//		cl, _ := client.New(client.Cluster(k))
//		...
//	}
//
// # What it is made of
//
// By default a cluster is one node, broker and controller, whose listeners, connections and disk are memory: nothing
// leaves the process, nothing is left behind, and inside testing/synctest its time is the bubble's. [Listen] puts it on
// TCP, [Dir] on disk, [TLS] and [User] secure it; the same code runs in every case.
//
//	cluster.go   Start, New, Stop, Restart, Close: a cluster's life
//	crash.go     Crash: kill -9 of the broker alone
//	config.go    Settings and the options over it; every broker config by its Kafka name through Config
//	listeners.go which listeners there are, and what they are called
//	topics.go    topics made at the start and afterwards
//	await.go     waits for what clients do, without polling
//	group.go  transactions.go   groups and transactions, as their coordinators see them
//	hanging.go   transactions that nobody is going to end
//	inspect.go   what is in the logs, what was asked, where the time went
//	leak.go      CheckLeaks: who forgot to close what
//	fault/       rules for requests that go wrong: Cluster.Inject
//	history/     what clients did and saw, and what follows from it
//	harness/     CheckExactlyOnce for pipelines, recorders for this SDK's clients
//	internal/    the broker itself; network/doc.go and server/doc.go draw the way of a request
//
// # Faults
//
// [Cluster.Inject] takes rules such as fault.Produce().Topic("orders").LoseResponse().Times(1): answer with an error,
// drop the connection, delay, never answer, or apply the request and lose its response. [Cluster.Disconnect] cuts all
// connections, [Cluster.Restart] is a clean restart with the same addresses and data, [Cluster.Crash] a kill -9: what was
// written is there after the Restart that follows, what was not acknowledged may or may not be.
//
// # Groups
//
// [Cluster.AwaitGroup] waits for a state, members, an offset or a cause in the history of a group; [Cluster.Group] shows
// who has which partition, what is committed, and why the group has rebalanced. [Cluster.ForceRebalance],
// [Cluster.FenceMember], [Cluster.ExpireSession] and [Cluster.ReloadCoordinator] make happen what otherwise takes time or
// bad luck.
//
// # Transactions
//
// [Cluster.AwaitTransaction] waits for a state, a partition, or the next commit or abort of a transactional id, markers
// and all; [Cluster.Transaction] shows who has the id, what is open, and how often the coordinator has aborted by itself.
// [Cluster.ExpireTransaction] is a timeout without the wait, [Cluster.ReloadTransactionCoordinator] a failover, and
// [Feature] with transaction.version 1 or 0 a cluster before KIP-890.
//
// # Limits of this version
//
// One node; share groups, ACLs and quotas are not there yet, and ApiVersions does not list them.
// num.network.threads and socket.listen.backlog.size are accepted and have no effect, and socket.*.buffer.bytes have one
// only when they are configured (internal/network/doc.go says why). Limits that Apache Kafka leaves open hold here by default: max.connections 10,000, max.connections.per.ip
// 1,000 (this machine excepted), queued.max.request.bytes 256 MiB.
package fakebroker
