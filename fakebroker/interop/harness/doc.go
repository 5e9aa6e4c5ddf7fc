//go:build harness

// The files of this folder plug our client and our broker into the bench harness, a program that measures Kafka clients and
// brokers side by side, each in a process of its own. They are not built with the project: the harness has the interfaces
// that they fill in. To use them, copy the harness, put them into it, and tell it where the project is:
//
//	cp -r $HARNESS /tmp/bench && chmod -R u+w /tmp/bench && cd /tmp/bench
//	cp $PROJECT/fakebroker/interop/harness/*.go .
//	go mod edit -replace github.com/ottla-kafka/ottla=$PROJECT && go mod tidy
//	go build -tags harness -o bench .
//	(cd $PROJECT && go build -o /tmp/bench/ottla ./fakebroker/cmd/ottla)
//
//	./bench clients -broker-pid PID -bootstrap 127.0.0.1:9092 -clients franz,ottla
//	OTTLA=./ottla ./bench brokers -brokers kfake,ottla -client franz
//
// drv_ottla.go holds the drivers: ottla reads by iteration over records, ottla-poll takes slices of them, ottla-batches
// whole batches (pipelines: PipeBatches); with -reuse behind the name, consumers have ReuseMemory. brokers_ottla.go holds the brokers: ottla in memory, ottla-disk with a data folder.
package main
