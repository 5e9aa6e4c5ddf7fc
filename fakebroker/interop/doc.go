// Package interop holds the tests that need more than Go: Apache Kafka itself and other people's clients, all on
// loopback. It is a module of its own, so that none of them become requirements of the project.
//
// The tests read two variables, which .ci/install prints:
//
//	OTTLA_KAFKA_LIBS   folder with Apache Kafka's jars (Java 17 on the PATH)
//	OTTLA_PYTHON       python with confluent-kafka and kafka-python
//
// and run as  eval "$(bash .ci/install | sed 's/^/export /')"; cd fakebroker/interop && go test ./...
//
// processes_test.go starts and stops children and chooses ports, harness_test.go starts brokers and Java's tools,
// certificates_test.go makes the certificates of a run. What is compared:
//
//	conformance_*_test.go  raw requests to both brokers, told as scenarios; conversation_test.go maps what brokers make up
//	tools_test.go          Apache Kafka's command line tools on both brokers: output, errors, exit codes
//	peers_test.go          kcat, confluent-kafka, kafka-python and franz-go produce and consume
//	roundtrip_test.go      every client reads our batches and we read theirs, with each codec
//	shapes_test.go         records, topic names and partition counts at their limits
//	security_test.go       TLS and SASL/PLAIN
//	files_test.go          the quickstart, DumpLogSegments on every file, kill -9
//	takeover_test.go       one data folder handed back and forth between both brokers
//	transactions_*_test.go TransactionsCommand and DumpLogSegments, brokers that finish each other's transactions, and pipelines of
//	                       seven makes whose processes are killed; transactions_workers_test.go has those in Go
//	groups_*_test.go       fleets of members of many makes, restarts below them, Kafka's tools for groups, consumers that are no members
//	old_brokers_test.go    the SDK with older versions of Apache Kafka, when OTTLA_OLD_KAFKA names them: .ci/run old
//	bench_test.go          our client and broker measured beside others; harness/ plugs them into a bench harness
package interop
