// Command ottla is the project's one binary: a Kafka broker that runs on its own, and tools for its files.
//
//	ottla serve --port 9092 [--data DIR] [--topic NAME:PARTITIONS] [--config k=v]
//	ottla dump-log FILE...
//	ottla version
//
// Results go to stdout and everything else to stderr, so output can be piped. Exit codes: 0 done, 1 the operation
// failed, 2 wrong usage, 3 cannot listen or connect.
//
// The command only parses, calls and prints; whatever decides lives in the rooms it uses. main.go holds the command
// line, and each command has a file.
package main
