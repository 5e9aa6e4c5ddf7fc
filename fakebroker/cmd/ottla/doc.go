// Command ottla is the project's one binary: a Kafka broker that runs on its own, tools for its files, and tools for any
// Kafka cluster.
//
//	ottla serve --port 9092 [--data DIR] [--topic NAME:PARTITIONS] [--config k=v]
//	ottla topics list | create | describe | alter | delete
//	ottla produce TOPIC [FILE...] [-k SEP] [-H NAME=VALUE] [-p N] [-z CODEC] [--input jsonl] [--txn-id ID]
//	ottla consume TOPIC... [-g GROUP] [-o start|end|-N|@TIME|P:N] [-n N] [-e] [-f FORMAT] [-o jsonl] [--isolation read_committed]
//	ottla groups list | describe | members | lag | reset-offsets | delete
//	ottla txns list | describe | hanging | abort
//	ottla producers describe TOPIC[:P,P...]
//	ottla dump-log FILE...
//	ottla version
//
// # Common to all
//
// A cluster is named by -b HOST:PORT, OTTLA_BOOTSTRAP, or bootstrap.servers of the properties; those come from
// --command-config FILE, a Java client's file, and -X key=value. Rows are printed as table, json or jsonl (-o), with the same
// names in each: columns are the keys in capitals.
//
// Results go to stdout and everything else to stderr, so output can be piped: what consume -o jsonl prints, produce --input
// jsonl takes without any loss (record_json.go has the format). What destroys something shows first what it would do, and
// does it with --yes or --execute.
//
// Exit codes: 0 done, 1 the operation failed, wholly or partly, 2 wrong usage, 3 cannot listen, connect or log in, 130
// interrupted. An error is a line that says what failed, and where there is something to do, one that says what.
//
// # For a newcomer
//
// The commands only parse, call and print; whatever decides lives in the rooms they use. main.go holds the command line, and
// each command has a file. connect.go is the connection and its flags, table.go the rows, suggest.go the errors about names
// that do not exist, when.go times.
package main
