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
// harness_test.go starts and stops processes. tools_test.go runs Apache Kafka's command line tools against Apache Kafka
// and against ottla serve and compares what they print. conformance_test.go asks both brokers the same requests.
// peers_test.go lets kcat, confluent-kafka, kafka-python and franz-go produce and consume. bench_test.go measures our
// client and broker beside theirs.
package interop
