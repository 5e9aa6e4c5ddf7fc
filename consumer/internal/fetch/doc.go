// Package fetch drives a machine.Fetcher over a client: it carries out what the machine decides and hands data
// to one reader.
//
//	driver.go    Driver: the machine under its lock, one goroutine that plans and sends, Close
//	cell.go      what reader and driver share about a partition: generation, pause, position
//	orders.go    carrying out effects: requests, metadata, notices
//	request.go   machine.Fetch and machine.Lookup as bodies of Kafka's requests
//	response.go  bodies of answers as machine events
//	scan.go      cutting a partition's bytes into whole batches
//	evict.go     giving back what paused partitions hold when memory is short
//	pool.go      the memory of answers for the next ones, if records are short-lived
//	charge.go    what an answer costs of the memory budget, until its last batch is left behind
//	reader.go    Reader: waits for data and goes through it, batch by batch
//	cursor.go    the batches of one chunk: checksum, decompression, aborted transactions, markers
//
// A record takes this way: the connection's reader goroutine gets an answer in one buffer, decodes it (records
// stay where they are) and steps the machine, which accepts partitions and queues chunks. The reader takes a
// chunk and decodes its records one by one, in the application's goroutine. Between the two goroutines pass
// whole chunks, never records.
package fetch
